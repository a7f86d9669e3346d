//! Self-hosted servers as they are: what llama.cpp, llama-cpp-python and chat templates accept.

use crate::wire::{
    bodies, body, config, events, json, openai_events, pieces, question, serve, tool,
};
use foldback_core::{Message, ToolCall, ToolDefinition};
use foldback_llm::{
    ChatChunk, ChatModel, ChatRequest, ModelErrorKind, RetryPolicy, Retrying, Sampling, StopReason,
    ToolChoice,
};
use foldback_providers::{Family, ModelConfig, Provider, RemoteModel};
use serde_json::{Value, json as value};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use wiremock::matchers::{body_partial_json, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

const HI: &str = r#"{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;

fn own(server: &MockServer) -> ModelConfig {
    config(server, Provider::OpenAiCompatible)
}

/// The body that a self-hosted server is sent.
async fn told(request: ChatRequest, change: impl Fn(ModelConfig) -> ModelConfig) -> Value {
    let server = serve(json(HI)).await;
    RemoteModel::new(change(own(&server))).unwrap().complete(&request).await.unwrap();
    body(&server).await
}

/// Two calls in one message, their results, and the state of the work after them.
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

/// A message with calls and without text has an empty text: llama-cpp-python answers 500 to null, and
/// templates of Qwen, gpt-oss, Granite and others fail on it.
#[tokio::test]
async fn a_message_with_calls_has_a_text() {
    let sent = told(worked(), |config| config).await;
    assert_eq!(sent["messages"][2]["content"], "");
    let server = serve(json(HI)).await;
    RemoteModel::new(config(&server, Provider::OpenAi)).unwrap().complete(&worked()).await.unwrap();
    assert_eq!(body(&server).await["messages"][2]["content"], Value::Null, "as OpenAI has it");
}

/// Some servers refuse an empty result. OpenAI accepts it.
#[tokio::test]
async fn a_result_that_says_nothing_is_put_into_words_for_servers_of_others() {
    let mut request = worked();
    let result = Arc::make_mut(request.messages.iter_mut().rev().nth(1).unwrap());
    *result = Message::tool_result(result.tool_call_id().unwrap(), " \n");
    let at = request.messages.len() - 2;
    let sent = told(request.clone(), |config| config).await;
    assert_eq!(sent["messages"][at]["content"], "(no output)");
    let server = serve(json(HI)).await;
    RemoteModel::new(config(&server, Provider::OpenAi)).unwrap().complete(&request).await.unwrap();
    assert_eq!(body(&server).await["messages"][at]["content"], " \n");
}

/// Types are single, and each property has a description.
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

/// What a strict schema requires and allows to be `null` may be left out of a call; the tool gets its `null`.
#[tokio::test]
async fn what_is_left_out_of_a_call_is_null_where_the_tool_wants_that() {
    let strict = ToolDefinition {
        name: "look".to_owned(),
        description: "Looks.".to_owned(),
        parameters: r#"{"type":"object","required":["at","all"],"properties":{"at":{"type":"string"},"all":{"type":["boolean","null"]}}}"#.to_owned(),
    };
    let call = r#"{"choices":[{"message":{"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"at\": \"海\"}"}}]}}]}"#;
    let request = question().with_tools(vec![strict]);
    for (provider, required, arguments) in [
        (Provider::OpenAiCompatible, value!(["at"]), r#"{"at":"海","all":null}"#),
        (Provider::OpenAi, value!(["all", "at"]), r#"{"at": "海"}"#),
    ] {
        let server = serve(json(call)).await;
        let answer = RemoteModel::new(config(&server, provider)).unwrap().complete(&request).await;
        assert_eq!(answer.unwrap().message.tool_calls()[0].arguments, arguments);
        let sent = body(&server).await;
        assert_eq!(sent["tools"][0]["function"]["parameters"]["required"], required);
    }
}

/// An answer is limited: to 4,096 tokens, or to what the settings or the request say.
#[tokio::test]
async fn answers_are_bounded() {
    assert_eq!(told(question(), |config| config).await["max_tokens"], 4_096);
    assert_eq!(told(question(), |config| config.with_max_tokens(99)).await["max_tokens"], 99);
    let small = told(question(), |config| config.with_context_tokens(4_096)).await;
    assert_eq!(small["max_tokens"], 1_024, "the request has room beside its answer");
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

/// Mistral's templates: user and model alternate, ids have nine letters and digits.
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

/// The same inside a stream.
#[tokio::test]
async fn a_refusal_by_template_may_come_in_a_stream() {
    let error = r#"{"error":{"code":500,"message":"Jinja Exception: roles must alternate","type":"server_error"}}"#;
    let server = serve(openai_events(&[error])).await;
    let model = RemoteModel::new(own(&server).with_stream(true)).unwrap();
    let error = model.complete(&question()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Request);
    assert!(error.message.contains("`foldback model check` names the settings"), "{error}");
    assert_eq!(bodies(&server).await.len(), 1);
    let gateway = value!({"error": {"message": "'NoneType' object is not callable"}});
    let server = serve(ResponseTemplate::new(500).set_body_json(gateway)).await;
    let error = RemoteModel::new(own(&server)).unwrap().complete(&question()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unavailable, "any gateway fails so");
}

/// A refusal by a template is a refusal, although it is reported as a server failure: it is not retried.
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

/// A required call is put in words if the server accepts no choice but its own.
#[tokio::test]
async fn a_required_call_can_be_said_in_words() {
    let request = question().with_tools(vec![tool("look")]).with_tool_choice(ToolChoice::Required);
    let sent = told(request, |config| config.with_required_calls(false)).await;
    assert_eq!(sent["tool_choice"], "auto");
    assert_eq!(sent["messages"][1]["content"], "Call a tool in this answer.");
}

/// Answers are streamed unless they are requested whole, and are the same.
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

/// An answer may take longer than the silence timeout, as long as it continues.
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

/// A connection that fails once the provider has said why the answer ends takes nothing from the answer, and it is not
/// asked for again.
#[tokio::test]
async fn an_answer_that_is_whole_survives_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 65_536];
        let _ = stream.read(&mut request).await;
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
        let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"好的\"},\"finish_reason\":\"stop\"}]}\n\n";
        stream.write_all(format!("{head}{piece}").as_bytes()).await.unwrap();
        drop(stream);
        // Nobody asks again.
        tokio::time::timeout(Duration::from_secs(1), listener.accept()).await.is_err()
    });
    let config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
    let answer = RemoteModel::new(config).unwrap().complete(&question()).await.unwrap();
    assert_eq!((answer.message.text().as_ref(), answer.stop), ("好的", StopReason::End));
    assert!(server.await.unwrap());
}

/// An answer that an outage ended is asked for again, and an empty reason is none: a stream with one that is lost is not
/// taken for whole.
#[tokio::test]
async fn an_answer_that_an_outage_ended_is_an_error() {
    for reason in ["insufficient_system_resource", "abort", "error"] {
        let answer =
            value!({"choices": [{"finish_reason": reason, "message": {"content": "前三步是"}}]});
        let server = serve(json(&answer.to_string())).await;
        let error =
            RemoteModel::new(own(&server)).unwrap().complete(&question()).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unavailable);
        assert!(error.message.contains(reason), "{error:?}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 65_536];
            let _ = stream.read(&mut request).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
            let piece =
                "data: {\"choices\":[{\"delta\":{\"content\":\"好\"},\"finish_reason\":\"\"}]}\n\n";
            let _ = stream.write_all(format!("{head}{piece}").as_bytes()).await;
        }
    });
    let config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m").with_stream(true);
    assert!(RemoteModel::new(config).unwrap().complete(&question()).await.is_err());
}

/// What arrives of a stream that is lost: a beginning, or nothing at all, by chance.
const BEGUN: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// An empty stream that ends properly, on a connection that accepts another request and loses it, as
/// uvicorn closes one after an error.
const ENDED: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";

/// A server that loses streams instead of sending their first piece, as llama-cpp-python does, and gives
/// this answer as a whole. Returns the base URL, and for each request whether it was streamed.
async fn losing(
    broken: &'static str,
    status: u16,
    whole: &'static str,
) -> (String, Arc<Mutex<Vec<bool>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::<Mutex<Vec<bool>>>::default();
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 65_536];
            let read = stream.read(&mut request).await.unwrap_or(0);
            let is_streamed = String::from_utf8_lossy(&request[..read]).contains("\"stream\":true");
            seen.lock().unwrap().push(is_streamed);
            let length = whole.len();
            let whole = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{whole}"
            );
            let answer = if is_streamed { broken } else { whole.as_str() };
            let _ = stream.write_all(answer.as_bytes()).await;
            if answer == ENDED {
                tokio::spawn(async move { stream.read(&mut [0; 16]).await });
            }
        }
    });
    (base, asked)
}

/// The request for the whole is sent once more if the stream has taken its connection along.
#[tokio::test]
async fn the_whole_comes_though_its_connection_is_closed() {
    let (base, asked) = losing(ENDED, 200, HI).await;
    let config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
    let model = RemoteModel::new(config).unwrap();
    let request = question().with_tools(vec![tool("look")]);
    for _ in 0..2 {
        assert_eq!(model.complete(&request).await.unwrap().message.text(), "Hi.");
    }
    assert_eq!(*asked.lock().unwrap(), [true, false, false]);
}

/// The whole is requested if a stream is lost; a single lost stream may be an accident.
#[tokio::test]
async fn where_a_stream_breaks_off_the_whole_is_asked_for() {
    let with_tool = question().with_tools(vec![tool("look")]);
    for (request, broken) in [(with_tool, BEGUN), (question(), BEGUN), (question(), "")] {
        let (base, asked) = losing(broken, 200, HI).await;
        let config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
        let model = RemoteModel::new(config).unwrap();
        for _ in 0..3 {
            assert_eq!(model.complete(&request).await.unwrap().message.text(), "Hi.");
        }
        assert_eq!(*asked.lock().unwrap(), [true, false, true, false, false]);
    }
}

/// What is wrong with a request is reported when the whole is requested.
#[tokio::test]
async fn a_broken_stream_does_not_hide_what_was_wrong() {
    let refusal = r#"{"error":{"message":"Requested tokens (9000) exceed context window of 8192","code":"context_length_exceeded"}}"#;
    for request in [question().with_tools(vec![tool("look")]), question()] {
        let (base, _) = losing(BEGUN, 400, refusal).await;
        let config = ModelConfig::new(Provider::OpenAiCompatible, &base, "m");
        let error = RemoteModel::new(config).unwrap().complete(&request).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::ContextLength, "{error}");
    }
}

/// Others are asked once in an attempt, even if a stream is lost: what comes next is waited for.
#[tokio::test]
async fn a_lost_connection_says_nothing_of_streams_elsewhere() {
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let (base, asked) = losing(BEGUN, 200, HI).await;
        let model = RemoteModel::new(ModelConfig::new(provider, &base, "m")).unwrap();
        for _ in 0..3 {
            let error = model.complete(&question()).await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Unavailable);
        }
        assert_eq!(*asked.lock().unwrap(), [true; 3]);
    }
}

/// A worker that fails after its first frame, or sends text in place of frames, is skipped like any other.
#[tokio::test]
async fn a_worker_that_fails_while_it_streams_is_left_out() {
    let piece = r#"{"choices":[{"delta":{"content":"H"}}]}"#;
    let failed = r#"{"error":{"type":"server_error","message":"CUDA out of memory"}}"#;
    for failing in [openai_events(&[piece, failed]), json(failed)] {
        let failing = serve(failing).await;
        let healthy = serve(json(HI)).await;
        let at = |server: &MockServer| format!("{}/v1", server.uri());
        let config = ModelConfig::new(Provider::OpenAiCompatible, &at(&failing), "m");
        let model = RemoteModel::new(config.with_workers([at(&healthy).as_str()])).unwrap();
        let error = model.complete(&question()).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unavailable);
        assert_eq!(model.complete(&question()).await.unwrap().message.text(), "Hi.");
        assert_eq!(bodies(&failing).await.len(), 1);
    }
}

/// A server that answers a request to stream with `streamed`, and others with `whole`.
async fn either(streamed: ResponseTemplate, whole: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    for (is_streamed, answer) in [(true, streamed), (false, whole)] {
        let asked = body_partial_json(value!({"stream": is_streamed}));
        Mock::given(method("POST")).and(asked).respond_with(answer).mount(&server).await;
    }
    server
}

/// For each request, whether it was streamed.
async fn streamed(server: &MockServer) -> Vec<bool> {
    let bodies = bodies(server).await;
    let bodies = bodies.iter().map(|body| serde_json::from_str::<Value>(body).unwrap());
    bodies.map(|body| body["stream"] == true).collect()
}

/// Token limits hold: if a stream does not report its usage, the next answer comes whole.
#[tokio::test]
async fn what_is_not_counted_is_not_streamed() {
    let piece = r#"{"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}"#;
    let server = either(openai_events(&[piece]), json(HI)).await;
    let model = RemoteModel::new(own(&server).with_stream(true)).unwrap();
    for request in [question(), question(), question().with_tools(vec![tool("look")])] {
        assert_eq!(model.complete(&request).await.unwrap().message.text(), "Hi.");
    }
    assert_eq!(streamed(&server).await, [true, false, false]);

    let uncounted = r#"{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}"#;
    let server = either(openai_events(&[piece]), json(uncounted)).await;
    let model = RemoteModel::new(own(&server).with_stream(true)).unwrap();
    for _ in 0..4 {
        model.complete(&question()).await.unwrap();
    }
    assert_eq!(streamed(&server).await, [true, false, true, true], "it counts nothing anyway");
}

/// A provider that refuses to stream is asked for the whole from then on.
#[tokio::test]
async fn where_streams_are_refused_the_whole_is_asked_for() {
    let unverified = value!({"error": {
        "message": "Your organization must be verified to stream this model.",
        "type": "invalid_request_error", "param": "stream", "code": "unsupported_value",
    }});
    let by_parameter =
        value!({"error": {"message": "Unsupported value.", "param": "stream_options"}});
    for refusal in [unverified, by_parameter] {
        let refusal = ResponseTemplate::new(400).set_body_json(refusal);
        let server = either(refusal, json(HI)).await;
        let model = RemoteModel::new(config(&server, Provider::OpenAi).with_stream(true)).unwrap();
        for _ in 0..2 {
            assert_eq!(model.complete(&question()).await.unwrap().message.text(), "Hi.");
        }
        assert_eq!(streamed(&server).await, [true, false, false]);
        let (chunks, error) = pieces(&model, &question()).await;
        assert_eq!((chunks.len(), error), (2, None), "a whole answer is a stream as well");
    }
    let other = value!({"error": {"message": "Bad gateway upstream.", "param": "tools"}});
    let server = either(ResponseTemplate::new(400).set_body_json(other), json(HI)).await;
    let model = RemoteModel::new(own(&server).with_stream(true)).unwrap();
    let error = model.complete(&question()).await.unwrap_err();
    let expected = "the provider answered with status 400 to `tools`: Bad gateway upstream.";
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Request, expected));
}

/// A server that does not stream if tools are declared is asked for whole answers from then on.
#[tokio::test]
async fn where_nothing_is_streamed_the_whole_is_asked_for() {
    let nothing = r#"{"choices":[{"delta":{"role":"assistant"},"finish_reason":"stop"}]}"#;
    for empty in [openai_events(&[nothing]), openai_events(&[]), events("")] {
        let server = either(empty, json(HI)).await;
        let model = RemoteModel::new(own(&server).with_stream(true)).unwrap();
        let request = question().with_tools(vec![tool("look")]);
        for _ in 0..2 {
            let (chunks, error) = pieces(&model, &request).await;
            assert_eq!(
                (&chunks[0], chunks.len(), error),
                (&ChatChunk::Text("Hi.".into()), 2, None)
            );
        }
        assert_eq!(streamed(&server).await, [true, false, false]);
        let whole = RemoteModel::new(own(&server).with_stream(false)).unwrap();
        assert_eq!(pieces(&whole, &request).await.0.len(), 2, "as the settings say");
        assert_eq!(streamed(&server).await.last(), Some(&false));
    }
    let counted = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}"#;
    let server = either(openai_events(&[nothing, counted]), json(HI)).await;
    let model = RemoteModel::new(own(&server).with_stream(true)).unwrap();
    let usage = model.complete(&question()).await.unwrap().usage;
    assert_eq!((usage.input, usage.output), (18, 2), "both requests are paid");
}
