//! A server in this process that says whatever a test requires.

use foldback_mcp::{McpClient, McpError, McpServerConfig};
use foldback_tool::Tool;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

/// What a server answers to a request: a result, nothing, or its end.
pub(crate) enum Said {
    Result(Value),
    Nothing,
    End,
}

/// Everything that a server was sent, line by line.
pub(crate) type Heard = Arc<Mutex<Vec<Value>>>;

/// A client of a server that answers as `answer` says; it is given the method and the parameters.
pub(crate) async fn client(
    config: McpServerConfig,
    answer: impl FnMut(&str, &Value) -> Said + Send + 'static,
) -> (Result<McpClient, McpError>, Heard) {
    client_with(json!({ "tools": { "listChanged": true } }), config, answer).await
}

/// The same of a server with these capabilities.
pub(crate) async fn client_with(
    capabilities: Value,
    config: McpServerConfig,
    answer: impl FnMut(&str, &Value) -> Said + Send + 'static,
) -> (Result<McpClient, McpError>, Heard) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let heard = Heard::default();
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(serve(BufReader::new(reader), writer, Arc::clone(&heard), capabilities, answer));
    (McpClient::over(ours, config).await, heard)
}

/// A client of a server that lists these tools and answers each call with its name.
pub(crate) async fn listing(config: McpServerConfig, tools: Vec<Value>) -> McpClient {
    let answer = move |method: &str, params: &Value| match method {
        "tools/list" => Said::Result(json!({ "tools": tools })),
        "tools/call" => Said::Result(text(&format!("called {}", params["name"]))),
        _ => Said::Nothing,
    };
    client(config, answer).await.0.unwrap()
}

/// A tool as a server lists it.
pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "Does it.", "inputSchema": { "type": "object" } })
}

/// An answer that is text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A configuration for tests.
pub(crate) fn config(name: &str) -> McpServerConfig {
    McpServerConfig::url(name, "")
}

pub(crate) fn names(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.spec().name()).collect()
}

async fn serve(
    mut reader: BufReader<ReadHalf<DuplexStream>>,
    mut writer: WriteHalf<DuplexStream>,
    heard: Heard,
    capabilities: Value,
    mut answer: impl FnMut(&str, &Value) -> Said,
) {
    let mut line = String::new();
    while reader.read_line(&mut line).await.unwrap_or_default() > 0 {
        let message: Value = serde_json::from_str(&line).unwrap();
        line.clear();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        heard.lock().unwrap().push(message.clone());
        if message.get("id").is_none() {
            continue;
        }
        let result = match method.as_str() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": { "name": "test", "version": "1" },
            }),
            _ => match answer(&method, &message["params"]) {
                Said::Result(result) => result,
                Said::Nothing => continue,
                Said::End => return,
            },
        };
        let mut lines =
            json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        lines.push('\n');
        if method == "tools/call" {
            let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            lines = format!("{changed}\n{lines}");
        }
        if writer.write_all(lines.as_bytes()).await.is_err() {
            return;
        }
    }
}
