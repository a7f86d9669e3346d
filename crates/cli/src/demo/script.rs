//! A model that plays recorded turns, and fills in what it saw.
//!
//! A turn is found by the name of the request, so that a run that was killed resumes with the turn that it was at. A
//! turn may refer to what tools have answered: the script looks for it in the request, as a model would see it, and
//! cannot say what is not there.

use foldback_core::{Estimate, Message, TokenCounter as _, ToolCall, ToolCallId, message_tokens};
use foldback_llm::{
    ChatModel, ChatRequest, ChatResponse, ModelError, ModelErrorKind, StopReason, Usage,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The recorded turns: by agent (the run's own is `main`, a sub-agent's has the name of its item), then by purpose and
/// key.
pub(super) struct Script {
    agents: BTreeMap<String, BTreeMap<String, Turns>>,
    pace: Duration,
}

/// One turn or several; the first one whose sights are all present is used.
#[derive(Deserialize)]
#[serde(untagged)]
enum Turns {
    One(Turn),
    Several(Vec<Turn>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    /// What the turn must have seen, by the name under which this is filled in.
    #[serde(default)]
    see: BTreeMap<String, Sight>,
    /// Its words.
    #[serde(default)]
    say: String,
    #[serde(default)]
    calls: Vec<Call>,
}

/// Something in the request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sight {
    /// The tool whose last answer contains it; any message may if there is none.
    tool: Option<String>,
    /// A regular expression. Its group is what was seen.
    r#match: String,
    /// Whether the value is the number of its occurrences.
    #[serde(default)]
    count: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    arguments: Value,
}

/// The name of the model.
const NAME: &str = "recorded";

/// The name of the agent that has no item.
const MAIN: &str = "main";

impl Script {
    /// Reads recorded turns. Before each, the model thinks for this long.
    pub(super) fn parse(json: &str, pace: Duration) -> Result<Self, serde_json::Error> {
        Ok(Self { agents: serde_json::from_str(json)?, pace })
    }

    /// The answer to a request.
    fn answer(&self, request: &ChatRequest) -> Result<Message, String> {
        let id = request.id.as_deref().unwrap_or_default();
        let name = id.rsplitn(3, '/').take(2).collect::<Vec<_>>();
        let name = format!("{}/{}", name.get(1).unwrap_or(&""), name.first().unwrap_or(&""));
        let session = request.session.as_deref().unwrap_or_default();
        let agent = session.rsplit_once('.').map_or(MAIN, |(_, item)| item);
        let turns = self.agents.get(agent).and_then(|turns| turns.get(&name));
        let turns = match turns {
            Some(Turns::One(turn)) => std::slice::from_ref(turn),
            Some(Turns::Several(turns)) => turns.as_slice(),
            None => return Err(format!("nothing is recorded for {agent} at {name}")),
        };
        let mut missing = String::new();
        for turn in turns {
            match turn.seen(request) {
                Ok(seen) => return Ok(turn.message(&name, &seen)),
                Err(sight) => missing = sight,
            }
        }
        Err(format!(
            "the turn {name} of {agent} speaks of {missing}, which its request does not show"
        ))
    }
}

impl Turn {
    /// What the turn has to have seen, by name; the first missing one is an error.
    fn seen(&self, request: &ChatRequest) -> Result<BTreeMap<&str, String>, String> {
        let seen = self.see.iter().map(|(name, sight)| {
            let found = sight.find(request);
            found.map(|found| (name.as_str(), found)).ok_or_else(|| name.clone())
        });
        seen.collect()
    }

    fn message(&self, name: &str, seen: &BTreeMap<&str, String>) -> Message {
        let say = filled(&self.say, seen);
        if self.calls.is_empty() {
            return Message::assistant(&say);
        }
        let calls = (1..).zip(&self.calls).map(|(n, call)| {
            let id = format!("call_{}_{n}", name.replace('/', "_"));
            let arguments = filled_in(&call.arguments, seen).to_string();
            ToolCall::new(id.as_str(), &call.tool, &arguments)
        });
        Message::calls(&say, calls.collect())
    }
}

impl Sight {
    fn find(&self, request: &ChatRequest) -> Option<String> {
        let pattern = Regex::new(&self.r#match).ok()?;
        let texts: Vec<String> = match &self.tool {
            Some(tool) => last_answer(request, tool).into_iter().collect(),
            None => request.messages.iter().map(|message| message.text().into_owned()).collect(),
        };
        if self.count {
            let times: usize = texts.iter().map(|text| pattern.find_iter(text).count()).sum();
            return (times > 0).then(|| times.to_string());
        }
        let found = texts.iter().rev().find_map(|text| pattern.captures(text))?;
        Some(found.get(1).or_else(|| found.get(0))?.as_str().to_owned())
    }
}

/// The last answer of a tool that a request shows.
fn last_answer(request: &ChatRequest, tool: &str) -> Option<String> {
    let calls = request.messages.iter().flat_map(|message| message.tool_calls());
    let calls: Vec<&ToolCallId> =
        calls.filter(|call| call.name == tool).map(|call| &call.id).collect();
    let is_its = |message: &&std::sync::Arc<Message>| {
        message.tool_call_id().is_some_and(|id| calls.contains(&id))
    };
    request.messages.iter().rev().find(is_its).map(|message| message.text().into_owned())
}

/// Replaces `{{name}}` in a text by what was seen.
fn filled(text: &str, seen: &BTreeMap<&str, String>) -> String {
    let fill = |text: String, (name, value): (&&str, &String)| {
        text.replace(&format!("{{{{{name}}}}}"), value)
    };
    seen.iter().fold(text.to_owned(), fill)
}

/// Does the same in every text of a value.
fn filled_in(value: &Value, seen: &BTreeMap<&str, String>) -> Value {
    match value {
        Value::String(text) => Value::String(filled(text, seen)),
        Value::Array(items) => items.iter().map(|item| filled_in(item, seen)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), filled_in(value, seen))).collect()
        }
        other => other.clone(),
    }
}

impl ChatModel for Script {
    fn name(&self) -> &str {
        NAME
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move {
            tokio::time::sleep(self.pace).await;
            let message = self
                .answer(request)
                .map_err(|what| ModelError::new(ModelErrorKind::Configuration, what))?;
            let stop = match message.tool_calls() {
                [] => StopReason::End,
                _ => StopReason::ToolCalls,
            };
            let usage = usage(request, &message);
            Ok(ChatResponse { message, usage, stop, model: NAME.to_owned() })
        }
        .boxed()
    }
}

/// The estimated tokens of a request and its answer.
fn usage(request: &ChatRequest, answer: &Message) -> Usage {
    let messages = request.messages.iter().map(|message| message_tokens(&Estimate, message));
    let tools = request.tools.iter();
    let texts = tools.flat_map(|tool| [&tool.name, &tool.description, &tool.parameters]);
    let input = messages.chain(texts.map(|text| Estimate.count(text))).sum::<usize>() as u64;
    let output = message_tokens(&Estimate, answer) as u64;
    Usage { input, output, ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURNS: &str = r#"{
        "main": {
            "react/0": {"say": "Look.", "calls": [{"tool": "file_read", "arguments": {"path": "a"}}]},
            "react/1": [
                {"see": {"gate": {"tool": "file_read", "match": "gate (\\d+)"}}, "say": "Gate {{gate}}.",
                 "calls": [{"tool": "note", "arguments": {"texts": ["{{gate}}", {"deep": "登机口 {{gate}}"}]}}]},
                {"say": "No gate."}
            ],
            "react/2": {"see": {"lines": {"match": "gate", "count": true}}, "say": "{{lines}}"}
        },
        "hotels": {"react/0": {"say": "Two."}}
    }"#;

    fn asked(session: &str, id: &str, results: &[&str]) -> Result<Message, String> {
        let script = Script::parse(TURNS, Duration::ZERO).unwrap();
        let mut messages = vec![Message::user("Which one?")];
        for (n, result) in results.iter().enumerate() {
            let id = format!("c{n}");
            messages.push(Message::calls("", vec![ToolCall::new(id.as_str(), "file_read", "{}")]));
            messages.push(Message::tool_result(&ToolCallId::new(&id), result));
        }
        script.answer(&ChatRequest::new(messages).with_session(session).with_id(id))
    }

    #[test]
    fn a_turn_is_found_by_the_name_of_the_request() {
        let answer = asked("trip-1", "trip-1/react/0", &[]).unwrap();
        assert_eq!(answer.tool_calls()[0].arguments, r#"{"path":"a"}"#);
        assert_eq!(answer, asked("trip-1", "trip-1/react/0", &["later"]).unwrap(), "whenever");
        assert_eq!(asked("trip-1.hotels", "a/b/react/0", &[]).unwrap().text(), "Two.");
        let error = asked("trip-1", "trip-1/react/9", &[]).unwrap_err();
        assert_eq!(error, "nothing is recorded for main at react/9");
    }

    #[test]
    fn a_turn_says_what_was_seen_last() {
        let answer = asked("trip", "trip/react/1", &["gate 3", "gate 7"]).unwrap();
        assert_eq!(answer.text(), "Gate 7.");
        let arguments = &answer.tool_calls()[0].arguments;
        assert_eq!(arguments, r#"{"texts":["7",{"deep":"登机口 7"}]}"#);
        assert_eq!(asked("trip", "trip/react/1", &["no"]).unwrap().text(), "No gate.");
        assert_eq!(asked("trip", "trip/react/2", &["gate 3", "gate 7"]).unwrap().text(), "2");
    }

    #[test]
    fn what_is_not_to_be_seen_cannot_be_said() {
        let error = asked("trip", "trip/react/2", &[]).unwrap_err();
        assert_eq!(
            error,
            "the turn react/2 of main speaks of lines, which its request does not show"
        );
    }
}
