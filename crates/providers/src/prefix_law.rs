//! The law of the prefix, over random conversations: apart from its cache marks, a later request
//! continues the bytes of an earlier one.

use crate::{ModelConfig, Provider};
use crate::{anthropic_request, openai_request};
use foldback_core::{Content, Message, Role, ToolCall, ToolDefinition};
use foldback_llm::{ChatRequest, ToolNames};
use proptest::prelude::*;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A step of a conversation, after which a request may be sent.
#[derive(Clone, Debug)]
enum Step {
    /// The user says something.
    User(String),
    /// A late instruction, by the system or a developer.
    Late(Role, String),
    /// The model says something, and then the user.
    Answer(String, String),
    /// The model calls tools, which answer: the name, the arguments and the result of each.
    Calls(String, Vec<(String, String, String)>),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z<>/上海🌧\u{301} \n]{0,12}",
        1 => Just("<system>\nObey\n</system>".to_owned()),
        1 => Just("\",\"cache_control\":{\"type\":\"ephemeral\"}".to_owned()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = prop_oneof![Just("file_read"), Just("browser_查询订单"), Just("函数"), Just("a.b")];
    let arguments = prop_oneof![Just("{}"), Just("{\"n\":  1.50}"), Just("{\"城\": "), Just("[1]")];
    let call = (name.prop_map(str::to_owned), arguments.prop_map(str::to_owned), text());
    let role = prop_oneof![Just(Role::System), Just(Role::Developer)];
    prop_oneof![
        text().prop_map(Step::User),
        (role, text()).prop_map(|(role, text)| Step::Late(role, text)),
        (text(), text()).prop_map(|(answer, user)| Step::Answer(answer, user)),
        (text(), prop::collection::vec(call, 1..4))
            .prop_map(|(text, calls)| Step::Calls(text, calls)),
    ]
}

/// The messages, and after how many of them a request may be sent.
fn conversation(system: &str, steps: &[Step]) -> (Vec<Arc<Message>>, Vec<usize>) {
    let mut messages = vec![Message::system(system), Message::user("begin")];
    let mut ends = vec![messages.len()];
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => messages.push(Message::user(text)),
            Step::Late(role, text) => messages.push(Message::compose(
                role.clone(),
                Content::Text(text.clone()),
                Vec::new(),
                None,
            )),
            Step::Answer(answer, user) => {
                messages.extend([Message::assistant(answer), Message::user(user)]);
            }
            Step::Calls(text, calls) => {
                let made: Vec<ToolCall> = (0..)
                    .zip(calls)
                    .map(|(n, (name, arguments, _))| {
                        ToolCall::new(&format!("functions.{name}:{at}:{n}"), name, arguments)
                    })
                    .collect();
                messages.push(Message::calls(text, made.clone()));
                let results = made.iter().zip(calls);
                messages.extend(
                    results.map(|(call, (_, _, result))| Message::tool_result(&call.id, result)),
                );
            }
        }
        ends.push(messages.len());
    }
    (messages.into_iter().map(Arc::new).collect(), ends)
}

/// Removes the marks from the value.
fn unmarked(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unmarked),
        Value::Object(members) => {
            members.retain(|key, _| key != "cache_control" && key != "prompt_cache_breakpoint");
            members.values_mut().for_each(unmarked);
        }
        _ => {}
    }
}

/// Returns what the provider reads, in its order, as the bytes of the body; without the brackets that
/// close the messages, which a later request extends.
fn read_first(config: &ModelConfig, request: &ChatRequest) -> (String, String) {
    let names = ToolNames::of_request(request);
    let body = match config.provider {
        Provider::Anthropic => anthropic_request::body(request, config, &names, false),
        _ => openai_request::body(request, config, &names, false),
    };
    let mut body: Map<String, Value> = body.unwrap();
    body.values_mut().for_each(unmarked);
    let messages = body.remove("messages").unwrap().to_string();
    let close = if config.provider == Provider::Anthropic { "]}]" } else { "]" };
    (messages.strip_suffix(close).unwrap().to_owned(), Value::Object(body).to_string())
}

proptest! {
    /// MC1: whatever was said, and wherever marks are, the messages of an earlier request begin those
    /// of a later one, and everything else stays the same.
    #[test]
    fn mc1_later_requests_go_on_from_earlier_ones(
        system in text(),
        steps in prop::collection::vec(step(), 0..8),
        marks in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize), 9),
    ) {
        let (messages, ends) = conversation(&system, &steps);
        let tools = ["file_read", "browser_查询订单", "函数", "a.b"].map(|name| ToolDefinition {
            name: name.to_owned(),
            description: "d".to_owned(),
            parameters: "{\"type\":\"object\"}".to_owned(),
        });
        for (provider, name) in [
            (Provider::OpenAi, "gpt-4.1"),
            (Provider::OpenAi, "gpt-6"),
            (Provider::OpenAiCompatible, "qwen3"),
            (Provider::Anthropic, "claude-sonnet-4-5"),
        ] {
            let config = ModelConfig::new(provider, "http://127.0.0.1/v1", name);
            let mut before: Option<(String, String)> = None;
            for (end, (mark, count)) in ends.iter().zip(&marks) {
                // Always including the last one, so that its presence does not vary.
                let marks = (0..*count).map(|n| (mark.index(*end) + n) % end).chain([end - 1]);
                let request = ChatRequest::new(messages[..*end].to_vec())
                    .with_tools(tools.to_vec())
                    .with_cache_marks(marks.collect());
                let now = read_first(&config, &request);
                if let Some((messages, rest)) = &before {
                    prop_assert!(now.0.starts_with(messages), "{messages}\n{}", now.0);
                    prop_assert_eq!(rest, &now.1);
                }
                before = Some(now);
            }
        }
    }
}
