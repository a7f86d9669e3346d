//! Servers without tool calls, and servers with constrained decoding.

use crate::wire::{bodies, openai_events, pieces, tool};
use foldback_core::{Message, ToolCall};
use foldback_llm::{
    AllowedTools, ChatChunk, ChatModel, ChatRequest, ModelErrorKind, StopReason, ToolChoice, Usage,
};
use foldback_providers::{ModelConfig, Provider, RemoteModel, ToolCalls};
use foldback_testkit::cassette::{Recording, Replay};
use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// A typical limited server: it knows only alternating roles and texts. It refuses everything else, and
/// if it is to decode by a grammar, a request without one.
struct Plain {
    /// What the model writes.
    answer: String,
    wants_grammar: bool,
}

impl Plain {
    fn refusal(&self, body: &Value) -> Option<String> {
        for member in ["tools", "tool_choice", "functions"] {
            if body.get(member).is_some() {
                return Some(format!("unknown member {member}"));
            }
        }
        let messages = body["messages"].as_array().unwrap();
        let chat = messages.iter().skip_while(|message| message["role"] == "system");
        for (at, message) in chat.enumerate() {
            let expected = if at % 2 == 0 { "user" } else { "assistant" };
            if message["role"] != expected || message.as_object().unwrap().len() != 2 {
                return Some(format!("conversation roles must alternate: {message}"));
            }
        }
        let grammars = [&body["grammar"], &body["structured_outputs"]["grammar"]];
        let is_missing = grammars.iter().any(|grammar| !grammar.is_string());
        (self.wants_grammar && is_missing).then(|| "a grammar is wanted".to_owned())
    }
}

impl Respond for Plain {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let body: Value = request.body_json().unwrap();
        if let Some(message) = self.refusal(&body) {
            let error = json!({"error": {"message": message}});
            return ResponseTemplate::new(400).set_body_json(error);
        }
        // The tokens of a server that stops where it is asked to.
        let stops = body["stop"].as_array().cloned().unwrap_or_default();
        let ends = stops.iter().filter_map(|stop| self.answer.find(stop.as_str().unwrap()));
        let answer = &self.answer[..ends.min().unwrap_or(self.answer.len())];
        if body["stream"] == true {
            let characters: Vec<char> = answer.chars().collect();
            let mut frames: Vec<String> = characters
                .chunks(3)
                .map(|some| {
                    let text: String = some.iter().collect();
                    json!({"model": "local", "choices": [{"delta": {"content": text}}]}).to_string()
                })
                .collect();
            frames.push(
                json!({"choices": [{"delta": {}, "finish_reason": "stop"}],
                       "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
                .to_string(),
            );
            return openai_events(&frames.iter().map(String::as_str).collect::<Vec<_>>());
        }
        ResponseTemplate::new(200).set_body_json(json!({
            "model": "local",
            "choices": [{"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 4},
        }))
    }
}

async fn serve(answer: &str, wants_grammar: bool) -> MockServer {
    let server = MockServer::start().await;
    let plain = Plain { answer: answer.to_owned(), wants_grammar };
    Mock::given(method("POST")).respond_with(plain).mount(&server).await;
    server
}

fn config(server: &MockServer) -> ModelConfig {
    let at = format!("{}/v1", server.uri());
    ModelConfig::new(Provider::OpenAiCompatible, &at, "local").with_tool_calls(ToolCalls::Hermes)
}

fn model(config: ModelConfig) -> RemoteModel {
    RemoteModel::new(config).unwrap()
}

/// A conversation with everything that a plain server does not support.
fn asked() -> ChatRequest {
    let calls = vec![
        ToolCall::new("call_1", "get_weather", r#"{"city": "上海"}"#),
        ToolCall::new("call_2", "browser_查询订单", r#"{"n": 1.50}"#),
    ];
    let messages = vec![
        Message::system("Be brief."),
        Message::user("How is the weather, and where is my order?"),
        Message::calls("I'll look.", calls.clone()),
        Message::tool_result(&calls[0].id, "rain"),
        Message::tool_result(&calls[1].id, ""),
        Message::observation("[state of the work: 1 of 2]"),
        Message::user("And tomorrow?"),
    ];
    ChatRequest::new(messages).with_tools(vec![tool("get_weather"), tool("browser_查询订单")])
}

const CALLS: &str = concat!(
    "Tomorrow:\n",
    r#"<tool_call>{"name": "get_weather", "arguments": {"city": "上海", "at":  "</tool_call>"}}</tool_call>"#,
    "\n<tool_call>\n{'name': 'browser_查询订单', 'arguments': {}}\n</tool_call>",
    r#"<tool_response>{"name": "get_weather", "content": "made up"}</tool_response>"#,
);

/// The calls are read from the text, whole and streamed: with their names and exact arguments, ids
/// of their own, and the text around them.
#[tokio::test]
async fn mc11_calls_are_read_out_of_the_text() {
    let server = serve(CALLS, false).await;
    let model = model(config(&server));
    let whole = model.complete(&asked()).await.unwrap();
    let calls: Vec<_> = whole.message.tool_calls().iter().collect();
    assert_eq!(
        (calls[0].name.as_str(), calls[1].name.as_str()),
        ("get_weather", "browser_查询订单")
    );
    assert_eq!(calls[0].arguments, r#"{"city": "上海", "at":  "</tool_call>"}"#);
    assert_eq!((calls.len(), calls[1].arguments.as_str()), (2, "{}"));
    assert_eq!((whole.message.text().as_ref(), &whole.stop), ("Tomorrow:", &StopReason::ToolCalls));
    assert_eq!(whole.usage, Usage { input: 9, output: 4, ..Usage::default() });
    let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert!(ids[0] != ids[1] && ids.iter().all(|id| !["call_1", "call_2"].contains(id)), "{ids:?}");

    let (chunks, error) = pieces(&model, &asked()).await;
    assert_eq!(error, None);
    let Some(ChatChunk::Done(streamed)) = chunks.last() else { panic!("{chunks:?}") };
    assert_eq!(**streamed, whole);
    let words: String = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            ChatChunk::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(words, "Tomorrow:\n\n", "no tag is shown");
    let shown = chunks.iter().filter(|chunk| matches!(chunk, ChatChunk::ToolCall { .. }));
    assert_eq!(shown.count(), 2);
}

/// An answer of text alone is an ordinary answer; what looks like the beginning of a tag is not held back.
#[tokio::test]
async fn words_are_words() {
    for answer in ["明天 < 20 °C, as </tool_call> says\n", "a <tool"] {
        let server = serve(answer, false).await;
        let model = model(config(&server));
        let whole = model.complete(&asked()).await.unwrap();
        assert_eq!((whole.message.text().as_ref(), &whole.stop), (answer, &StopReason::End));
        let (chunks, _) = pieces(&model, &asked()).await;
        assert_eq!(chunks.last(), Some(&ChatChunk::Done(Box::new(whole))));
    }
}

/// A call that cannot be read is an answer that cannot be read: the caller tells the model why.
#[tokio::test]
async fn mc11_a_call_that_cannot_be_read_is_an_unreadable_answer() {
    for (answer, why) in [
        ("Well.<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\"", "it is cut off"),
        ("<tool_call>get_weather(上海)</tool_call>", "does not begin with a JSON object"),
    ] {
        let server = serve(answer, false).await;
        let model = model(config(&server));
        let error = model.complete(&asked()).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Response);
        assert!(error.message.contains(why), "{error}");
        assert!(error.message.ends_with("between the tags tool_call and /tool_call"), "{error}");
        let usage = error.usage.map(|usage| (usage.input, usage.output));
        assert_eq!(usage, Some((9, 4)), "it costs as much as any answer");
        let (chunks, streamed) = pieces(&model, &asked()).await;
        assert_eq!(streamed, Some(error));
        assert!(!chunks.iter().any(|chunk| matches!(chunk, ChatChunk::ToolCall { .. })));
    }
}

/// Without tools there are no calls: a tag in the answer is text.
#[tokio::test]
async fn without_tools_nothing_is_read() {
    let server = serve("<tool_call>x", false).await;
    let request = asked().with_tools(Vec::new());
    let answer = model(config(&server)).complete(&request).await.unwrap();
    assert_eq!(answer.message.text(), "<tool_call>x");
}

fn allowed(names: &[&str], required: bool) -> ToolChoice {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    ToolChoice::Allowed(AllowedTools { names, required, preferred: None })
}

/// MC9: the request carries a grammar of the calls that are allowed, as llama.cpp reads it and as vLLM
/// does; the tools in the prompt stay the same (MC6).
#[tokio::test]
async fn mc9_the_grammar_names_the_allowed_tools_alone() {
    let server = serve(CALLS, true).await;
    let error = model(config(&server)).complete(&asked()).await.unwrap_err();
    assert!(error.message.contains("a grammar is wanted"), "{error}");
    let model = model(config(&server).with_grammar(true).with_prefill(true));
    assert!(model.capabilities().allowed_tools);
    for choice in [
        ToolChoice::Auto,
        ToolChoice::Required,
        allowed(&["browser_查询订单"], false),
        allowed(&["get_weather"], true),
        ToolChoice::ReplyOnly,
    ] {
        let request = asked().with_tool_choice(choice);
        model.complete(&request).await.unwrap();
    }
    let sent: Vec<Value> = bodies(&server)
        .await
        .iter()
        .skip(1)
        .map(|body| serde_json::from_str(body).unwrap())
        .collect();
    let named = ["get_weather", "browser_查询订单"];
    for (body, expected) in
        sent.iter().zip([[true, true], [true, true], [false, true], [true, false], [false, false]])
    {
        let grammar = body["grammar"].as_str().unwrap();
        assert!(grammar.starts_with("root ::= "), "{grammar}");
        assert_eq!(body["structured_outputs"], json!({ "grammar": grammar }));
        assert_eq!(named.map(|name| grammar.contains(name)), expected, "{grammar}");
        assert_eq!(body["messages"], sent[0]["messages"], "what holds by itself is not said");
    }
    assert_ne!(sent[0]["grammar"], sent[1]["grammar"], "words, or none");
}

/// MC7, MC10: if the beginning of an answer is accepted, a required call is begun, and the answer
/// continues from there.
#[tokio::test]
async fn mc7_an_answer_goes_on_from_its_beginning() {
    let server = serve("weather\", \"arguments\": {\"city\": \"上海\"}}</tool_call>", false).await;
    let mut request = asked();
    request.tools.push(tool("get_time"));
    request.tool_choice = allowed(&["get_weather", "get_time"], true);
    let asked = model(config(&server).with_prefill(true));
    let whole = asked.complete(&request).await.unwrap();
    assert_eq!(whole.message.tool_calls()[0].name, "get_weather");
    let (chunks, _) = pieces(&asked, &request).await;
    assert_eq!(chunks.last(), Some(&ChatChunk::Done(Box::new(whole))));
    let body: Value = serde_json::from_str(&bodies(&server).await[0]).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last, json!({"role": "assistant", "content": "<tool_call>{\"name\": \"get_"}));
    assert_eq!(
        (&body["add_generation_prompt"], &body["continue_final_message"]),
        (&json!(false), &json!(true))
    );
}

/// MC8: if no tool may be called, the answer ends where a call would begin.
#[tokio::test]
async fn mc8_reply_only_rules_calls_out() {
    let server = serve("In words.<tool_call>{\"name\": \"get_weather\"}</tool_call>", false).await;
    let request = asked().with_tool_choice(ToolChoice::ReplyOnly);
    let answer = model(config(&server)).complete(&request).await.unwrap();
    assert_eq!(
        (answer.message.text().as_ref(), answer.message.tool_calls()),
        ("In words.", [].as_slice())
    );
}

/// MC19: a tool is preferred in words, at the end, where it moves no cached prefix: the others may still be called.
#[tokio::test]
async fn mc19_a_preference_excludes_nothing() {
    let server = serve("ok", true).await;
    let names = vec!["browser_查询订单".to_owned(), "get_weather".to_owned()];
    let preferred = Some("get_weather".to_owned());
    let choice = AllowedTools { names: names.clone(), required: false, preferred };
    let request = asked().with_tool_choice(ToolChoice::Allowed(choice));
    model(config(&server).with_grammar(true)).complete(&request).await.unwrap();
    let words =
        "Prefer `get_weather` where it fits; these may be called as well: `browser_查询订单`.";
    let body: Value = serde_json::from_str(&bodies(&server).await[0]).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert!(last.ends_with(&format!("And tomorrow?\n\n<system>\n{words}\n</system>")), "{last}");
    assert!(names.iter().all(|name| body["grammar"].as_str().unwrap().contains(name)));

    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let server =
            crate::wire::serve(crate::wire::json(r#"{"content":[],"choices":[{"message":{}}]}"#))
                .await;
        let model = crate::wire::model(&server, provider);
        model.complete(&request).await.unwrap();
        model.complete(&asked().with_tool_choice(ToolChoice::Auto)).await.unwrap();
        let bodies = bodies(&server).await;
        assert!(bodies[0].contains(words) && !bodies[1].contains(words), "{provider:?}");
    }
}

/// Settings that contradict each other are refused before anything is sent.
#[test]
fn settings_that_do_not_fit_are_refused() {
    let of = |provider, name| ModelConfig::new(provider, "http://127.0.0.1:1/v1", name);
    for (config, expected) in [
        (
            of(Provider::Anthropic, "claude-x").with_tool_calls(ToolCalls::Hermes),
            "is anthropic, which has them",
        ),
        (of(Provider::OpenAiCompatible, "m").with_grammar(true), "needs tool_calls = \"hermes\""),
        (
            of(Provider::OpenAi, "gpt-5").with_workers(["http://127.0.0.1:2/v1"]),
            "workers are several servers",
        ),
        (
            of(Provider::OpenAiCompatible, "m").with_workers(["here"]),
            "the base URL \"here\" is not an address",
        ),
    ] {
        let error = RemoteModel::new(config).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert!(error.message.contains(expected), "{error}");
    }
}

/// MC16: without a seed results are sent unchanged; with one, with the same wording in every request.
#[tokio::test]
async fn mc16_off_changes_nothing() {
    let server = serve("ok", false).await;
    let plain = config(&server);
    for _ in 0..2 {
        model(plain.clone()).complete(&asked()).await.unwrap();
    }
    for seed in [1, 1, 2, 3, 4, 5, 6, 7, 8] {
        model(plain.clone().with_diversity(seed)).complete(&asked()).await.unwrap();
    }
    let bodies = bodies(&server).await;
    assert_eq!((&bodies[0], &bodies[2]), (&bodies[1], &bodies[3]));
    assert!(bodies[0].contains(r#"\"content\": \"rain\"}</tool_response>"#), "{}", bodies[0]);
    assert!(bodies[2..].iter().any(|body| *body != bodies[0]), "some seed varies the words");
    assert!(bodies.iter().all(|body| body.contains("rain")), "the result is in all of them");
}

/// A recording of the exchange gives the same answers without a server.
#[tokio::test]
async fn a_recorded_exchange_is_played_again() {
    let server = serve(CALLS, false).await;
    let recording = Recording::new(model(config(&server)));
    let answer = recording.complete(&asked()).await.unwrap();
    drop(server);
    let replay = Replay::new(recording.cassette().unwrap());
    assert_eq!(replay.complete(&asked()).await.unwrap(), answer);
    let (chunks, _) = pieces(&Replay::new(recording.cassette().unwrap()), &asked()).await;
    assert_eq!(chunks, answer.into_chunks());
    replay.finish().unwrap();
}
