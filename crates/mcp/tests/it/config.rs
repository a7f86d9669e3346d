//! The configuration that other clients use.

use foldback_mcp::{Endpoint, McpServerConfig, Trust};
use std::time::Duration;

#[test]
fn the_form_of_other_clients_is_read() {
    let servers = McpServerConfig::read(
        r#"{
            "theme": "dark",
            "mcpServers": {
                "天气": {"type": "stdio", "command": "python3", "args": ["w.py", "杭州"],
                         "env": {"KEY": "值"}, "cwd": "/srv", "autoApprove": ["forecast"]},
                "docs": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "k"}, "trust": true,
                         "timeout_s": 5},
                "off": {"command": "x", "disabled": true}
            }
        }"#,
    );
    let mut docs = McpServerConfig::at(
        "docs",
        Endpoint::Url {
            url: "http://127.0.0.1:1/mcp".to_owned(),
            headers: [("X-Key".to_owned(), "k".to_owned())].into(),
        },
    );
    docs.trust = Trust::Hints;
    docs.timeout = Duration::from_secs(5);
    let weather = McpServerConfig::at(
        "天气",
        Endpoint::Program {
            command: "python3".to_owned(),
            args: vec!["w.py".to_owned(), "杭州".to_owned()],
            env: [("KEY".to_owned(), "值".to_owned())].into(),
            cwd: Some("/srv".into()),
        },
    );
    assert_eq!(servers, Ok(vec![docs, weather]));
}

#[test]
fn what_is_wrong_is_named() {
    let check = |server: &str, expected: &str| {
        let text = format!(r#"{{"mcpServers": {{"s": {server}}}}}"#);
        assert_eq!(McpServerConfig::read(&text).unwrap_err().to_string(), expected);
    };
    check("{}", "the MCP server \"s\" has neither a command nor a url; one of them was expected");
    check(
        r#"{"command": "x", "url": "y"}"#,
        "the MCP server \"s\" has a command and a url; one of them was expected",
    );
    check(
        r#"{"type": "sse", "url": "y"}"#,
        "the MCP server \"s\" is of the type \"sse\"; \"stdio\" or \"http\" was expected",
    );
    check(
        r#"{"command": "x", "timeout_s": 0}"#,
        "the MCP server \"s\" has a timeout_s of 0; at least 1 was expected",
    );
    let error = McpServerConfig::read("{}").unwrap_err().to_string();
    assert!(
        error.contains("missing field `mcpServers`") && error.contains("was expected"),
        "{error}"
    );
}

#[test]
fn mistakes_that_people_make_are_told_with_what_helps() {
    let check = |server: &str, expected: &str| {
        let text = format!(r#"{{"mcpServers": {{"天气": {server}}}}}"#);
        assert_eq!(
            McpServerConfig::read(&text).unwrap_err().to_string(),
            format!("the MCP server \"天气\" {expected}")
        );
    };
    check(
        r#"{"command": "x", "env": {"KEY": "${env:API_KEY}"}}"#,
        "has \"${env:API_KEY}\" in its env, and variables are not expanded; the value itself was expected",
    );
    check(
        r#"{"url": "https://${HOST}/mcp"}"#,
        "has \"https://${HOST}/mcp\" in its url, and variables are not expanded; the value itself was \
         expected",
    );
    check(
        r#"{"type": "http", "command": "x"}"#,
        "is of the type \"http\" and has a command; a url was expected",
    );
    check(
        r#"{"type": "stdio", "url": "http://127.0.0.1:1"}"#,
        "is of the type \"stdio\" and has a url; a command was expected",
    );
    check(
        r#"{"command": " "}"#,
        "has an empty command; the name or path of a program was expected",
    );
    check(
        r#"{"command": "npx -y foo"}"#,
        "has the command \"npx -y foo\"; the program alone, and the rest in args, was expected",
    );
    let error = |text: &str| McpServerConfig::read(text).unwrap_err().to_string();
    let wrong = error(r#"{"mcpServers": {"a": {"command": "x"}, "天气": {"command": 5}}}"#);
    assert!(wrong.starts_with("the MCP server \"天气\" cannot be read: invalid type: "), "{wrong}");
    let twice = error(r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#);
    assert!(twice.contains("the MCP server \"a\" is configured twice"), "{twice}");
    // What is not a mistake: a script, and a path with spaces.
    for fine in [
        r#"{"command": "sh", "args": ["-c", "echo ${HOME} here"]}"#,
        r#"{"command": "/opt/my tools/server"}"#,
    ] {
        McpServerConfig::read(&format!(r#"{{"mcpServers": {{"a": {fine}}}}}"#)).unwrap();
    }
}

#[test]
fn the_time_to_start_can_be_set() {
    let read = |time: u64| {
        McpServerConfig::read(&format!(
            r#"{{"mcpServers": {{"s": {{"command": "x", "start_timeout_s": {time}}}}}}}"#
        ))
    };
    assert_eq!(read(120).unwrap()[0].start_timeout, Duration::from_secs(120));
    let error = read(0).unwrap_err().to_string();
    assert!(error.contains("\"s\" has a start_timeout_s of 0"), "{error}");
}
