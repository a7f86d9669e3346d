//! A bare client that only exchanges messages, and a store for it to use.

use foldback::core::{Message, TodoId};
use foldback::{Close, Memory, Options};
use foldback_mcp_server::{MemoryServer, Scope};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
};
use tokio::io::{WriteHalf, duplex, split};

/// The client's end of a connection.
pub(crate) struct Wire {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    roots: Vec<String>,
    sent: u64,
    /// What the server said of itself.
    pub(crate) server: Value,
    /// How often the server asked for the roots.
    pub(crate) asked: usize,
    /// The roots that it has from its next answer on; it says so before that answer, which names the old ones.
    pub(crate) next_roots: Option<Vec<String>>,
}

pub(crate) fn id(name: &str) -> TodoId {
    TodoId::new(name).unwrap()
}

/// A store with these todos, each of two blocks and an open message.
pub(crate) fn store(todos: &[&str]) -> Memory {
    let memory = Memory::in_memory(Options::default()).unwrap();
    for todo in todos {
        let mut session = memory.session(&id(todo)).unwrap();
        for said in
            [format!("The ferry of {todo} leaves at 06:12."), "八号码头 is closed.".to_owned()]
        {
            session.record(Message::user(&said)).unwrap();
            session.record(Message::assistant("Noted.")).unwrap();
            session.close(Close::End).unwrap();
        }
        session.record(Message::user("And the tide?")).unwrap();
    }
    memory
}

/// A server over a store.
pub(crate) fn server(memory: &Memory, scope: Scope) -> MemoryServer {
    let memory = memory.clone();
    MemoryServer::new(move || Ok(memory.clone()), scope)
}

impl Wire {
    /// A client of the protocol of 2025 that names no roots.
    pub(crate) async fn start(server: MemoryServer) -> Self {
        Self::with_roots(server, None).await
    }

    /// A client of the protocol of 2025 that names these roots.
    pub(crate) async fn with_roots(server: MemoryServer, roots: Option<&[&str]>) -> Self {
        let mut wire = Self::connect(server);
        let capabilities = match roots {
            Some(_) => json!({"roots": {"listChanged": true}}),
            None => json!({}),
        };
        wire.roots = roots.unwrap_or_default().iter().map(ToString::to_string).collect();
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "wire", "version": "1"},
        });
        wire.server = wire.request("initialize", params).await["result"].clone();
        wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        wire
    }

    /// A client that has said nothing yet.
    pub(crate) fn connect(server: MemoryServer) -> Self {
        let (ours, theirs) = duplex(1 << 16);
        tokio::spawn(async move {
            let (input, output) = split(theirs);
            server.serve_streams(input, output).await.unwrap();
        });
        let (reader, writer) = split(ours);
        let lines = BufReader::new(reader).lines();
        let (roots, server) = (Vec::new(), Value::Null);
        Self { lines, writer, roots, sent: 0, server, asked: 0, next_roots: None }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// Sends bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
    }

    /// Returns the next message of the server.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the server is there");
        serde_json::from_str(&line).unwrap()
    }

    /// Returns the response to a request. Requests of the server are answered meanwhile.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request).await;
        loop {
            let message = self.next().await;
            if message["method"] == "roots/list" {
                self.asked += 1;
                let roots: Vec<_> = self.roots.iter().map(|uri| json!({"uri": uri})).collect();
                let result = json!({"roots": roots});
                if let Some(next) = self.next_roots.take() {
                    self.roots = next;
                    self.change_roots().await;
                }
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).await;
            } else if message["id"] == id {
                return message;
            }
        }
    }

    /// Says that the roots have changed, and waits until the server has heard it.
    async fn change_roots(&mut self) {
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).await;
        self.send(&json!({"jsonrpc": "2.0", "id": "heard", "method": "ping"})).await;
        let line = self.lines.next_line().await.unwrap().expect("the server is there");
        assert!(line.contains("heard"), "{line}");
    }

    /// Returns the result of a tool call.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.request("tools/call", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Returns the text of a tool call's result.
    pub(crate) async fn text(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments).await;
        answer["content"][0]["text"].as_str().unwrap().to_owned()
    }
}
