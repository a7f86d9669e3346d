//! A provider on this machine, and a model that calls it.

use foldback_core::{Message, ToolCall, ToolDefinition};
use foldback_llm::{ChatChunk, ChatModel, ChatRequest, ChatResponse, ModelError};
use foldback_providers::{ApiKey, ModelConfig, Provider, RemoteModel};
use futures::StreamExt;
use serde_json::Value;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

pub(crate) const KEY: &str = "sk-very-secret-123";

/// A server that gives the same answer to every request.
pub(crate) async fn serve(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    server
}

pub(crate) fn json(body: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body.to_owned(), "application/json")
}

pub(crate) fn events(body: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body.to_owned(), "text/event-stream")
}

/// Server-sent events of chat-completions, with their end.
pub(crate) fn openai_events(frames: &[&str]) -> ResponseTemplate {
    let frames: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    events(&format!("{frames}data: [DONE]\n\n"))
}

/// Server-sent events of Anthropic's Messages API, each named by its type.
pub(crate) fn anthropic_events(frames: &[&str]) -> ResponseTemplate {
    let frame = |frame: &&str| {
        let kind =
            serde_json::from_str::<Value>(frame).unwrap()["type"].as_str().unwrap().to_owned();
        format!("event: {kind}\ndata: {frame}\n\n")
    };
    events(&frames.iter().map(frame).collect::<String>())
}

pub(crate) fn config(server: &MockServer, provider: Provider) -> ModelConfig {
    let name = if provider == Provider::Anthropic { "claude-sonnet-4-5" } else { "gpt-4.1" };
    let mut config = ModelConfig::new(provider, &format!("{}/v1", server.uri()), name);
    config.api_key = Some(ApiKey::new(KEY));
    // Most tests use whole answers; streaming has its own.
    config.stream = false;
    config
}

pub(crate) fn model(server: &MockServer, provider: Provider) -> RemoteModel {
    RemoteModel::new(config(server, provider)).unwrap()
}

/// The same, with streamed answers.
pub(crate) fn streaming(server: &MockServer, provider: Provider) -> RemoteModel {
    RemoteModel::new(config(server, provider).with_stream(true)).unwrap()
}

/// The whole answer to a request.
pub(crate) async fn ask(
    server: &MockServer,
    provider: Provider,
    request: &ChatRequest,
) -> Result<ChatResponse, ModelError> {
    model(server, provider).complete(request).await
}

/// The pieces of an answer; of an answer that fails, those before it and the error.
pub(crate) async fn pieces(
    model: &impl ChatModel,
    request: &ChatRequest,
) -> (Vec<ChatChunk>, Option<ModelError>) {
    let mut stream = match model.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next().await {
        match chunk {
            Ok(chunk) => chunks.push(chunk),
            Err(error) => return (chunks, Some(error)),
        }
    }
    (chunks, None)
}

/// The answer that a stream ends with.
pub(crate) async fn streamed(
    server: &MockServer,
    provider: Provider,
    request: &ChatRequest,
) -> Result<ChatResponse, ModelError> {
    let (chunks, error) = pieces(&streaming(server, provider), request).await;
    match (chunks.last(), error) {
        (_, Some(error)) => Err(error),
        (Some(ChatChunk::Done(response)), None) => Ok((**response).clone()),
        (last, None) => panic!("a stream ends with the whole answer, not with {last:?}"),
    }
}

/// The exact bodies that a server was sent.
pub(crate) async fn bodies(server: &MockServer) -> Vec<String> {
    let requests = server.received_requests().await.unwrap();
    requests.into_iter().map(|request| String::from_utf8(request.body).unwrap()).collect()
}

/// The body of the only request.
pub(crate) async fn body(server: &MockServer) -> Value {
    let bodies = bodies(server).await;
    assert_eq!(bodies.len(), 1);
    serde_json::from_str(&bodies[0]).unwrap()
}

/// The body of the only request, for reading.
pub(crate) async fn readable_body(server: &MockServer) -> String {
    serde_json::to_string_pretty(&body(server).await).unwrap()
}

pub(crate) fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters:
            r#"{"type":"object","required":["city","at"],"properties":{"city":{"type":"string"},"at":{"type":"string"}}}"#
                .to_owned(),
    }
}

/// A conversation with two calls at once, one of a tool whose name no provider accepts.
pub(crate) fn conversation() -> ChatRequest {
    let calls = vec![
        ToolCall::new("call_1", "get_weather", r#"{"city": "上海",  "at": "now"}"#),
        ToolCall::new("call_2", "browser_查询订单", r#"{"n": 1.50}"#),
    ];
    let messages = vec![
        Message::system("You are brief. 请简短。"),
        Message::user("How is the weather in 上海 🌧, and where is my order?"),
        Message::calls("I'll look.", calls.clone()),
        Message::tool_result(&calls[0].id, "rain\n  18 °C  "),
        Message::tool_result(&calls[1].id, ""),
        Message::user("And tomorrow?"),
    ];
    ChatRequest::new(messages)
        .with_tools(vec![tool("get_weather"), tool("browser_查询订单")])
        .with_cache_marks(vec![0, 5])
}

/// A short question.
pub(crate) fn question() -> ChatRequest {
    ChatRequest::new([Message::user("hello")])
}

/// A question with one tool.
pub(crate) fn question_with_tool() -> ChatRequest {
    question().with_tools(vec![tool("get_weather")])
}
