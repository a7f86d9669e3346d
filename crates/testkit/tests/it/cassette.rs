//! Recorded exchanges.

use foldback_core::{Message, ToolCall, ToolDefinition};
use foldback_llm::{
    Answer, ChatChunk, ChatModel, ChatRequest, ModelError, ModelErrorKind, ScriptedModel,
};
use foldback_testkit::cassette::{Cassette, Recording, Replay};
use futures::StreamExt;
use std::time::Duration;

fn tool(name: &str, required: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "查询".to_owned(),
        parameters: format!(r#"{{"type":"object","required":{required}}}"#),
    }
}

fn request(text: &str) -> ChatRequest {
    ChatRequest::new([Message::system("rules"), Message::user(text)])
        .with_tools(vec![tool("a", r#"["x","y"]"#), tool("b", "[]")])
        .with_session("s1")
}

async fn stream(model: &impl ChatModel, request: &ChatRequest) -> Vec<Result<ChatChunk, String>> {
    match model.stream(request).await {
        Ok(stream) => stream.map(|chunk| chunk.map_err(|e| e.to_string())).collect().await,
        Err(error) => vec![Err(error.to_string())],
    }
}

fn busy() -> ModelError {
    ModelError {
        retry_after: Some(Duration::from_millis(1_500)),
        ..ModelError::new(ModelErrorKind::RateLimit, "too many requests with key sk-123")
    }
}

/// A recording of four exchanges: a whole answer, a stream, an error, and a stream that broke.
async fn recorded() -> Cassette {
    let call = ToolCall::new("c1", "a", r#"{"x": 1.50, "名": "</tool_call>"}"#);
    let recording = Recording::new(
        ScriptedModel::new([
            Answer::calls("好", vec![call]),
            Answer::text("one two 三").paced(3, Duration::ZERO),
            busy().into(),
            Answer::text("half").paced(2, Duration::ZERO).failing(busy()),
        ])
        .named("m-1"),
    )
    .without("sk-123");
    recording.complete(&request("one")).await.unwrap();
    assert_eq!(stream(&recording, &request("two")).await.len(), 4);
    assert!(recording.complete(&request("three")).await.is_err());
    assert_eq!(stream(&recording, &request("four")).await.len(), 3);
    recording.cassette().unwrap()
}

/// The replay equals the recording, through a file, including streams and errors, for the same
/// requests, whatever the order of their tools and their session.
#[tokio::test]
async fn a_cassette_plays_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("会话.jsonl");
    let cassette = recorded().await;
    cassette.write(&path).unwrap();
    let cassette = Cassette::read(&path).unwrap();
    assert_eq!(cassette.len(), 4);
    let replay = Replay::new(cassette);
    assert_eq!(replay.name(), "m-1");
    let mut other = request("one");
    other.session = None;
    other.tools.reverse();
    other.tools[1] = tool("a", r#"["y","x"]"#);
    let whole = replay.complete(&other).await.unwrap();
    assert_eq!(whole.message.text(), "好");
    assert_eq!(whole.message.tool_calls()[0].arguments, r#"{"x": 1.50, "名": "</tool_call>"}"#);
    assert!(whole.usage.input > 0 && whole.model == "m-1");
    let chunks = stream(&replay, &request("two")).await;
    assert_eq!(chunks[..3], ["one", " tw", "o 三"].map(|t| Ok(ChatChunk::Text(t.to_owned()))));
    assert!(matches!(&chunks[3], Ok(ChatChunk::Done(done)) if done.message.text() == "one two 三"));
    let error = replay.complete(&request("three")).await.unwrap_err();
    assert_eq!((error.kind, error.retry_after), (busy().kind, busy().retry_after));
    assert!(replay.finish().is_err(), "one is left");
    let broken = stream(&replay, &request("four")).await;
    assert_eq!(broken[..2], ["ha", "lf"].map(|t| Ok(ChatChunk::Text(t.to_owned()))));
    assert_eq!(broken[2], Err("too many requests with key [secret]".to_owned()));
    replay.finish().unwrap();
}

/// No key ends up in a file, and neither does the session.
#[tokio::test]
async fn a_cassette_holds_no_secret() {
    let text = recorded().await.text().unwrap();
    assert!(!text.contains("sk-123") && text.contains("[secret]"), "{text}");
    assert!(!text.contains("s1"), "{text}");
    // A request that contains a secret is recorded and replayed without it.
    let recording = Recording::new(ScriptedModel::new(["ok".into()])).without("密码");
    recording.complete(&request("the 密码 is here")).await.unwrap();
    let cassette = recording.cassette().unwrap();
    assert!(!cassette.text().unwrap().contains("密码"));
    let replay = Replay::new(cassette).without("密码");
    replay.complete(&request("the 密码 is here")).await.unwrap();
    replay.finish().unwrap();
}

/// No form of a secret ends up in a file: not escaped in JSON, nor in JSON in a string, nor split
/// across the pieces of a stream, nor the rest of a long one when a short one is hidden.
#[tokio::test]
async fn a_cassette_holds_no_form_of_a_secret() {
    let secrets = ["pa\"ss\\密码\n1", "sk-123", "sk-123-long", "20251122"];
    let [odd, short, long, digits] = secrets;
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let ascii = r#"{"k": "pa\u0022ss\\\u5BC6\u7801\u000a1", "n": 20251122, "密": "s\u006b-123"}"#;
    let once = format!(r#"{{"k": {}, "{short}": {digits}}}"#, json(odd));
    let twice = format!(r#"{{"body": {}}}"#, json(&once));
    let told = format!("{odd} | {long} | {digits} | {once} | {twice}");
    let calls =
        [ascii, &once, &twice, &told].map(|arguments| ToolCall::new("c1", "a", arguments)).to_vec();
    for width in [1, 2, 7, usize::MAX] {
        let recording = Recording::new(ScriptedModel::new([
            Answer::calls(&told, calls.clone()).paced(width, Duration::ZERO),
            Answer::calls(&told, calls.clone()),
            ModelError::new(ModelErrorKind::Quota, told.clone()).into(),
        ]));
        let recording = secrets.iter().fold(recording, |recording, s| recording.without(s));
        let mut asked = request(&told);
        asked.messages.push(Message::calls(&told, calls.clone()).into());
        asked.tools[0].description = told.clone();
        stream(&recording, &asked).await;
        recording.complete(&asked).await.unwrap();
        recording.complete(&asked).await.unwrap_err();
        let text = recording.cassette().unwrap().text().unwrap();
        let replay = Replay::new(Cassette::parse(&text).unwrap());
        let replay = secrets.iter().fold(replay, |replay, s| replay.without(s));
        let streamed = stream(&replay, &asked).await;
        let whole = replay.complete(&asked).await.unwrap().message;
        assert_eq!(replay.complete(&asked).await.unwrap_err().kind, ModelErrorKind::Quota);
        replay.finish().unwrap();
        // The replay and the file, decoded as often as anyone might.
        let mut seen = vec![text, whole.text().into_owned()];
        seen.extend(whole.tool_calls().iter().map(|call| call.arguments.clone()));
        let (mut said, mut arguments) = (String::new(), vec![String::new(); calls.len()]);
        for chunk in streamed {
            match chunk.unwrap() {
                ChatChunk::Text(text) => said.push_str(&text),
                ChatChunk::ToolCall { index, arguments: more, .. } => {
                    arguments[index].push_str(&more);
                }
                ChatChunk::Done(done) => assert_eq!(done.message.text(), said, "{width}"),
                ChatChunk::Again => panic!("nothing breaks off"),
            }
        }
        assert!(serde_json::from_str::<serde_json::Value>(&arguments[0]).is_ok());
        seen.extend(arguments);
        seen.push(said);
        for text in seen {
            for part in ["ss\\", "密码", "\\u5BC6", "sk-", "s\\u006b", "-long", digits] {
                assert!(!text.contains(part), "{width}: {part} in {text}");
            }
        }
    }
}

/// A stream that ended in the middle of a secret leaves no half of it.
#[tokio::test]
async fn a_cassette_holds_no_half_of_a_secret() {
    let answer = Answer::text("the key is sk-123456").paced(3, Duration::ZERO);
    let call = ToolCall::new("c", "a", "{\"密\": \"sk-1234567");
    let calls = Answer::calls("", vec![call]).paced(2, Duration::ZERO);
    let answers = [answer.failing(busy()), calls.failing(busy())];
    let recording = Recording::new(ScriptedModel::new(answers)).without("sk-123456789");
    stream(&recording, &request("one")).await;
    stream(&recording, &request("one")).await;
    let replay = Replay::new(recording.cassette().unwrap());
    let mut played = String::new();
    for _ in 0..2 {
        for chunk in stream(&replay, &request("one")).await.into_iter().flatten() {
            match chunk {
                ChatChunk::Text(text) => played.push_str(&text),
                ChatChunk::ToolCall { arguments, .. } => played.push_str(&arguments),
                ChatChunk::Again | ChatChunk::Done(_) => {}
            }
        }
    }
    assert_eq!(played, "the key is [secret]{\"密\": \"[secret]");
}

/// A message that spanned several lines is kept on one, with the same arguments; and a whole answer is
/// replayed as a stream with its calls.
#[tokio::test]
async fn a_message_of_several_lines_is_kept() {
    let json = "{\n  \"role\": \"assistant\",\r\n  \"content\": \"一\\n二\",\n  \"tool_calls\": [{\"id\": \
                \"c1\", \"type\": \"function\",\n \"function\": {\"name\": \"a\", \"arguments\": \
                \"{\\n}\"}}]\n}";
    let message = Message::from_json(json).unwrap();
    let recording = Recording::new(ScriptedModel::new([Answer::from(message.clone())]));
    let mut asked = request("one");
    asked.messages.push(message.clone().into());
    recording.complete(&asked).await.unwrap();
    let text = recording.cassette().unwrap().text().unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    let replay = Replay::new(Cassette::parse(&text).unwrap());
    let chunks = stream(&replay, &asked).await;
    let call = ChatChunk::ToolCall {
        index: 0,
        id: Some("c1".to_owned()),
        name: Some("a".to_owned()),
        arguments: "{\n}".to_owned(),
    };
    assert_eq!(chunks[..2], [Ok(ChatChunk::Text("一\n二".to_owned())), Ok(call)]);
    let Ok(ChatChunk::Done(done)) = &chunks[2] else { panic!("{chunks:?}") };
    assert_eq!(done.message.tool_calls(), message.tool_calls());
    replay.finish().unwrap();
}

/// A request other than the recorded one is an error that names the first difference, and the test
/// fails at its end although the caller continued.
#[tokio::test]
async fn another_request_is_refused_with_the_difference() {
    let long = format!("{}北京{}", "word ".repeat(100), " more".repeat(100));
    for (change, expected) in [
        (
            Box::new(|request: &mut ChatRequest| request.messages[1] = Message::user("two").into())
                as Box<dyn Fn(&mut ChatRequest)>,
            "at messages[1].content, \"one\" was recorded, and \"two\" is asked",
        ),
        (
            Box::new(|request| request.messages.push(Message::assistant("more").into())),
            "at messages[2], nothing was recorded, and {\"content\":\"more\",\"role\":\"assistant\"} is asked",
        ),
        (
            Box::new(|request| request.tools[0].parameters = r#"{"type":"object"}"#.to_owned()),
            "at tools[0].parameters.required, [\"x\",\"y\"] was recorded, and nothing is asked",
        ),
        (
            Box::new(|request| request.sampling.temperature = Some(0.5)),
            "at sampling.temperature, null was recorded, and 0.5 is asked",
        ),
        (
            Box::new(|request| request.tool_choice = foldback_llm::ToolChoice::Required),
            "at tool_choice, \"auto\" was recorded, and \"required\" is asked",
        ),
        (
            Box::new(|request| request.cache_marks = vec![0]),
            "at cache_marks[0], nothing was recorded, and 0 is asked",
        ),
        (
            Box::new(move |request| request.messages[1] = Message::user(&long).into()),
            "at messages[1].content, \"one\" was recorded, and \"word word word",
        ),
    ] {
        let replay = Replay::new(recorded().await);
        let mut asked = request("one");
        change(&mut asked);
        let error = replay.complete(&asked).await.unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("call 1 is not the one that was recorded: at "), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(message.chars().count() < 300, "{message}");
        assert!(!error.kind.is_transient());
        assert_eq!(replay.finish().unwrap_err().to_string(), message);
    }
}

#[tokio::test]
async fn what_is_left_or_asked_too_much_is_named() {
    let replay = Replay::new(recorded().await);
    replay.complete(&request("one")).await.unwrap();
    assert_eq!(
        replay.finish().unwrap_err().to_string(),
        "3 of the cassette's 4 exchanges were not played; the next is call 2"
    );
    for text in ["two", "three", "four"] {
        let _ = replay.complete(&request(text)).await;
    }
    replay.finish().unwrap();
    let error = replay.complete(&request("five")).await.unwrap_err();
    assert_eq!(error.to_string(), "the cassette holds 4 exchanges, and this is call 5");
}

/// Parallel calls may come in any order, each once.
#[tokio::test]
async fn in_any_order_each_is_played_once() {
    let replay = Replay::new(recorded().await).any_order();
    assert!(replay.complete(&request("three")).await.unwrap_err().kind.is_transient());
    assert_eq!(replay.complete(&request("two")).await.unwrap().message.text(), "one two 三");
    assert_eq!(replay.complete(&request("one")).await.unwrap().message.text(), "好");
    let again = replay.complete(&request("one")).await.unwrap_err();
    assert_eq!(again.kind, ModelErrorKind::Request);
}

/// A stream that nobody read to its end was kept as far as it was read.
#[tokio::test]
async fn a_stream_that_was_left_is_kept_as_far_as_it_came() {
    let recording =
        Recording::new(ScriptedModel::new([Answer::text("abcdef").paced(2, Duration::ZERO)]));
    let asked = request("one");
    let mut begun = recording.stream(&asked).await.unwrap();
    begun.next().await.unwrap().unwrap();
    drop(begun);
    let replay = Replay::new(recording.cassette().unwrap());
    let chunks = stream(&replay, &asked).await;
    assert_eq!(chunks[0], Ok(ChatChunk::Text("ab".to_owned())));
    assert_eq!(
        chunks[1].as_ref().unwrap_err(),
        "nobody waited for the end of this answer when it was recorded"
    );
}

#[test]
fn a_file_that_is_no_cassette_is_named_with_its_line() {
    let good = "{\"cassette\":1,\"model\":\"m\"}\n";
    for (text, expected) in [
        ("", "line 1 of a cassette holds the version and the model: EOF"),
        ("[]", "line 1 of a cassette holds the version and the model"),
        ("{\"cassette\":2,\"model\":\"m\"}", "the version is 2, and 1 is known here"),
        (&format!("{good}\n{{\"request\":"), "line 3 of a cassette holds an exchange: EOF"),
        (&format!("{good}{{}}"), "line 2 of a cassette holds an exchange: missing field `request`"),
        (
            &format!("{good}{{\"request\":1,\"reponse\":{{}}}}"),
            "line 2 of a cassette holds an exchange: unknown field `reponse`",
        ),
        (
            &format!("{good}{{\"request\":1,\"error\":{{\"kind\":\"busy\",\"message\":\"\"}}}}"),
            "\"busy\" is no kind of error; these are: authentication, quota, request",
        ),
        ("{\"cassette\":1,\"model\":\"m\",\"key\":1}", "unknown field `key`"),
    ] {
        let error = Cassette::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    assert!(Cassette::parse(good).unwrap().is_empty());
    let missing = Cassette::read(std::path::Path::new("no/such.jsonl")).unwrap_err().to_string();
    assert!(missing.starts_with("no/such.jsonl: "), "{missing}");
}
