//! What is sent to Anthropic's Messages API, and what is read of its answers.

use crate::wire::{
    KEY, anthropic_events, ask, bodies, body, config, conversation, json, model, pieces, question,
    question_with_tool, readable_body, serve, streamed, streaming, tool,
};
use foldback_core::{Content, Message, Part, Role, ToolCall};
use foldback_llm::{
    ChatChunk, ChatModel, ChatRequest, ModelErrorKind, Sampling, StopReason, Usage,
};
use foldback_providers::{Provider, RemoteModel};
use serde_json::{Value, json as value};

const HI: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929",
    "content":[{"type":"text","text":" Hi. "}],"stop_reason":"end_turn","stop_sequence":null,
    "usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":3}}"#;

/// MC3, MC18: the whole body: system and turns with their marks, results of calls in one turn,
/// the tools' legal names.
#[tokio::test]
async fn mc3_anthropic_gets_the_exact_request_with_marks() {
    let server = serve(json(HI)).await;
    let request = conversation()
        .with_sampling(
            Sampling::default()
                .with_temperature(0.5)
                .with_max_tokens(1024)
                .with_stop(["END"])
                .with_seed(7),
        )
        .with_session("s");
    ask(&server, Provider::Anthropic, &request).await.unwrap();
    insta::assert_snapshot!(readable_body(&server).await);

    let sent = server.received_requests().await.unwrap().remove(0);
    assert_eq!(sent.url.path(), "/v1/messages");
    assert_eq!(sent.headers["x-api-key"], KEY);
    assert_eq!(sent.headers["anthropic-version"], "2023-06-01");
}

#[tokio::test]
async fn anthropic_answers_are_read_whole() {
    let server = serve(json(HI)).await;
    let response = ask(&server, Provider::Anthropic, &question()).await.unwrap();
    assert_eq!(response.message, Message::assistant(" Hi. "), "no white space is lost");
    assert_eq!(response.stop, StopReason::End);
    assert_eq!(response.model, "claude-sonnet-4-5-20250929");
    let usage = Usage { input: 4312, output: 3, cached_read: 4000, cached_write: 300 };
    assert_eq!(response.usage, usage);
}

#[tokio::test]
async fn anthropic_calls_and_thoughts_come_back_and_are_sent_again() {
    let answer = r#"{"content":[
        {"type":"thinking","thinking":"想一想","signature":"sig=="},
        {"type":"redacted_thinking","data":"xx"},
        {"type":"text","text":"Let me look."},
        {"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"上海","at":"now"}},
        {"type":"tool_use","id":"toolu_2","name":"get_time","input":{}}],
        "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#;
    let server = serve(json(answer)).await;
    let mut request = question_with_tool();
    let response = ask(&server, Provider::Anthropic, &request).await.unwrap();
    let calls = [
        ToolCall::new("toolu_1", "get_weather", r#"{"city":"上海","at":"now"}"#),
        ToolCall::new("toolu_2", "get_time", "{}"),
    ];
    assert_eq!(response.message.tool_calls(), calls);
    assert_eq!(response.message.text(), "Let me look.");
    assert_eq!(response.stop, StopReason::ToolCalls);

    request.messages.push(response.message.into());
    for call in &calls {
        request.messages.push(Message::tool_result(&call.id, "r").into());
    }
    let server = serve(json(HI)).await;
    ask(&server, Provider::Anthropic, &request).await.unwrap();
    let sent = body(&server).await;
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(sent["messages"][1]["content"], answer["content"], "the turn goes back as it came");
}

/// The same answer in pieces, with a text, thinking and two calls.
#[tokio::test]
async fn anthropic_streams_are_read_piece_by_piece() {
    let frames = [
        r#"{"type":"message_start","message":{"id":"m","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"想"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"上海 "}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t0","name":"get_weather","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\": 1."}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"50}"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"get_time","input":{}}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":77}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let server = serve(anthropic_events(&frames)).await;
    let (chunks, error) =
        pieces(&streaming(&server, Provider::Anthropic), &question_with_tool()).await;
    assert_eq!(error, None);
    let call = |index, id: Option<&str>, name: Option<&str>, arguments: &str| ChatChunk::ToolCall {
        index,
        id: id.map(str::to_owned),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    };
    let (done, chunks) = chunks.split_last().unwrap();
    let expected = [
        ChatChunk::Text("上海 ".to_owned()),
        call(0, Some("t0"), Some("get_weather"), ""),
        call(0, None, None, "{\"city\": 1."),
        call(0, None, None, "50}"),
        call(1, Some("t1"), Some("get_time"), ""),
    ];
    assert_eq!(chunks, expected);
    let ChatChunk::Done(response) = done else { panic!("{done:?}") };
    let calls = [
        ToolCall::new("t0", "get_weather", "{\"city\": 1.50}"),
        ToolCall::new("t1", "get_time", "{}"),
    ];
    assert_eq!(response.message.text(), "上海 ");
    assert_eq!(response.message.tool_calls(), calls, "the arguments are the model's own text");
    assert!(
        response
            .message
            .json()
            .contains(r#"{"type":"thinking","thinking":"想","signature":"sig"}"#)
    );
    assert_eq!(response.stop, StopReason::ToolCalls);
    assert_eq!(
        response.usage,
        Usage { input: 4312, output: 77, cached_read: 4000, cached_write: 300 }
    );
    assert_eq!(response.model, "claude-x");
}

/// MC3: at most four marks, the first at the end of the system prompt, the others the latest.
#[tokio::test]
async fn mc3_at_most_four_marks_the_head_and_the_latest() {
    let messages: Vec<_> =
        std::iter::once(Message::system("s"))
            .chain((0..6).flat_map(|n| {
                [Message::user(&format!("u{n}")), Message::assistant(&format!("a{n}"))]
            }))
            .chain([Message::user("last")])
            .collect();
    let all: Vec<usize> = (1..messages.len()).collect();
    let request = ChatRequest::new(messages).with_cache_marks(all).with_tools(vec![tool("t")]);
    assert_eq!(marked(&request).await, ["s", "u5", "a5", "last"]);

    let few = request.clone().with_cache_marks(vec![3]);
    assert_eq!(marked(&few).await, ["s", "u1"], "the head is marked with any other");
    let none = request.clone().with_cache_marks(Vec::new());
    assert_eq!(marked(&none).await, [""; 0]);
    let headless =
        request.clone().with_messages(request.messages[1..].to_vec()).with_cache_marks(vec![0, 2]);
    assert_eq!(marked(&headless).await, ["t", "u0", "u1"], "without a system prompt: the tools");
    // A mark on an empty message is set on what was said before it.
    let mut blank = request.clone();
    blank.messages[2] = Message::assistant(" ").into();
    blank.cache_marks = vec![2];
    assert_eq!(marked(&blank).await, ["s", "u0"]);

    let beyond = request.with_cache_marks(vec![14]);
    let server = serve(json(HI)).await;
    let error = ask(&server, Provider::Anthropic, &beyond).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Request);
    assert!(error.message.contains("follows message 14, but the request has 14 messages"));
}

/// MC3: the mark at the head's end stays, although the request marks more of it than there is room for.
#[tokio::test]
async fn mc3_the_head_is_marked_whatever_else_is() {
    let said = ["s0", "s1", "s2"].map(Message::system).into_iter();
    let turns = [
        Message::user("u0"),
        Message::assistant("a0"),
        Message::user("u1"),
        Message::assistant("a1"),
        Message::user("u2"),
    ];
    let messages = said.chain(turns);
    let request =
        |cache_marks: &[usize]| ChatRequest::new(messages).with_cache_marks(cache_marks.to_vec());
    let request = request(&[0, 3, 4, 5, 7]);
    assert_eq!(marked(&request).await, ["s2", "a0", "u1", "u2"]);
    let few = request.with_cache_marks(vec![0, 2, 7]);
    assert_eq!(marked(&few).await, ["s0", "s2", "u2"], "where there is room, both are");
}

/// MC3: thinking accepts no mark, so it is set on what was said before it.
#[tokio::test]
async fn mc3_a_mark_on_thoughts_steps_back() {
    let thoughts = |content: &str, kind: &str| {
        Message::from_json(&format!(
            r#"{{"role":"assistant","content":"{content}","thinking_blocks":[{{"type":"{kind}"}}]}}"#
        ))
        .unwrap()
    };
    for kind in ["thinking", "redacted_thinking"] {
        for (content, expected) in [("", "u"), ("a", "a")] {
            let messages = vec![Message::user("u"), thoughts(content, kind), Message::user("v")];
            let request = ChatRequest::new(messages).with_cache_marks(vec![1]);
            assert_eq!(marked(&request).await, [expected], "{kind}");
        }
    }
}

/// The names or texts of marked blocks, in the provider's order: tools, system, messages.
async fn marked(request: &ChatRequest) -> Vec<String> {
    let server = serve(json(HI)).await;
    ask(&server, Provider::Anthropic, request).await.unwrap();
    let body = body(&server).await;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let turns = list(&body["messages"]).into_iter().flat_map(|turn| list(&turn["content"]));
    let all = list(&body["tools"]).into_iter().chain(list(&body["system"])).chain(turns);
    all.filter(|block| block.get("cache_control").is_some())
        .map(|block| {
            let name = block["name"].as_str().or(block["text"].as_str());
            name.unwrap().to_owned()
        })
        .collect()
}

#[tokio::test]
async fn mc3_marks_can_live_an_hour() {
    let server = serve(json(HI)).await;
    let mut config = config(&server, Provider::Anthropic);
    config.long_cache = true;
    RemoteModel::new(config).unwrap().complete(&conversation()).await.unwrap();
    let sent = body(&server).await;
    assert_eq!(sent["system"][0]["cache_control"], value!({"type": "ephemeral", "ttl": "1h"}));
}

/// MC1: apart from its marks, each request continues the bytes of the one before.
#[tokio::test]
async fn mc1_anthropic_requests_of_one_conversation_share_their_beginning() {
    let server = serve(json(HI)).await;
    let model = model(&server, Provider::Anthropic);
    let whole = conversation();
    // Up to the question, to both results, and to the next question.
    for end in [2, 5, 6] {
        let messages = whole.messages[..end].to_vec();
        let request = whole.clone().with_messages(messages).with_cache_marks(vec![0, end - 1]);
        model.complete(&request).await.unwrap();
    }
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let bodies: Vec<_> = bodies(&server).await.iter().map(|body| body.replace(mark, "")).collect();
    assert_eq!(bodies.len(), 3);
    for (before, after) in bodies.iter().zip(&bodies[1..]) {
        // The last turn may continue; before its end everything is the same.
        let end = before.find(r#"]}],"max_tokens""#).unwrap();
        assert!(after.starts_with(&before[..end]), "{before}\n{after}");
        let rest = before.find(r#","max_tokens""#).unwrap();
        assert!(after.ends_with(&before[rest..]), "{before}\n{after}");
    }
}

/// What the provider would refuse is rewritten, always in the same way.
#[tokio::test]
async fn anthropic_turns_are_legal() {
    let server = serve(json(HI)).await;
    let part = |json: &str| Part::Other(json.into());
    let calls = vec![
        ToolCall::new("functions.a:0", "web_search", "{\"q\": "),
        ToolCall::new("二", "web_search", "[1]"),
    ];
    let parts = vec![
        Part::Text("看".to_owned()),
        Part::Text(" ".to_owned()),
        part(r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}"#),
        part(r#"{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}"#),
        part(
            r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QQ=="}}"#,
        ),
        part(
            r#"{"type":"image","source":{"type":"url","url":"u"},"cache_control":{"type":"ephemeral"}}"#,
        ),
    ];
    let messages = vec![
        Message::system("s1"),
        Message::compose(Role::Developer, Content::Text("s2".to_owned()), Vec::new(), None),
        Message::system("  "),
        Message::assistant("I was saying:"),
        Message::calls("", calls.clone()),
        Message::system("Late instruction."),
        Message::tool_result(&calls[0].id, " "),
        Message::tool_result(&calls[1].id, "r2"),
        Message::user(" \n "),
        Message::compose(Role::User, Content::Parts(parts), Vec::new(), None),
        Message::assistant(""),
        Message::user("and?"),
    ];
    let request = ChatRequest::new(messages).with_tools(vec![tool("web_search")]);
    ask(&server, Provider::Anthropic, &request).await.unwrap();
    insta::assert_snapshot!(readable_body(&server).await);
}

#[tokio::test]
async fn what_cannot_be_said_is_named() {
    let server = serve(json(HI)).await;
    let of = |json: &str| vec![Message::from_json(json).unwrap()];
    let audio = r#"{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}"#;
    for (messages, expected) in [
        (Vec::new(), "there is no message to answer"),
        (of(r#"{"role":"user","content":" "}"#), "there is no message to answer"),
        (of(r#"{"role":"critic","content":"x"}"#), "unknown role \"critic\""),
        (of(r#"{"role":"tool","content":"x"}"#), "must name the call that it answers"),
        (of(audio), "a part of the type \"input_audio\""),
        (of(r#"{"role":"assistant","content":"Sure:"}"#), "prefill is off"),
    ] {
        let request = ChatRequest::new(messages);
        let error = ask(&server, Provider::Anthropic, &request).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Request);
        assert!(error.message.contains(expected), "{error}");
    }
    let mut request = question_with_tool();
    request.tools[0].parameters = "[]".to_owned();
    for provider in [Provider::Anthropic, Provider::OpenAi] {
        let error = ask(&server, provider, &request).await.unwrap_err();
        assert!(error.message.contains("the tool \"get_weather\""), "{error}");
    }
    assert!(bodies(&server).await.is_empty(), "nothing was sent");
}

#[tokio::test]
async fn mc10_the_beginning_of_an_answer_ends_with_a_word() {
    let server = serve(json(HI)).await;
    let messages = vec![Message::user("u"), Message::assistant("Sure: \n")];
    let request = ChatRequest::new(messages);
    let config = config(&server, Provider::Anthropic).with_prefill(true);
    let model = RemoteModel::new(config).unwrap();
    assert!(model.capabilities().prefill && model.capabilities().cache_marks);
    model.complete(&request).await.unwrap();
    assert_eq!(body(&server).await["messages"][1]["content"][0]["text"], "Sure:");

    // If that beginning is empty, the last message is the user's, and stays unchanged.
    let server = serve(json(HI)).await;
    let messages = vec![Message::user("code:\n\n  "), Message::assistant("")];
    let request = ChatRequest::new(messages);
    let config = crate::wire::config(&server, Provider::Anthropic).with_prefill(true);
    RemoteModel::new(config).unwrap().complete(&request).await.unwrap();
    assert_eq!(body(&server).await["messages"][0]["content"][0]["text"], "code:\n\n  ");
}

#[tokio::test]
async fn anthropic_says_why_it_ended() {
    for (told, expected) in [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("refusal", StopReason::Filtered),
        ("pause_turn", StopReason::Other("pause_turn".to_owned())),
    ] {
        let server = serve(json(&HI.replace("end_turn", told))).await;
        let response = ask(&server, Provider::Anthropic, &question()).await.unwrap();
        assert_eq!(response.stop, expected);
        let frames = [
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}"#,
            &format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{told}"}}}}"#),
            r#"{"type":"message_stop"}"#,
        ];
        let server = serve(anthropic_events(&frames)).await;
        let response = streamed(&server, Provider::Anthropic, &question()).await.unwrap();
        assert_eq!(response.stop, expected);
    }
}
