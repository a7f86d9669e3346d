//! What is sent to chat-completions, and what is read of the answers.

use crate::wire::{
    KEY, ask, bodies, body, config, conversation, json, model, openai_events, pieces, question,
    question_with_tool, readable_body, serve, streamed, streaming, tool,
};
use foldback_core::{Content, Message, Part, Role, ToolCall};
use foldback_llm::{
    ChatChunk, ChatModel, ChatRequest, ModelErrorKind, Sampling, StopReason, Usage,
};
use foldback_providers::{ModelConfig, Provider, RemoteModel};
use serde_json::{Value, json as value};
use wiremock::MockServer;

const HI: &str = r#"{"id":"1","model":"gpt-4.1-2025-04-14","choices":[{"index":0,"finish_reason":"stop",
    "message":{"role":"assistant","content":"Hi.","refusal":null}}],
    "usage":{"prompt_tokens":2006,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1920}}}"#;

/// MC2, MC18: the whole body: exact texts and arguments, tools by name, legal names.
#[tokio::test]
async fn mc2_openai_gets_the_exact_request() {
    let server = serve(json(HI)).await;
    let request = conversation()
        .with_sampling(
            Sampling::default()
                .with_temperature(0.0)
                .with_max_tokens(256)
                .with_stop(["END"])
                .with_seed(7),
        )
        .with_session("todo 1 / 任务");
    ask(&server, Provider::OpenAi, &request).await.unwrap();
    insta::assert_snapshot!(readable_body(&server).await);

    let sent = server.received_requests().await.unwrap().remove(0);
    assert_eq!(sent.url.path(), "/v1/chat/completions");
    assert_eq!(sent.headers["authorization"], format!("Bearer {KEY}"));
}

#[tokio::test]
async fn openai_answers_are_read_whole() {
    let server = serve(json(HI)).await;
    let response = ask(&server, Provider::OpenAi, &question()).await.unwrap();
    assert_eq!(response.message, Message::assistant("Hi."));
    assert_eq!(response.stop, StopReason::End);
    assert_eq!(response.model, "gpt-4.1-2025-04-14");
    let usage = Usage { input: 2006, output: 3, cached_read: 1920, cached_write: 0 };
    assert_eq!(response.usage, usage);
}

#[tokio::test]
async fn openai_calls_come_back_with_their_names_and_exact_arguments() {
    let server = MockServer::start().await;
    let request = question().with_tools(vec![tool("browser_查询订单")]);
    let name = foldback_llm::ToolNames::of_request(&request).wire("browser_查询订单");
    let answer = value!({"model": "m", "choices": [{"finish_reason": "tool_calls", "message": {
    "role": "assistant", "content": null, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": name, "arguments": "{\"n\":  1.50}"}},
        {"id": "b", "type": "function", "function": {"name": name, "arguments": ""}},
    ]}}]});
    serve_on(&server, &answer.to_string()).await;
    let response = ask(&server, Provider::OpenAi, &request).await.unwrap();
    let expected = vec![
        ToolCall::new("a", "browser_查询订单", r#"{"n":  1.50}"#),
        ToolCall::new("b", "browser_查询订单", "{}"),
    ];
    assert_eq!(response.message.tool_calls(), expected);
    assert_eq!(*response.message.content(), Content::Empty);
    assert_eq!(response.stop, StopReason::ToolCalls);
}

async fn serve_on(server: &MockServer, body: &str) {
    wiremock::Mock::given(wiremock::matchers::method("POST"))
        .respond_with(json(body))
        .mount(server)
        .await;
}

/// A text, two calls whose pieces alternate, and the usage after the end.
#[tokio::test]
async fn openai_streams_are_read_piece_by_piece() {
    let frames = [
        r#"{"model":"gpt-4.1-x","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"上"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"海 🌧 "}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"get_weather","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": "}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c1","type":"function","function":{"name":"get_time","arguments":"{\"a"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"上海\"}"}},{"index":1,"function":{"arguments":"t\":1}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}"#,
    ];
    let server = serve(openai_events(&frames)).await;
    let model = streaming(&server, Provider::OpenAi);
    let (chunks, error) = pieces(&model, &question_with_tool()).await;
    assert_eq!(error, None);
    let call = |index, id: Option<&str>, name: Option<&str>, arguments: &str| ChatChunk::ToolCall {
        index,
        id: id.map(str::to_owned),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    };
    let (done, chunks) = chunks.split_last().unwrap();
    let expected = [
        ChatChunk::Text("上".to_owned()),
        ChatChunk::Text("海 🌧 ".to_owned()),
        call(0, Some("c0"), Some("get_weather"), ""),
        call(0, None, None, "{\"city\": "),
        call(1, Some("c1"), Some("get_time"), "{\"a"),
        call(0, None, None, "\"上海\"}"),
        call(1, None, None, "t\":1}"),
    ];
    assert_eq!(chunks, expected);
    let ChatChunk::Done(response) = done else { panic!("{done:?}") };
    let calls = vec![
        ToolCall::new("c0", "get_weather", "{\"city\": \"上海\"}"),
        ToolCall::new("c1", "get_time", "{\"at\":1}"),
    ];
    assert_eq!(response.message, Message::calls("上海 🌧 ", calls));
    assert_eq!(response.stop, StopReason::ToolCalls);
    assert_eq!(response.usage, Usage { input: 10, output: 5, cached_read: 4, cached_write: 0 });
    assert_eq!(response.model, "gpt-4.1-x");

    let sent = body(&server).await;
    assert_eq!(sent["stream"], true);
    assert_eq!(sent["stream_options"], value!({"include_usage": true}));
}

/// MC1: each request of a growing conversation continues the bytes of the one before.
#[tokio::test]
async fn mc1_openai_requests_of_one_conversation_share_their_beginning() {
    let server = serve(json(HI)).await;
    let model = model(&server, Provider::OpenAi);
    let whole = conversation();
    for end in 2..=whole.messages.len() {
        let messages = whole.messages[..end].to_vec();
        model.complete(&unmarked(&whole).with_messages(messages)).await.unwrap();
    }
    let bodies = bodies(&server).await;
    assert_eq!(bodies.len(), 5);
    for (before, after) in bodies.iter().zip(&bodies[1..]) {
        let end = before.find(r#"],"tools""#).unwrap();
        assert!(after.starts_with(&before[..end]), "{before}\n{after}");
        assert!(after.ends_with(&before[end..]), "tools and options stay: {before}\n{after}");
    }
}

fn unmarked(request: &ChatRequest) -> ChatRequest {
    request.clone().with_cache_marks(Vec::new())
}

#[tokio::test]
async fn mc2_shuffled_tools_and_keys_give_the_same_bytes() {
    let server = serve(json(HI)).await;
    let request = conversation();
    let mut shuffled = request.clone();
    shuffled.tools.reverse();
    for tool in &mut shuffled.tools {
        tool.parameters = r#"{"properties":{"at":{"type":"string"},"city":{"type":"string"}},"required":["at","city"],"type":"object"}"#.to_owned();
    }
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let server = if provider == Provider::Anthropic {
            &serve(json(r#"{"content":[]}"#)).await
        } else {
            &server
        };
        ask(server, provider, &request).await.unwrap();
        ask(server, provider, &shuffled).await.unwrap();
        let bodies = bodies(server).await;
        assert_eq!(bodies[0], bodies[1]);
    }
}

#[tokio::test]
async fn parts_and_roles_are_sent_as_they_are() {
    let server = serve(json(HI)).await;
    let part = |json: &str| Part::Other(json.into());
    let parts = vec![
        Part::Text("看".to_owned()),
        part(r#"{"type":"image_url","image_url":{"url":"https://e.org/a.png","detail":"low"}}"#),
        part(
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="},"cache_control":{"type":"ephemeral"}}"#,
        ),
    ];
    let messages = vec![
        Message::compose(Role::Developer, Content::Text("d".to_owned()), Vec::new(), None),
        Message::from_json(r#"{"role":"user","name":"小明","content":"x","id":"9","timestamp":"2025-01-01T00:00:00Z"}"#).unwrap(),
        Message::compose(Role::User, Content::Parts(parts), Vec::new(), None),
        Message::assistant(""),
        Message::user("  \n"),
    ];
    let request = ChatRequest::new(messages);
    ask(&server, Provider::OpenAi, &request).await.unwrap();
    insta::assert_snapshot!(readable_body(&server).await);
}

#[tokio::test]
async fn others_are_told_what_they_know() {
    let server = serve(json(HI)).await;
    let call = ToolCall::new("functions.get_weather:0", "get_weather", "{\"city\": ");
    let reasoned = r#"{"role":"assistant","content":null,"reasoning_content":"It \ud83d rains","tool_calls":[{"id":"functions.get_weather:0","type":"function","function":{"name":"get_weather","arguments":"{\"city\": "}}]}"#;
    let messages = vec![
        Message::compose(Role::Developer, Content::Text("d".to_owned()), Vec::new(), None),
        Message::user("u"),
        Message::from_json(reasoned).unwrap(),
        Message::tool_result(&call.id, "no JSON"),
    ];
    let request = question_with_tool().with_messages(messages).with_session("s");
    let mut config = config(&server, Provider::OpenAiCompatible);
    config.session_header = Some("x-session-id".to_owned());
    RemoteModel::new(config).unwrap().complete(&request).await.unwrap();

    let sent = body(&server).await;
    assert_eq!(sent["messages"][0]["role"], "system", "no one else knows developers");
    assert_eq!(sent.get("prompt_cache_key"), None);
    let call = &sent["messages"][2]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], r#"{"raw_arguments":"{\"city\": "}"#);
    assert_eq!(call["id"], sent["messages"][3]["tool_call_id"]);
    assert_eq!(call["id"], "functions.get_weather:0", "chat templates may count on it");
    assert_eq!(sent["messages"][2]["reasoning_content"], "It \u{fffd} rains");
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests[0].headers["x-session-id"], "s");
}

/// Ids of other models in a conversation are sent to OpenAI as legal ones.
#[tokio::test]
async fn openai_gets_legal_ids() {
    let server = serve(json(HI)).await;
    let mut request = question_with_tool();
    let call = ToolCall::new("functions.get_weather:0", "get_weather", "{}");
    request.messages.push(Message::calls("", vec![call.clone()]).into());
    request.messages.push(Message::tool_result(&call.id, "r").into());
    ask(&server, Provider::OpenAi, &request).await.unwrap();
    let sent = body(&server).await;
    let id = &sent["messages"][1]["tool_calls"][0]["id"];
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    assert!(id.as_str().unwrap().chars().all(is_legal), "{id}");
    assert_eq!(*id, sent["messages"][2]["tool_call_id"]);
}

/// What no provider could handle is refused by all, and not sent.
#[tokio::test]
async fn requests_are_checked_before_they_are_written() {
    let server = serve(json(HI)).await;
    let critic = Message::compose(
        Role::Other("SYSTEM".into()),
        Content::Text("x".to_owned()),
        Vec::new(),
        None,
    );
    let mut odd = question();
    odd.messages.push(critic.into());
    for (request, expected) in [
        (question().with_cache_marks(vec![0, 1]), "follows message 1, but"),
        (odd, "unknown role \"SYSTEM\""),
        (
            question().with_tools(vec![tool("a"), tool("b"), tool("a")]),
            "the tool \"a\" is declared twice",
        ),
    ] {
        for provider in [Provider::OpenAi, Provider::OpenAiCompatible, Provider::Anthropic] {
            let error = ask(&server, provider, &request).await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Request);
            assert!(error.message.contains(expected), "{error}");
            let error = streamed(&server, provider, &request).await.unwrap_err();
            assert!(error.message.contains(expected), "{error}");
        }
    }
    assert!(bodies(&server).await.is_empty());
}

#[tokio::test]
async fn names_that_look_like_efforts_stay_whole() {
    for (provider, name) in [
        (Provider::OpenAiCompatible, "qwen-max"),
        (Provider::OpenAiCompatible, "anthropic::claude-low"),
        (Provider::OpenAiCompatible, "gpt-6"),
        (Provider::OpenAi, "gpt-5-nano-high"),
        (Provider::Anthropic, "claude-custom-high"),
    ] {
        let answer = if provider == Provider::Anthropic { r#"{"content":[]}"# } else { HI };
        let server = serve(json(answer)).await;
        let mut config = config(&server, provider);
        config.name = name.to_owned();
        RemoteModel::new(config).unwrap().complete(&question()).await.unwrap();
        let sent = body(&server).await;
        assert_eq!(sent["model"], name);
        for key in ["reasoning_effort", "thinking", "output_config", "prompt_cache_options"] {
            assert_eq!(sent.get(key), None, "{name}");
        }
    }
}

/// MC3: OpenAI's newer models accept marks, which every message up to the last one carries: a prefix
/// is found again only where a mark was when it was written.
#[tokio::test]
async fn mc3_newer_openai_models_get_marks() {
    let server = serve(json(HI)).await;
    let named = |name| RemoteModel::new(config_of(&server, name)).unwrap();
    let model = named("gpt-5.6-mini");
    assert!(model.capabilities().cache_marks && !named("gpt-4.1").capabilities().cache_marks);

    let mut request = conversation();
    request.messages.push(Message::user("Todo: 3 of 5").into());
    request.volatile = 1;
    model.complete(&request).await.unwrap();
    model.complete(&request.clone().with_cache_marks(Vec::new())).await.unwrap();
    named("gpt-5.5").complete(&request).await.unwrap();
    let bodies: Vec<Value> =
        bodies(&server).await.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    // The calls and the empty result in between cannot carry one, and the todo is after the last.
    assert_eq!(marked(&bodies[0]), [0, 1, 3, 5]);
    assert_eq!(bodies[0]["prompt_cache_options"], value!({"mode": "explicit"}));
    assert_eq!(marked(&bodies[1]), [0; 0]);
    assert_eq!(bodies[1]["prompt_cache_options"], value!({"mode": "implicit"}));
    assert_eq!(marked(&bodies[2]), [0; 0], "older models find the prefix themselves");
    assert_eq!(bodies[2].get("prompt_cache_options"), None);
    let unmarked: Value = serde_json::from_str(&bodies[0].to_string().replace(MARK, "")).unwrap();
    assert_eq!(unmarked["messages"], bodies[1]["messages"]);
}

const MARK: &str = r#","prompt_cache_breakpoint":{"mode":"explicit"}"#;

fn config_of(server: &MockServer, name: &str) -> ModelConfig {
    ModelConfig::new(Provider::OpenAi, &format!("{}/v1", server.uri()), name)
}

/// The messages with a mark.
fn marked(body: &Value) -> Vec<usize> {
    let messages = body["messages"].as_array().unwrap().iter().enumerate();
    let is_marked = |message: &Value| message.to_string().contains(MARK);
    messages.filter(|(_, message)| is_marked(message)).map(|(at, _)| at).collect()
}

/// MC3: of more marks than the provider considers, the first and the latest stay.
#[tokio::test]
async fn mc3_openai_looks_at_eighty_marks() {
    let server = serve(json(HI)).await;
    let turns = (0..100).map(|n| Message::user(&format!("u{n}")));
    let messages: Vec<_> = std::iter::once(Message::system("s")).chain(turns).collect();
    let request = ChatRequest::new(messages).with_cache_marks(vec![0, 100]);
    let model = RemoteModel::new(config_of(&server, "gpt-6")).unwrap();
    model.complete(&request).await.unwrap();
    let marks = marked(&body(&server).await);
    assert_eq!((marks.len(), marks[0], marks[1], marks[79]), (80, 0, 22, 100));
}

#[tokio::test]
async fn newer_models_have_another_word_for_the_greatest_number_of_tokens() {
    for (name, key, other) in [
        ("gpt-4.1", "max_tokens", "max_completion_tokens"),
        ("gpt-5-mini", "max_completion_tokens", "max_tokens"),
    ] {
        let server = serve(json(HI)).await;
        let mut config = config(&server, Provider::OpenAi);
        config.name = name.to_owned();
        let sampling = Sampling::default().with_max_tokens(9);
        let request = question().with_sampling(sampling);
        RemoteModel::new(config).unwrap().complete(&request).await.unwrap();
        let sent = body(&server).await;
        assert_eq!((sent.get(key), sent.get(other)), (Some(&value!(9)), None));
    }
}

#[tokio::test]
async fn servers_of_ones_own_need_no_key() {
    for provider in [Provider::OpenAiCompatible, Provider::Anthropic] {
        let (path, answer) = match provider {
            Provider::Anthropic => ("/v1/messages", r#"{"content":[]}"#),
            _ => ("/v1/chat/completions", HI),
        };
        let server = serve(json(answer)).await;
        let mut config = config(&server, provider);
        config.api_key = None;
        config.session_header = Some("x-session-id".to_owned());
        let request = question().with_session("会话 1");
        RemoteModel::new(config).unwrap().complete(&request).await.unwrap();
        let sent = server.received_requests().await.unwrap().remove(0);
        assert_eq!(sent.url.path(), path);
        for header in ["authorization", "x-api-key"] {
            assert!(!sent.headers.contains_key(header), "{header}");
        }
        assert!(sent.headers["x-session-id"].to_str().unwrap().starts_with("x_"));
        assert_eq!(sent.headers.contains_key("anthropic-version"), provider == Provider::Anthropic);
    }
}

#[tokio::test]
async fn thoughts_and_refusals_are_kept() {
    let answers = [
        (
            r#"{"role":"assistant","content":"Yes.","reasoning_content":"想"}"#,
            r#"{"role":"assistant","content":"Yes.","reasoning_content":"想"}"#,
            StopReason::End,
        ),
        (
            r#"{"role":"assistant","content":null,"refusal":"I won't."}"#,
            r#"{"role":"assistant","content":"I won't."}"#,
            StopReason::Filtered,
        ),
        (
            r#"{"role":"assistant","content":"Yes.","refusal":""}"#,
            r#"{"role":"assistant","content":"Yes."}"#,
            StopReason::End,
        ),
        (
            r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":" b"}]}"#,
            r#"{"role":"assistant","content":"a b"}"#,
            StopReason::End,
        ),
    ];
    for (message, expected, stop) in answers {
        let choice = format!(r#"{{"finish_reason":"stop","message":{message}}}"#);
        let server = serve(json(&format!(r#"{{"choices":[{choice}]}}"#))).await;
        let response = ask(&server, Provider::OpenAiCompatible, &question()).await.unwrap();
        assert_eq!(response.message.json(), expected);
        assert_eq!(response.stop, stop);
        let delta = choice.replace(r#""message":"#, r#""delta":"#);
        let server = serve(openai_events(&[&format!(r#"{{"choices":[{delta}]}}"#)])).await;
        let again = streamed(&server, Provider::OpenAiCompatible, &question()).await.unwrap();
        assert_eq!((again.message, again.stop), (response.message, response.stop));
    }
}

#[tokio::test]
async fn mc10_the_beginning_of_an_answer_is_sent_where_it_is_taken() {
    let server = serve(json(HI)).await;
    let messages = vec![Message::user("u"), Message::assistant("Sure: ")];
    let request = ChatRequest::new(messages);
    let mut config = config(&server, Provider::OpenAiCompatible);
    config.prefill = true;
    let model = RemoteModel::new(config).unwrap();
    assert!(model.capabilities().prefill && !model.capabilities().allowed_tools);
    model.complete(&request).await.unwrap();
    let sent: Value = body(&server).await;
    assert_eq!(sent["continue_final_message"], true);
    assert_eq!(sent["add_generation_prompt"], false);
    assert_eq!(sent["messages"][1]["content"], "Sure: ");
}
