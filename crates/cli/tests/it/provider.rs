//! A model behind the chat-completions API, which answers by a script.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// A provider on 127.0.0.1. It answers in order, and keeps what it was asked.
pub(crate) struct Provider {
    server: MockServer,
    /// Serves; gone with the provider.
    _runtime: tokio::runtime::Runtime,
}

struct Script(Arc<Mutex<Vec<ResponseTemplate>>>);

impl Respond for Script {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let mut answers = self.0.lock().unwrap();
        match answers.is_empty() {
            true => Provider::error(400),
            false => answers.remove(0),
        }
    }
}

impl Provider {
    pub(crate) fn new(answers: Vec<ResponseTemplate>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(async {
            let server = MockServer::start().await;
            let script = Script(Arc::new(Mutex::new(answers)));
            let mock = Mock::given(method("POST")).and(path("/v1/chat/completions"));
            mock.respond_with(script).mount(&server).await;
            server
        });
        Self { server, _runtime: runtime }
    }

    /// The base URL.
    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.server.uri())
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let requests = self._runtime.block_on(self.server.received_requests()).unwrap();
        requests.iter().map(|request| request.body_json().unwrap()).collect()
    }

    /// An answer in words.
    pub(crate) fn text(text: &str) -> ResponseTemplate {
        Self::answer(json!({"role": "assistant", "content": text}), "stop")
    }

    /// A call of a tool.
    pub(crate) fn call(tool: &str, arguments: &Value) -> ResponseTemplate {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        let call = json!({"id": "call_1", "type": "function", "function": function});
        Self::answer(
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            "tool_calls",
        )
    }

    pub(crate) fn error(status: u16) -> ResponseTemplate {
        ResponseTemplate::new(status).set_body_json(json!({"error": {"message": "no"}}))
    }

    fn answer(message: Value, finish: &str) -> ResponseTemplate {
        ResponseTemplate::new(200).set_body_json(json!({
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }))
    }
}
