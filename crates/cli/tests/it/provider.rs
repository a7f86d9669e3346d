//! A model behind the chat-completions API, which answers by a script.

use crate::slowly;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// A provider on 127.0.0.1. It keeps what it was asked.
pub(crate) struct Provider {
    server: MockServer,
    url: String,
    /// Serves; stopped with the provider.
    _runtime: tokio::runtime::Runtime,
}

/// What the model answers to a request.
#[derive(Clone)]
pub(crate) struct Turn {
    said: Said,
    delay: Duration,
    is_cut: bool,
}

#[derive(Clone)]
enum Said {
    /// Words, or calls as the API writes them.
    Message { text: Option<String>, calls: Vec<Value> },
    /// Words, piece by piece, followed by calls; or, if the connection breaks off, by nothing.
    Pieces { text: String, calls: Vec<Value>, breaks: bool },
    /// No answer.
    Error(ResponseTemplate),
}

struct Script(Mutex<Box<Answering>>);

/// Answers requests, one after the other.
type Answering = dyn FnMut(&Value) -> Turn + Send;

impl Respond for Script {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let asked: Value = request.body_json().unwrap();
        (self.0.lock().unwrap())(&asked).response()
    }
}

impl Provider {
    /// It answers in order.
    pub(crate) fn new(answers: Vec<Turn>) -> Self {
        let mut answers = answers.into_iter();
        Self::answering(move |_| answers.next().unwrap_or_else(|| Self::error(400)))
    }

    /// It answers in order, and reports about itself what llama.cpp reports, if that is given.
    pub(crate) fn telling(props: Option<Value>, answers: Vec<Turn>) -> Self {
        let provider = Self::new(answers);
        if let Some(props) = props {
            let props = ResponseTemplate::new(200).set_body_json(props);
            let mock = Mock::given(method("GET")).and(path("/props")).respond_with(props);
            provider._runtime.block_on(mock.mount(&provider.server));
        }
        provider
    }

    /// It answers each request by its content.
    pub(crate) fn answering(script: impl FnMut(&Value) -> Turn + Send + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(async {
            let server = MockServer::start().await;
            let script = Script(Mutex::new(Box::new(script)));
            let mock = Mock::given(method("POST")).and(path("/v1/chat/completions"));
            mock.respond_with(script).mount(&server).await;
            server
        });
        let url = format!("{}/v1", server.uri());
        Self { server, url, _runtime: runtime }
    }

    /// The same, with a pause after each piece of a streamed answer.
    pub(crate) fn slowly(self, pause: Duration) -> Self {
        Self { url: slowly::before(&self.url, pause), ..self }
    }

    /// The base URL.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.whole_requests().into_iter().map(|(_, body)| body).collect()
    }

    /// The requests so far, each with its headers, one a line.
    pub(crate) fn whole_requests(&self) -> Vec<(String, Value)> {
        let requests = self._runtime.block_on(self.server.received_requests()).unwrap();
        // A request about the server itself has no body.
        let asked = requests.iter().filter(|request| !request.body.is_empty());
        let whole = asked.map(|request| {
            let headers = request.headers.iter();
            let lines =
                headers.map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()));
            (lines.collect(), request.body_json().unwrap())
        });
        whole.collect()
    }

    /// How often it was asked about itself.
    pub(crate) fn questions_of_itself(&self) -> usize {
        let requests = self._runtime.block_on(self.server.received_requests()).unwrap();
        requests.iter().filter(|request| request.body.is_empty()).count()
    }

    /// The key of each request.
    pub(crate) fn keys(&self) -> Vec<Option<String>> {
        let requests = self._runtime.block_on(self.server.received_requests()).unwrap();
        let key = |request: &Request| {
            Some(request.headers.get("authorization")?.to_str().ok()?.to_owned())
        };
        requests.iter().map(key).collect()
    }

    /// An answer in words.
    pub(crate) fn text(text: &str) -> Turn {
        Turn::new(Said::Message { text: Some(text.to_owned()), calls: Vec::new() })
    }

    /// An answer in words, as a streaming server sends it.
    pub(crate) fn pieces(text: &str) -> Turn {
        Self::pieces_and(text, &[])
    }

    /// The same, with tool calls after the words.
    pub(crate) fn pieces_and(text: &str, calls: &[(&str, Value)]) -> Turn {
        let (text, calls) = (text.to_owned(), whole_calls(calls));
        Turn::new(Said::Pieces { text, calls, breaks: false })
    }

    /// Words after which the connection breaks off, if the provider is [`slowly`](Self::slowly) listened to.
    pub(crate) fn broken(text: &str) -> Turn {
        let (text, calls) = (text.to_owned(), Vec::new());
        Turn::new(Said::Pieces { text, calls, breaks: true })
    }

    /// A call of a tool.
    pub(crate) fn call(tool: &str, arguments: &Value) -> Turn {
        Self::calls(&[(tool, arguments.clone())])
    }

    /// Calls of tools.
    pub(crate) fn calls(calls: &[(&str, Value)]) -> Turn {
        Turn::new(Said::Message { text: None, calls: whole_calls(calls) })
    }

    /// Words that reached the greatest length of an answer.
    pub(crate) fn cut(text: &str) -> Turn {
        Turn { is_cut: true, ..Self::text(text) }
    }

    pub(crate) fn error(status: u16) -> Turn {
        Self::refusal(status, "no")
    }

    /// A call of a tool as a text in the format of Hermes.
    pub(crate) fn call_in_text(tool: &str, arguments: &Value) -> Turn {
        let call = json!({"name": tool, "arguments": arguments});
        Self::text(&format!("I will.\n<tool_call>\n{call}\n</tool_call>"))
    }

    /// An error in words.
    pub(crate) fn refusal(status: u16, message: &str) -> Turn {
        let body = json!({"error": {"message": message}});
        Turn::new(Said::Error(ResponseTemplate::new(status).set_body_json(body)))
    }
}

impl Turn {
    fn new(said: Said) -> Self {
        Self { said, delay: Duration::ZERO, is_cut: false }
    }

    /// The same, after a while.
    pub(crate) fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    fn response(self) -> ResponseTemplate {
        let (text, calls) = match self.said {
            Said::Error(error) => return error.set_delay(self.delay),
            Said::Pieces { text, calls, breaks } => {
                return pieces(&text, &calls, breaks).set_delay(self.delay);
            }
            Said::Message { text, calls } => (text, calls),
        };
        let finish = match calls.is_empty() {
            _ if self.is_cut => "length",
            true => "stop",
            false => "tool_calls",
        };
        let mut message = json!({"role": "assistant", "content": text});
        if !calls.is_empty() {
            message["tool_calls"] = Value::from(calls);
        }
        ResponseTemplate::new(200).set_delay(self.delay).set_body_json(json!({
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }))
    }
}

/// Calls as the API writes them.
fn whole_calls(calls: &[(&str, Value)]) -> Vec<Value> {
    let call = |(n, (tool, arguments)): (usize, &(&str, Value))| {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        json!({"id": format!("call_{n}"), "type": "function", "function": function})
    };
    calls.iter().enumerate().map(call).collect()
}

fn pieces(text: &str, calls: &[Value], breaks: bool) -> ResponseTemplate {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let object = "chat.completion.chunk";
        let chunk = json!({"id": "x", "object": object, "created": 0, "model": "scripted", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let chars: Vec<char> = text.chars().collect();
    let mut body: String = chars
        .chunks(16)
        .map(|piece| chunk(json!({"content": String::from_iter(piece)}), None))
        .collect();
    if breaks {
        body.push_str(slowly::BREAK);
    }
    for (index, call) in calls.iter().enumerate() {
        let mut call = call.clone();
        call["index"] = json!(index);
        body.push_str(&chunk(json!({"tool_calls": [call]}), None));
    }
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    body.push_str(&chunk(json!({}), Some(finish)));
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    body.push_str(&format!("data: {}\n\n", json!({"choices": [], "usage": usage})));
    body.push_str("data: [DONE]\n\n");
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}
