//! Servers of one's own as they are: what llama.cpp, llama-cpp-python and chat templates take.

use crate::wire::{bodies, body, config, events, json, openai_events, question, serve, tool};
use foldback_core::{Message, ToolCall, ToolDefinition};
use foldback_llm::{
    ChatModel, ChatRequest, ModelErrorKind, RetryPolicy, Retrying, Sampling, ToolChoice,
};
use foldback_providers::{Family, ModelConfig, Provider, RemoteModel};
use serde_json::{Value, json as value};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use wiremock::matchers::{body_partial_json, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

const HI: &str = r#"{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;

fn own(server: &MockServer) -> ModelConfig {
    config(server, Provider::OpenAiCompatible)
}

/// The body that a server of one's own is sent.
async fn told(request: ChatRequest, change: impl Fn(ModelConfig) -> ModelConfig) -> Value {
    let server = serve(json(HI)).await;
    RemoteModel::new(change(own(&server))).unwrap().complete(&request).await.unwrap();
    body(&server).await
}

/// Two calls in one message, their results, and the state of the work behind them.
fn worked() -> ChatRequest {
    let calls = vec![ToolCall::new("call_1", "look", "{}"), ToolCall::new("call_2", "look", "{}")];
    let messages = vec![
        Message::system("Be brief. 请简短。"),
        Message::user("Look twice."),
        Message::calls("", calls.clone()),
        Message::tool_result(&calls[0].id, "sea"),
        Message::tool_result(&calls[1].id, "海"),
        Message::user("[state of the work, not said by the user]\nTodo list:\n- look"),
    ];
    ChatRequest::new(messages).with_tools(vec![tool("look")])
}

/// A message with calls and no words has an empty text: llama-cpp-python answers 500 to null, and templates
/// of Qwen, gpt-oss, Granite and others fail on it.
#[tokio::test]
async fn a_message_with_calls_has_a_text() {
    let sent = told(worked(), |config| config).await;
    assert_eq!(sent["messages"][2]["content"], "");
    let server = serve(json(HI)).await;
    RemoteModel::new(config(&server, Provider::OpenAi)).unwrap().complete(&worked()).await.unwrap();
    assert_eq!(body(&server).await["messages"][2]["content"], Value::Null, "as OpenAI has it");
}

/// Types are single, and each property says what it is.
#[tokio::test]
async fn schemas_are_such_as_templates_read() {
    let odd = ToolDefinition {
        name: "look".to_owned(),
        description: "Looks.".to_owned(),
        parameters: r#"{"type":"object","properties":{"all":{"type":["boolean","null"]},"at":{"type":"string","description":"Where."}}}"#.to_owned(),
    };
    let request = question().with_tools(vec![odd]);
    let sent = told(request, |config| config).await;
    assert_eq!(
        sent["tools"][0]["function"]["parameters"]["properties"],
        value!({"all": {"type": "boolean", "description": "all"}, "at": {"type": "string", "description": "Where."}})
    );
}

/// An answer has an end: 4,096 tokens, or what the settings or the request say.
#[tokio::test]
async fn answers_are_bounded() {
    assert_eq!(told(question(), |config| config).await["max_tokens"], 4_096);
    assert_eq!(told(question(), |config| config.with_max_tokens(99)).await["max_tokens"], 99);
    let short = question().with_sampling(Sampling::default().with_max_tokens(7));
    assert_eq!(told(short, |config| config).await["max_tokens"], 7);
    let server = serve(json(HI)).await;
    RemoteModel::new(config(&server, Provider::OpenAi))
        .unwrap()
        .complete(&question())
        .await
        .unwrap();
    assert_eq!(body(&server).await.get("max_tokens"), None, "OpenAI's models end by themselves");
}

/// Mistral's templates: user and model take turns, ids have nine letters and digits.
#[tokio::test]
async fn a_family_says_it_as_its_templates_can() {
    let sent = told(worked(), |config| config.with_template(Family::Mistral.template())).await;
    let messages = sent["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    let last = messages[4]["content"].as_str().unwrap();
    assert!(last.starts_with("海\n\n[state of the work") && last.ends_with("- look"), "{last}");
    let id = messages[2]["tool_calls"][1]["id"].as_str().unwrap();
    assert_eq!(id, messages[4]["tool_call_id"]);
    assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");

    let sent = told(worked(), |config| config.with_template(Family::Llama.template())).await;
    let calls: Vec<usize> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| Some(message.get("tool_calls")?.as_array()?.len()))
        .collect();
    assert_eq!(calls, [1, 1]);
    assert_eq!(sent["messages"][3]["content"], "sea");

    let sent = told(worked(), |config| config.with_template(Family::Gemma.template())).await;
    assert_eq!(sent["messages"][0]["role"], "user");
}

/// A refusal by template is a refusal, though it is told as a failure of the server: it is asked once.
#[tokio::test]
async fn a_refusal_by_template_is_not_asked_again() {
    for words in [
        "Jinja Exception: After the optional system message, conversation roles must alternate user/assistant",
        "This model only supports single tool-calls at once!",
        "Tool call IDs should be alphanumeric strings with length 9!",
    ] {
        let body = value!({"error": {"code": 500, "message": words, "type": "server_error"}});
        let server = serve(ResponseTemplate::new(500).set_body_json(body)).await;
        let policy = RetryPolicy::default().with_first_wait(Duration::from_millis(1));
        let model = Retrying::new(RemoteModel::new(own(&server)).unwrap(), policy);
        let error = model.complete(&question()).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Request, "{error}");
        assert!(error.message.contains("`foldback model check` names the settings"), "{error}");
        assert_eq!(bodies(&server).await.len(), 1);
    }
    let gone = value!({"error": {"message": "Context size has been exceeded."}});
    let server = serve(ResponseTemplate::new(500).set_body_json(gone)).await;
    let error = RemoteModel::new(own(&server)).unwrap().complete(&question()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ContextLength);
}

/// That a call is due is said in words where the server takes no other choice than its own.
#[tokio::test]
async fn a_required_call_can_be_said_in_words() {
    let request = question().with_tools(vec![tool("look")]).with_tool_choice(ToolChoice::Required);
    let sent = told(request, |config| config.with_required_calls(false)).await;
    assert_eq!(sent["tool_choice"], "auto");
    assert_eq!(sent["messages"][1]["content"], "Call a tool in this answer.");
}

/// Answers come piece by piece unless they are asked for whole, and are the same.
#[tokio::test]
async fn answers_are_streamed_by_themselves() {
    let pieces = [
        r#"{"choices":[{"delta":{"content":"H"}}]}"#,
        r#"{"choices":[{"delta":{"content":"i."},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
    ];
    let server = serve(openai_events(&pieces)).await;
    let streaming = own(&server).with_stream(true);
    assert!(ModelConfig::new(Provider::OpenAiCompatible, "http://127.0.0.1/v1", "m").stream);
    let streamed = RemoteModel::new(streaming).unwrap().complete(&question()).await.unwrap();
    assert_eq!(body(&server).await["stream"], true);
    let server = serve(json(HI)).await;
    let whole = RemoteModel::new(own(&server)).unwrap().complete(&question()).await.unwrap();
    assert_eq!(body(&server).await["stream"], false);
    assert_eq!((streamed.message.text(), streamed.usage), (whole.message.text(), whole.usage));
}

/// An answer may take longer than a silence is waited for, as long as it goes on.
#[tokio::test]
async fn only_silence_is_bounded() {
    for (pause, is_silent) in [(60, false), (2_000, true)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 65_536];
            let _ = stream.read(&mut request).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"好\"}}]}\n\n";
            let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
            for part in [head, piece].into_iter().chain(std::iter::repeat_n(piece, 9)).chain([end])
            {
                if stream.write_all(part.as_bytes()).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        });
        let mut config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
        config.timeouts.silence = Duration::from_millis(400);
        let answer = RemoteModel::new(config).unwrap().complete(&question()).await;
        match answer {
            Ok(answer) => {
                assert_eq!((answer.message.text().chars().count(), is_silent), (10, false));
            }
            Err(error) => assert_eq!((error.kind, is_silent), (ModelErrorKind::Timeout, true)),
        }
    }
}

/// The same where the connection is lost in the place of the first piece, as llama-cpp-python does it.
#[tokio::test]
async fn where_a_stream_breaks_off_the_whole_is_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 65_536];
            let read = stream.read(&mut request).await.unwrap_or(0);
            let is_streamed = String::from_utf8_lossy(&request[..read]).contains("\"stream\":true");
            let broken = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            let whole = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{HI}",
                HI.len()
            );
            let answer = if is_streamed { broken } else { whole.as_str() };
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let model = RemoteModel::new(ModelConfig::new(Provider::OpenAiCompatible, &base, "m")).unwrap();
    let request = question().with_tools(vec![tool("look")]);
    assert_eq!(model.complete(&request).await.unwrap().message.text(), "Hi.");
    assert_eq!(model.complete(&question()).await.unwrap_err().kind, ModelErrorKind::Unavailable);
}

/// A server that gives nothing piece by piece where tools are declared is asked for whole answers from then
/// on.
#[tokio::test]
async fn where_nothing_is_streamed_the_whole_is_asked_for() {
    let nothing = r#"{"choices":[{"delta":{"role":"assistant"},"finish_reason":"stop"}]}"#;
    for empty in [openai_events(&[nothing]), openai_events(&[]), events("")] {
        let server = MockServer::start().await;
        let streamed = Mock::given(method("POST")).and(body_partial_json(value!({"stream": true})));
        streamed.respond_with(empty).mount(&server).await;
        let whole = Mock::given(method("POST")).and(body_partial_json(value!({"stream": false})));
        whole.respond_with(json(HI)).mount(&server).await;
        let model = RemoteModel::new(own(&server).with_stream(true)).unwrap();
        let request = question().with_tools(vec![tool("look")]);
        for _ in 0..2 {
            assert_eq!(model.complete(&request).await.unwrap().message.text(), "Hi.");
        }
        let streamed: Vec<Value> = bodies(&server)
            .await
            .iter()
            .map(|body| serde_json::from_str::<Value>(body).unwrap()["stream"].clone())
            .collect();
        assert_eq!(streamed, [value!(true), value!(false), value!(false)]);
    }
}
