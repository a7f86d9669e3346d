//! Answers that are not as they should be: each gives a response or a typed error, never a panic.

use crate::wire::{
    anthropic_events, ask, events, json, openai_events, pieces, question, question_with_tool,
    serve, streamed, streaming,
};
use foldback_core::{Message, ToolCall};
use foldback_llm::{ChatChunk, ModelErrorKind, StopReason};
use foldback_providers::Provider;
use serde_json::json as value;
use std::collections::BTreeSet;
use wiremock::ResponseTemplate;

/// An OpenAI answer with these calls, whole and as one frame of a stream.
fn calls(calls: &str) -> [ResponseTemplate; 2] {
    let whole = format!(
        r#"{{"choices":[{{"finish_reason":"tool_calls","message":{{"role":"assistant","content":null,"tool_calls":{calls}}}}}]}}"#
    );
    let frame = whole.replace(r#""message":"#, r#""delta":"#).replace('\n', " ");
    [json(&whole), openai_events(&[&frame])]
}

/// What is read of an answer, whole and streamed; both must agree.
async fn calls_read(template: &str) -> Vec<ToolCall> {
    let [whole, frames] = calls(template);
    let request = question_with_tool();
    let whole = ask(&serve(whole).await, Provider::OpenAi, &request).await.unwrap();
    let frames = streamed(&serve(frames).await, Provider::OpenAi, &request).await.unwrap();
    assert_eq!(whole.message, frames.message);
    assert_eq!(whole.stop, frames.stop);
    whole.message.tool_calls().to_vec()
}

fn call(id: &str, arguments: &serde_json::Value) -> String {
    value!([{"index": 0, "id": id, "type": "function",
        "function": {"name": "get_weather", "arguments": arguments}}])
    .to_string()
}

/// The arguments are kept as the model wrote them, so that it can be told what is wrong with them.
#[tokio::test]
async fn arguments_that_are_no_json_are_kept() {
    for arguments in
        ["{\"city\": \"上", "city=上海", "{'city': 'x'}", "[1, 2]", "\"x\"", "{}{}", "</tool_call>"]
    {
        let read = calls_read(&call("c", &value!(arguments))).await;
        assert_eq!(read, [ToolCall::new("c", "get_weather", arguments)]);
    }
}

#[tokio::test]
async fn arguments_of_other_types_are_kept_as_json() {
    for (arguments, expected) in [
        (value!({"city": "上海", "at": 1.5}), r#"{"city":"上海","at":1.5}"#),
        (value!(["a"]), r#"["a"]"#),
        (value!(7), "7"),
        (value!(true), "true"),
        (value!(null), "{}"),
        (value!("  "), "{}"),
    ] {
        let read = calls_read(&call("c", &arguments)).await;
        assert_eq!(read, [ToolCall::new("c", "get_weather", expected)], "{arguments}");
    }
}

#[tokio::test]
async fn unknown_tools_and_empty_names_are_kept() {
    let template = r#"[{"index":0,"id":"a","function":{"name":"no_such_tool","arguments":"{}"}},
        {"index":1,"id":"b","function":{"arguments":"{}"}},{"index":2,"id":"c"}]"#;
    let read = calls_read(template).await;
    let expected = [
        ToolCall::new("a", "no_such_tool", "{}"),
        ToolCall::new("b", "", "{}"),
        ToolCall::new("c", "", "{}"),
    ];
    assert_eq!(read, expected);
}

/// Results are matched by ids, so each call has one of its own, unlike those in the request.
#[tokio::test]
async fn calls_without_an_id_or_with_one_twice_get_their_own() {
    let template = r#"[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"n\":1}"}},
        {"index":1,"id":"a","function":{"name":"t","arguments":"{\"n\":2}"}},
        {"index":2,"function":{"name":"t","arguments":"{\"n\":3}"}},
        {"index":3,"id":"","function":{"name":"t","arguments":"{\"n\":4}"}},
        {"index":4,"id":null,"function":{"name":"t","arguments":"{\"n\":5}"}},
        {"index":5,"id":"old","function":{"name":"t","arguments":"{\"n\":6}"}}]"#;
    let mut request = question_with_tool();
    let old = ToolCall::new("old", "t", "{}");
    request.messages.push(Message::calls("", vec![old.clone()]).into());
    request.messages.push(Message::tool_result(&old.id, "r").into());
    let [whole, frames] = calls(template);
    let read = ask(&serve(whole).await, Provider::OpenAi, &request).await.unwrap();
    let again = streamed(&serve(frames).await, Provider::OpenAi, &request).await.unwrap();
    assert_eq!(read.message, again.message, "the same answer has the same ids");
    let read = read.message.tool_calls();
    let ids: BTreeSet<&str> = read.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), 6);
    assert!(ids.contains("a") && !ids.contains("old") && !ids.contains(""));
    let arguments: Vec<&str> = read.iter().map(|call| call.arguments.as_str()).collect();
    let expected: Vec<String> = (1..=6).map(|n| format!("{{\"n\":{n}}}")).collect();
    assert_eq!(arguments, expected);

    request.messages.push(Message::user("more").into());
    let [whole, _] = calls(template);
    let later = ask(&serve(whole).await, Provider::OpenAi, &request).await.unwrap();
    let later: BTreeSet<&str> =
        later.message.tool_calls().iter().map(|call| call.id.as_str()).collect();
    assert_eq!(later.intersection(&ids).collect::<Vec<_>>(), [&"a"], "other answers have others");
}

/// Servers whose pieces have no index, one index for all, or arbitrary ones.
#[tokio::test]
async fn pieces_find_their_call() {
    let piece = |json: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{json}]}}}}]}}"#);
    let begin = |index: &str, id: &str| {
        piece(&format!(
            r#"{{{index}"id":"{id}","function":{{"name":"t","arguments":"{{\"{id}\":"}}}}"#
        ))
    };
    let more = |index: &str| piece(&format!(r#"{{{index}"function":{{"arguments":"1}}"}}}}"#));
    for (what, first, second) in [
        ("an index each", r#""index":0,"#, r#""index":1,"#),
        ("no index", "", ""),
        ("one index for all", r#""index":0,"#, r#""index":0,"#),
        (
            "indexes out of all proportion",
            r#""index":4294967295,"#,
            r#""index":18446744073709551615,"#,
        ),
        ("a negative index", r#""index":-1,"#, r#""index":-2,"#),
    ] {
        let frames = [begin(first, "a"), more(first), begin(second, "b"), more(second)];
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        let server = serve(openai_events(&frames)).await;
        let response = streamed(&server, Provider::OpenAi, &question()).await.unwrap();
        let expected =
            [ToolCall::new("a", "t", r#"{"a":1}"#), ToolCall::new("b", "t", r#"{"b":1}"#)];
        assert_eq!(response.message.tool_calls(), expected, "{what}");
        assert_eq!(response.stop, StopReason::ToolCalls, "{what}");
    }
}

/// A streamed answer of these pieces of calls, each in a frame of its own.
async fn call_of_pieces(pieces: &[&str]) -> foldback_llm::ChatResponse {
    let frames: Vec<String> = pieces
        .iter()
        .map(|piece| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{piece}]}}}}]}}"#))
        .collect();
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let server = serve(openai_events(&frames)).await;
    streamed(&server, Provider::OpenAiCompatible, &question()).await.unwrap()
}

/// A server that gives every piece of one call another id.
#[tokio::test]
async fn a_new_id_alone_begins_no_call() {
    let response = call_of_pieces(&[
        r#"{"index":0,"id":"x1","function":{"name":"t","arguments":""}}"#,
        r#"{"index":0,"id":"x2","function":{"arguments":"{\"a\":"}}"#,
        r#"{"index":0,"id":"x3","function":{"name":"","arguments":"1}"}}"#,
    ])
    .await;
    assert_eq!(response.message.tool_calls(), [ToolCall::new("x1", "t", r#"{"a":1}"#)]);
}

/// A server that repeats id and name with every piece.
#[tokio::test]
async fn an_id_and_a_name_said_again_begin_no_call() {
    for index in ["", r#""index":0,"#] {
        let piece = |arguments: &str| {
            format!(r#"{{{index}"id":"x","function":{{"name":"t","arguments":"{arguments}"}}}}"#)
        };
        let response = call_of_pieces(&[&piece("[1"), &piece(",2"), &piece("]")]).await;
        assert_eq!(response.message.tool_calls(), [ToolCall::new("x", "t", "[1,2]")], "{index}");
    }
}

/// Calls without ids, in one frame or in several, are distinguished by their names.
#[tokio::test]
async fn a_name_begins_another_call() {
    for index in ["", r#""index":0,"#] {
        let begin = |name: &str| {
            format!(r#"{{{index}"function":{{"name":"{name}","arguments":"{{\"{name}\":"}}}}"#)
        };
        let more = format!(r#"{{{index}"function":{{"arguments":"1}}"}}}}"#);
        let (a, b) = (begin("a"), begin("b"));
        for pieces in [
            vec![a.clone(), more.clone(), b.clone(), more.clone()],
            vec![format!("{a},{more},{b},{more}")],
        ] {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let response = call_of_pieces(&pieces).await;
            let read: Vec<(&str, &str)> = response
                .message
                .tool_calls()
                .iter()
                .map(|call| (call.name.as_str(), call.arguments.as_str()))
                .collect();
            assert_eq!(read, [("a", r#"{"a":1}"#), ("b", r#"{"b":1}"#)], "{index}");
        }
    }
}

/// A name that comes after its call's beginning: the call is sent with it, and with what came before.
#[tokio::test]
async fn a_late_name_is_the_calls() {
    let frame = |piece: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{piece}]}}}}]}}"#);
    let frames = [
        frame(r#"{"index":0,"id":"x","function":{"arguments":"{\"城\":"}}"#),
        frame(r#"{"index":0,"function":{"name":"t","arguments":"1"}}"#),
        frame(r#"{"index":0,"function":{"arguments":"}"}}"#),
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let server = serve(openai_events(&frames)).await;
    let (chunks, error) = pieces(&streaming(&server, Provider::OpenAi), &question()).await;
    assert_eq!(error, None);
    let call = |id: Option<&str>, arguments: &str| ChatChunk::ToolCall {
        index: 0,
        id: id.map(str::to_owned),
        name: id.map(|_| "t".to_owned()),
        arguments: arguments.to_owned(),
    };
    assert_eq!(chunks[..2], [call(Some("x"), "{\"城\":1"), call(None, "}")]);
    let ChatChunk::Done(response) = &chunks[2] else { panic!("{chunks:?}") };
    assert_eq!(response.message.tool_calls(), [ToolCall::new("x", "t", "{\"城\":1}")]);
}

/// An end is not an answer.
#[tokio::test]
async fn an_end_without_an_answer_is_an_error() {
    use ModelErrorKind::{Response, Unavailable};
    let error = r#"{"object":"error","message":"CUDA out of memory","type":"InternalServerError","code":500}"#;
    for (frames, kind, expected) in [
        (vec![], Response, "without any choices"),
        (vec![r#"{"choices":[],"usage":{"prompt_tokens":3}}"#], Response, "without any choices"),
        (vec![error], Unavailable, "CUDA out of memory"),
    ] {
        let server = serve(openai_events(&frames)).await;
        let error = streamed(&server, Provider::OpenAi, &question()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{frames:?}");
        assert!(error.message.contains(expected), "{error}");
    }
    let whole = ask(&serve(json(error)).await, Provider::OpenAi, &question()).await.unwrap_err();
    assert_eq!(whole.kind, Unavailable);
    let empty = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let server = serve(openai_events(&[empty])).await;
    let response = streamed(&server, Provider::OpenAi, &question()).await.unwrap();
    assert_eq!(response.message.text(), "", "a model may have nothing to say");
}

/// A server that does not stream answers whole, which is accepted; a page is not an answer.
#[tokio::test]
async fn an_answer_that_is_not_streamed_is_taken_whole() {
    let whole =
        r#"{"choices":[{"message":{"content":"好"}}],"content":[{"type":"text","text":"好"}]}"#;
    let server = serve(json(whole)).await;
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let response = streamed(&server, provider, &question()).await.unwrap();
        assert_eq!(response.message.text(), "好");
    }
    let server = serve(json("<html>好</html>")).await;
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let error = streamed(&server, provider, &question()).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Response);
        assert!(error.message.contains("no server-sent events"), "{error}");
    }
}

/// A request to stream that is refused with a success status.
#[tokio::test]
async fn an_error_in_place_of_a_stream_is_told() {
    for (body, kind, expected) in [
        (
            "{\n  \"error\": {\"type\": \"overloaded_error\", \"message\": \"慢一点\"}\n}\n",
            ModelErrorKind::Unavailable,
            "the provider broke off with an error: 慢一点",
        ),
        (
            r#"{"object":"error","message":"no such model","code":404}"#,
            ModelErrorKind::Request,
            "the provider broke off with an error: no such model",
        ),
    ] {
        let server = serve(json(body)).await;
        for provider in [Provider::OpenAi, Provider::Anthropic] {
            let error = streamed(&server, provider, &question()).await.unwrap_err();
            assert_eq!((error.kind, error.message.as_str()), (kind, expected));
        }
    }
}

/// Counts that no provider means.
#[tokio::test]
async fn counts_without_measure_fail_nothing() {
    let most = u64::MAX;
    let usage = format!(
        r#"{{"input_tokens":{most},"cache_read_input_tokens":{most},"cache_creation_input_tokens":{most},"output_tokens":{most}}}"#
    );
    let start = format!(r#"{{"type":"message_start","message":{{"usage":{usage}}}}}"#);
    let delta = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#
    );
    let frames = [start.as_str(), &delta, r#"{"type":"message_stop"}"#];
    let server = serve(anthropic_events(&frames)).await;
    let response = streamed(&server, Provider::Anthropic, &question()).await.unwrap();
    let mut usage = response.usage;
    usage += response.usage;
    assert_eq!((usage.input, usage.output), (most, most));
    assert_eq!((usage.cached_read, usage.cached_write), (most, most));
}

#[tokio::test]
async fn huge_arguments_come_back_whole() {
    let text = "数据🌧x".repeat(300_000);
    let arguments = value!({ "text": text }).to_string();
    let read = calls_read(&call("c", &value!(arguments))).await;
    assert!(read[0].arguments == arguments, "{} bytes", read[0].arguments.len());
}

#[tokio::test]
async fn half_a_surrogate_pair_fails_nothing() {
    let template =
        r#"[{"index":0,"id":"c","function":{"name":"t","arguments":"{\"a\": \"\ud83d\"}"}}]"#;
    let read = calls_read(template).await;
    assert_eq!(read[0].arguments, "{\"a\": \"\u{fffd}\"}");
}

#[tokio::test]
async fn text_around_calls_is_kept() {
    let text = "Sure.\n<tool_call>{\"name\":\"x\"}</tool_call>\n<|im_end|>";
    let answer = value!({"choices": [{"finish_reason": "stop", "message": {"content": text}}]});
    let response =
        ask(&serve(json(&answer.to_string())).await, Provider::OpenAi, &question()).await;
    let response = response.unwrap();
    assert_eq!(response.message.text(), text);
    assert!(response.message.tool_calls().is_empty(), "text never becomes a call here");
}

/// Whole answers that cannot be read.
#[tokio::test]
async fn unreadable_answers_are_typed_errors() {
    let deep = format!("{{\"choices\":{}", "[".repeat(200_000));
    let closed = format!("{deep}{}}}", "]".repeat(200_000));
    let bodies = [
        "",
        "null",
        "[]",
        "7",
        "\"x\"",
        "{",
        "{\"choices\":[{\"message\":{\"content\":\"Hel",
        "<html>504</html>",
        "{}",
        r#"{"choices":[]}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[{}]}"#,
        r#"{"choices":[{"message":"x"}]}"#,
        r#"{"content":"x"}"#,
        r#"{"content":7}"#,
        "\u{feff}{}",
        &deep,
        &closed,
    ];
    for provider in [Provider::OpenAi, Provider::OpenAiCompatible, Provider::Anthropic] {
        for body in bodies {
            for kind in ["application/json", "text/html", ""] {
                let template = ResponseTemplate::new(200).set_body_raw(body.to_owned(), kind);
                let error = ask(&serve(template).await, provider, &question()).await.unwrap_err();
                let shown: String = body.chars().take(60).collect();
                assert_eq!(error.kind, ModelErrorKind::Response, "{shown} {error}");
                assert!(error.message.len() < 500, "{shown} {error}");
            }
        }
    }
}

/// Whole answers and streams report the same about bytes that are not UTF-8.
#[tokio::test]
async fn answers_that_are_no_text_are_a_typed_error() {
    for body in [
        b"{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}".to_vec(),
        "{\"content\":[{\"type\":\"text\",\"text\":\"上\"}]}".as_bytes()[..36].to_vec(),
    ] {
        for provider in [Provider::OpenAi, Provider::Anthropic] {
            let template =
                ResponseTemplate::new(200).set_body_raw(body.clone(), "application/json");
            let error = ask(&serve(template).await, provider, &question()).await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Response);
            assert!(error.message.starts_with("the answer cannot be read: i"), "{error}");
        }
    }
}

/// An answer is read even if its type is missing, as with some proxies.
#[tokio::test]
async fn answers_of_another_content_type_are_read() {
    let body = r#"{"choices":[{"message":{"content":"好"}}]}"#;
    for kind in ["text/plain", "application/octet-stream", ""] {
        let template = ResponseTemplate::new(200).set_body_raw(body, kind);
        let response = ask(&serve(template).await, Provider::OpenAi, &question()).await.unwrap();
        assert_eq!(response.message.text(), "好");
    }
}

/// Members of unexpected types are ignored.
#[tokio::test]
async fn members_of_wrong_types_are_passed_over() {
    let openai = r#"{"model":7,"usage":{"prompt_tokens":"many","completion_tokens":-3,"prompt_tokens_details":[]},
        "choices":[{"finish_reason":{},"message":{"role":7,"content":"ok","tool_calls":{"a":1},"reasoning":[1],"refusal":{}}}]}"#;
    let anthropic = r#"{"model":[],"usage":"none","stop_reason":{},"content":[{"type":"text","text":"ok"},{"type":"text","text":7},7,null,
        {"type":"server_tool_use","id":1},{"type":"thinking"},{"type":"tool_use"}]}"#;
    let response = ask(&serve(json(openai)).await, Provider::OpenAi, &question()).await.unwrap();
    assert_eq!((response.message.text().as_ref(), &response.stop), ("ok", &StopReason::End));
    assert_eq!(response.usage, foldback_llm::Usage::default());
    assert_eq!(response.model, "gpt-4.1");
    let frame = openai.replace(r#""message":"#, r#""delta":"#).replace('\n', " ");
    let server = serve(openai_events(&[&frame])).await;
    let response = streamed(&server, Provider::OpenAi, &question()).await.unwrap();
    assert_eq!(response.message.text(), "ok");

    let server = serve(json(anthropic)).await;
    let response = ask(&server, Provider::Anthropic, &question()).await.unwrap();
    assert_eq!(response.message.text(), "ok");
    assert_eq!(response.message.tool_calls().len(), 1, "a call without name and id is still one");
    assert_eq!(response.stop, StopReason::ToolCalls);
}

/// Streams that break off, or whose frames cannot be read: the pieces before stay, then an error.
#[tokio::test]
async fn streams_that_break_off_are_typed_errors() {
    let hel = r#"data: {"choices":[{"delta":{"content":"Hel"}}]}"#;
    let start = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hel"}}"#;
    for rest in
        ["", "data: {\"choices\":[{\"del", "data: nonsense\n\n", "data: \n\n", ": comment\n\n"]
    {
        for (provider, first) in [(Provider::OpenAi, hel), (Provider::Anthropic, start)] {
            let event =
                if provider == Provider::Anthropic { "event: content_block_start\n" } else { "" };
            let server = serve(events(&format!("{event}{first}\n\n{rest}"))).await;
            let (chunks, error) = pieces(&streaming(&server, provider), &question()).await;
            assert_eq!(chunks, [foldback_llm::ChatChunk::Text("Hel".to_owned())], "{rest:?}");
            assert_eq!(error.unwrap().kind, ModelErrorKind::Response, "{rest:?}");
        }
    }
    for body in ["", "data: [DONE]x\n\n", "<html>", "{\"error\":"] {
        for provider in [Provider::OpenAi, Provider::Anthropic] {
            let (chunks, error) =
                pieces(&streaming(&serve(events(body)).await, provider), &question()).await;
            assert!(chunks.is_empty());
            assert_eq!(error.unwrap().kind, ModelErrorKind::Response, "{body:?}");
        }
    }
}

/// Frames of Anthropic's that contradict each other.
#[tokio::test]
async fn frames_out_of_order_fail_nothing() {
    let frames = [
        r#"{"type":"content_block_stop","index":9}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"好"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"n","input":{"a":1}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"web_search_tool_result"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":null}"#,
        r#"{"type":"message_delta","delta":null,"usage":7}"#,
        r#"{"type":"who_knows"}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let server = serve(anthropic_events(&frames)).await;
    let response = streamed(&server, Provider::Anthropic, &question()).await.unwrap();
    assert_eq!(response.message.text(), "好");
    assert_eq!(response.message.tool_calls(), [ToolCall::new("t", "n", r#"{"a":1}"#)]);
}

/// Arguments that broke off at the token limit.
#[tokio::test]
async fn a_cut_call_says_that_it_was_cut() {
    let body = value!({"choices": [{"finish_reason": "length", "message": {"tool_calls":
        [{"id": "c", "function": {"name": "t", "arguments": "{\"city\": \"上"}}]}}]});
    let server = serve(json(&body.to_string())).await;
    let response = ask(&server, Provider::OpenAi, &question()).await.unwrap();
    assert_eq!(response.stop, StopReason::Length);
    assert_eq!(response.message.tool_calls()[0].arguments, "{\"city\": \"上");

    let frames = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\": \"上"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let server = serve(anthropic_events(&frames)).await;
    let response = streamed(&server, Provider::Anthropic, &question()).await.unwrap();
    assert_eq!(response.stop, StopReason::Length);
    assert_eq!(response.message.tool_calls(), [ToolCall::new("t", "n", "{\"a\": \"上")]);

    // One that was cut off before its arguments is not a call with none.
    for (stop, arguments) in [("length", "{"), ("content_filter", "{"), ("tool_calls", "{}")] {
        let body = value!({"choices": [{"finish_reason": stop, "message": {"tool_calls":
            [{"id": "c", "function": {"name": "t", "arguments": ""}}]}}]});
        let server = serve(json(&body.to_string())).await;
        let response = ask(&server, Provider::OpenAi, &question()).await.unwrap();
        assert_eq!(response.message.tool_calls()[0].arguments, arguments);
    }

    // Such a call is sent back in a request that can be read.
    let mut request = question_with_tool().with_messages(question().messages);
    request.messages.push(response.message.into());
    request.messages.push(
        Message::tool_result(&foldback_core::ToolCallId::new("t"), "The arguments broke off.")
            .into(),
    );
    let server = serve(json(r#"{"content":[]}"#)).await;
    ask(&server, Provider::Anthropic, &request).await.unwrap();
    let sent = crate::wire::body(&server).await;
    let input = &sent["messages"][1]["content"][0]["input"];
    assert_eq!(*input, value!({"raw_arguments": "{\"a\": \"上"}));
}
