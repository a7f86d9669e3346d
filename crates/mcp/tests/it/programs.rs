//! Servers that are programs, and fail.

use foldback_mcp::{McpError, McpServerConfig, McpServers};

async fn failure(command: &str, args: &[&str]) -> String {
    let config = McpServerConfig::program("s", command, args.iter().copied());
    let servers = McpServers::start([config]).await;
    assert!(servers.tools().is_empty());
    match servers.failures() {
        [error @ McpError::Start { .. }] => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let error = failure("/no/such/server", &[]).await;
    assert!(
        error.starts_with(
            "the MCP server \"s\" could not be started: /no/such/server: No such file"
        ),
        "{error}"
    );
}

/// The end of its standard error says why.
#[cfg(unix)]
#[tokio::test]
async fn a_program_that_ends_is_told_with_its_last_words() {
    let error = failure("sh", &["-c", "echo 缺少密钥 >&2; exit 3"]).await;
    assert!(error.contains("exit status: 3; the last it wrote: 缺少密钥"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_is_no_server_is_told() {
    let error = failure("sh", &["-c", "read line; echo hello; echo '{\"jsonrpc\": 1}'"]).await;
    assert!(error.starts_with("the MCP server \"s\" could not be started: "), "{error}");
}

#[tokio::test]
async fn an_address_that_nobody_listens_at_is_told() {
    let config = McpServerConfig::url("s", "http://127.0.0.1:9/mcp");
    let servers = McpServers::start([config]).await;
    let error = servers.failures()[0].to_string();
    assert!(
        error.starts_with("the MCP server \"s\" could not be started: http://127.0.0.1:9/mcp: "),
        "{error}"
    );
}

/// A program that sends us nothing may have said why on its standard error.
#[cfg(unix)]
#[tokio::test]
async fn the_last_words_of_a_program_that_hangs_are_told() {
    let mut config = McpServerConfig::program("s", "sh", ["-c", "echo 等待登录 >&2; sleep 60"]);
    config.start_timeout = std::time::Duration::from_secs(3);
    let servers = McpServers::start([config]).await;
    let told = servers.failures()[0].to_string();
    assert!(told.contains("within 3 s") && told.ends_with("等待登录"), "{told}");
}
