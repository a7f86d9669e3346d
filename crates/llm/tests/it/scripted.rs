//! The model that answers from a script.

use foldback_core::{Message, ToolCall, ToolDefinition};
use foldback_llm::{
    AllowedTools, Answer, ChatChunk, ChatModel, ChatRequest, ModelError, ModelErrorKind,
    ScriptedModel, StopReason, ToolChoice,
};
use futures::StreamExt;
use std::time::Duration;
use tokio::time::Instant;

fn request(text: &str) -> ChatRequest {
    ChatRequest::new([Message::user(text)])
}

fn overloaded() -> ModelError {
    ModelError {
        retry_after: Some(Duration::from_secs(3)),
        ..ModelError::new(ModelErrorKind::RateLimit, "too many requests")
    }
}

async fn chunks(model: &ScriptedModel, request: &ChatRequest) -> Vec<Result<ChatChunk, String>> {
    let stream = model.stream(request).await.unwrap();
    stream.map(|chunk| chunk.map_err(|error| error.to_string())).collect().await
}

#[tokio::test]
async fn answers_come_in_order_and_requests_are_kept() {
    let call = ToolCall::new("c1", "browser_查询订单", r#"{"order_id": "123456"}"#);
    let model = ScriptedModel::new([call.clone().into(), overloaded().into(), "好的".into()]);
    let first = model.complete(&request("查一下我的订单")).await.unwrap();
    assert_eq!(first.message.tool_calls(), [call]);
    assert_eq!((&first.stop, first.model.as_str()), (&StopReason::ToolCalls, "scripted"));
    let error = model.complete(&request("again")).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::RateLimit);
    let last = model.complete(&request("again")).await.unwrap();
    assert_eq!((last.message.text().as_ref(), &last.stop), ("好的", &StopReason::End));
    let texts: Vec<_> =
        model.requests().iter().map(|r| r.messages[0].text().into_owned()).collect();
    assert_eq!(texts, ["查一下我的订单", "again", "again"]);
    assert_eq!((model.calls(), model.left()), (3, 0));
    let end = model.complete(&request("more")).await.unwrap_err();
    assert!(end.to_string().contains("call 4"), "{end}");
    assert!(!end.kind.is_transient(), "asking again does not help");
    let (mut sum, parts) = (first.usage, last.usage);
    sum += parts;
    assert_eq!(model.usage(), sum);
    assert!(sum.input > 0 && sum.output > 0 && sum.cached_read == 0);
}

/// As a provider does; the script does not advance.
#[tokio::test]
async fn a_choice_that_does_not_fit_the_tools_is_refused() {
    let model = ScriptedModel::new(["at last".into()]);
    let tools = vec![ToolDefinition {
        name: "read".to_owned(),
        description: String::new(),
        parameters: "{}".to_owned(),
    }];
    let some = |names: &[&str], required| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ToolChoice::Allowed(AllowedTools { names, required, preferred: None })
    };
    for (tools, choice, expected) in [
        (
            tools.clone(),
            some(&["read", "load"], false),
            "the tool \"load\" is allowed, but the request does not declare it",
        ),
        (tools.clone(), some(&[], true), "a tool call is required, but no tool is allowed"),
        (
            Vec::new(),
            ToolChoice::Required,
            "a tool call is required, but the request declares no tools",
        ),
    ] {
        let asked = request("go").with_tools(tools).with_tool_choice(choice);
        let error = model.complete(&asked).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Request, expected));
    }
    let asked = request("go").with_tools(tools).with_tool_choice(some(&["read"], true));
    assert_eq!(model.complete(&asked).await.unwrap().message.text(), "at last");
}

#[tokio::test]
async fn a_function_of_the_request_answers_any_number_of_times() {
    let model = ScriptedModel::answering(|request| {
        format!("you said: {}", request.messages[0].text()).into()
    })
    .named("echo");
    for text in ["一", "two", "🙂"] {
        let answer = model.complete(&request(text)).await.unwrap();
        assert_eq!(answer.message.text(), format!("you said: {text}"));
        assert_eq!(answer.model, "echo");
    }
    assert_eq!(model.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_answer_takes_the_time_that_it_was_told_to_take() {
    let second = Duration::from_secs(1);
    let model = ScriptedModel::new([
        Answer::text("abcdef").after(5 * second).paced(2, second),
        Answer::pieces([(second, "天气"), (2 * second, "很好")]).after(second),
        Answer::pieces([(second, "half")]).failing(overloaded()),
    ]);
    let begin = Instant::now();
    model.complete(&request("q")).await.unwrap();
    assert_eq!(begin.elapsed(), 8 * second);
    let begin = Instant::now();
    let asked = request("q");
    let mut stream = model.stream(&asked).await.unwrap();
    let mut seen = Vec::new();
    while let Some(chunk) = stream.next().await {
        seen.push((begin.elapsed().as_secs(), chunk.unwrap()));
    }
    assert_eq!(seen[0], (2, ChatChunk::Text("天气".to_owned())));
    assert_eq!(seen[1], (4, ChatChunk::Text("很好".to_owned())));
    let (4, ChatChunk::Done(done)) = &seen[2] else { panic!("{seen:?}") };
    assert_eq!(done.message.text(), "天气很好");
    drop(stream);
    let broken = chunks(&model, &asked).await;
    assert_eq!(broken[0], Ok(ChatChunk::Text("half".to_owned())));
    assert_eq!(broken[1..], [Err("too many requests".to_owned())]);
}

#[tokio::test]
async fn a_stream_says_what_the_whole_says() {
    let calls =
        vec![ToolCall::new("a", "search", r#"{"q": "东西 🙂"}"#), ToolCall::new("b", "now", "")];
    for width in [1, 3, usize::MAX] {
        let answer = Answer::calls("先看看", calls.clone()).paced(width, Duration::ZERO);
        let model = ScriptedModel::new([answer]);
        let mut text = String::new();
        let mut read: Vec<ToolCall> = Vec::new();
        let mut done = None;
        for chunk in chunks(&model, &request("q")).await {
            match chunk.unwrap() {
                ChatChunk::Text(more) => text.push_str(&more),
                ChatChunk::ToolCall { index, id, name, arguments } => {
                    if let (Some(id), Some(name)) = (id, name) {
                        assert_eq!(index, read.len());
                        read.push(ToolCall::new(&id, &name, ""));
                    }
                    read[index].arguments.push_str(&arguments);
                }
                ChatChunk::Done(response) => done = Some(response),
                ChatChunk::Again => panic!("nothing breaks off"),
            }
        }
        assert_eq!(text, "先看看");
        assert_eq!(read, calls);
        assert_eq!(done.unwrap().message.tool_calls(), calls);
    }
}
