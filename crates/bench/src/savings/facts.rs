//! Facts that were needed later: values in a call's arguments that occur in earlier messages.

use super::values::{Value, Values};
use crate::BenchError;
use foldback::OffloadPolicy;
use foldback_core::{
    Content, Estimate, Message, Object, Part, Role, TokenCounter, ToolCall, argument_text,
};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A shorter value is not a fact: it occurs everywhere.
const LEAST_CHARS: usize = 4;

/// The facts of a conversation, and the finder of their values.
pub(crate) struct Facts {
    pub(crate) values: Values,
    /// Keyed by the index of the calling message.
    pub(crate) needs: BTreeMap<usize, Vec<Need>>,
}

/// An argument of a call, with the values in it that occur in earlier messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The tool that is called.
    pub(crate) tool: String,
    /// The argument's name; for nested ones, joined by dots: `address.city`.
    pub(crate) argument: String,
    pub(crate) facts: Vec<Fact>,
}

/// A value that occurs in an earlier message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    /// The number of the value.
    pub(crate) value: u32,
    /// Whether all earlier occurrences are in large parts: results and arguments that foldback stores
    /// outside the conversation.
    pub(crate) in_payload: bool,
    /// Whether all earlier occurrences are in the model's own words: what it said, and the arguments of
    /// its calls.
    pub(crate) is_own: bool,
}

impl Facts {
    /// Returns the facts of a conversation.
    ///
    /// # Errors
    /// When it has too many values to search for at once.
    pub(crate) fn of(messages: &[Message]) -> Result<Self, BenchError> {
        let mut numbers: BTreeMap<Value, u32> = BTreeMap::new();
        // Each call's values by argument, each value once.
        let mut taken: Vec<Taken<'_>> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            if *message.role() != Role::Assistant {
                continue;
            }
            for call in message.tool_calls() {
                let mut values: Vec<(String, u32)> = Vec::new();
                for (argument, value) in leaves(call) {
                    let next = numbers.len() as u32;
                    let number = *numbers.entry(value).or_insert(next);
                    if values.iter().all(|(_, other)| *other != number) {
                        values.push((argument, number));
                    }
                }
                taken.push(Taken { at, tool: &call.name, values });
            }
        }
        let mut values: Vec<(Value, u32)> = numbers.into_iter().collect();
        values.sort_by_key(|(_, number)| *number);
        let values = Values::new(values.into_iter().map(|(value, _)| value).collect())?;
        let firsts = Firsts::of(messages, &values);
        let mut needs: BTreeMap<usize, Vec<Need>> = BTreeMap::new();
        for Taken { at, tool, values: taken } in taken {
            let here = needs.entry(at).or_default();
            let from = here.len();
            for (argument, value) in taken {
                let Some(fact) = firsts.fact(value, at) else { continue };
                let own = here.get_mut(from..).unwrap_or_default();
                match own.iter_mut().find(|need| need.argument == argument) {
                    Some(need) => need.facts.push(fact),
                    None => {
                        here.push(Need { tool: tool.to_owned(), argument, facts: vec![fact] });
                    }
                }
            }
        }
        needs.retain(|_, here| !here.is_empty());
        Ok(Self { values, needs })
    }

    /// Returns what the calls of the message `at` need.
    pub(crate) fn needs(&self, at: usize) -> &[Need] {
        self.needs.get(&at).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The values that a call uses.
struct Taken<'a> {
    /// The index of the calling message.
    at: usize,
    tool: &'a str,
    /// The arguments and the numbers of their values.
    values: Vec<(String, u32)>,
}

/// The first message in which each value occurs: in any part, in a part that is not large, and
/// in a message that is not the model's.
#[derive(Default)]
struct Firsts {
    any: FxHashMap<u32, usize>,
    plain: FxHashMap<u32, usize>,
    given: FxHashMap<u32, usize>,
}

impl Firsts {
    fn of(messages: &[Message], values: &Values) -> Self {
        let mut firsts = Self::default();
        for (at, message) in messages.iter().enumerate() {
            for (text, is_large) in parts(message) {
                for value in values.in_text(&text).iter() {
                    firsts.any.entry(value).or_insert(at);
                    if !is_large {
                        firsts.plain.entry(value).or_insert(at);
                    }
                    if *message.role() != Role::Assistant {
                        firsts.given.entry(value).or_insert(at);
                    }
                }
            }
        }
        firsts
    }

    fn fact(&self, value: u32, at: usize) -> Option<Fact> {
        let is_earlier = |first: &FxHashMap<u32, usize>| first.get(&value).is_some_and(|f| *f < at);
        let in_payload = !is_earlier(&self.plain);
        let is_own = !is_earlier(&self.given);
        is_earlier(&self.any).then_some(Fact { value, in_payload, is_own })
    }
}

/// Returns the texts of a message, and which of them are large.
fn parts(message: &Message) -> Vec<(String, bool)> {
    let is_result = *message.role() == Role::Tool;
    let mut parts = Vec::new();
    match message.content() {
        Content::Empty => {}
        Content::Text(text) => parts.push((text.clone(), is_result && is_large(text))),
        Content::Parts(content) => {
            for part in content {
                if let Part::Text(text) = part {
                    parts.push((text.clone(), is_result && is_large(text)));
                }
            }
        }
    }
    for call in message.tool_calls() {
        match call.members() {
            Some(members) if is_large(&call.arguments) => {
                for (_, value) in members {
                    let text = argument_text(value).into_owned();
                    let large = is_large(&text);
                    parts.push((text, large));
                }
            }
            _ => parts.push((call.arguments.clone(), is_large(&call.arguments))),
        }
    }
    parts
}

/// Returns whether foldback stores the text outside the conversation by default.
fn is_large(text: &str) -> bool {
    let threshold = OffloadPolicy::default().tokens;
    text.len() > threshold && Estimate.count(text) > threshold
}

/// Returns the strings and numbers in the arguments of a call, with the names that lead to them.
fn leaves(call: &ToolCall) -> Vec<(String, Value)> {
    let mut leaves = Vec::new();
    for (name, value) in call.members().unwrap_or_default() {
        walk(&name, value, &mut leaves);
    }
    leaves
}

fn walk(name: &str, value: &RawValue, leaves: &mut Vec<(String, Value)>) {
    if let Some(Object(fields)) = Object::of(value) {
        for (key, value) in fields {
            walk(&format!("{name}.{key}"), value, leaves);
        }
    } else if let Some(values) = Object::array_of(value) {
        for value in values {
            walk(name, value, leaves);
        }
    } else {
        let text = argument_text(value).into_owned();
        let is_number = value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
        let is_string = value.get().starts_with('"');
        if (is_number || is_string) && text.trim().chars().count() >= LEAST_CHARS {
            leaves.push((name.to_owned(), Value { text, is_number }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_testkit::transcript;

    /// Returns the facts as `tool argument value`, with `+` after those that occur only in large parts
    /// and `-` after those that only the model gave.
    fn facts(script: &str) -> Vec<String> {
        let facts = Facts::of(&transcript(script)).unwrap();
        let mut told = Vec::new();
        for need in facts.needs.values().flatten() {
            for fact in &need.facts {
                let value = facts.values.get(fact.value).map_or("?", |value| &value.text);
                let large = if fact.in_payload { " +" } else { "" };
                let own = if fact.is_own { " -" } else { "" };
                told.push(format!("{} {} {value}{large}{own}", need.tool, need.argument));
            }
        }
        told
    }

    #[test]
    fn a_value_that_stands_earlier_is_a_fact() {
        let script = r##"
            user: my order is W-1001, and the table is 12345
            assistant> find({"id": "W-1001", "n": 12345, "k": 1234, "new": "nowhere", "s": "my"})
            tool: item 77012, 大阪城公园
            assistant> change({"items": [{"item": 77012}, {"item": "77012"}], "to": {"city": "大阪城公园"}})
            assistant> note({"again": "W-1001", "twice": "W-1001"})
            tool: done
            tool: done
            "##;
        assert_eq!(
            facts(script),
            [
                "find id W-1001",
                "find n 12345",
                "change items.item 77012",
                "change items.item 77012",
                "change to.city 大阪城公园",
                "note again W-1001",
            ]
        );
    }

    #[test]
    fn what_stands_only_in_a_large_result_is_told_apart() {
        let script = r#"
            user: look it up
            assistant> read({"path": "/a"})
            tool: key AB-900 [big 9000]
            assistant> read({"path": "/b"})
            tool: key CD-900
            assistant> open({"first": "AB-900", "second": "CD-900"})
            tool: AB-900 is open
            assistant> shut({"first": "AB-900"})
            tool: done
            "#;
        assert_eq!(
            facts(script),
            ["open first AB-900 +", "open second CD-900", "shut first AB-900"]
        );
    }

    #[test]
    fn what_only_the_model_said_is_told_apart() {
        let script = r#"
            user: go
            assistant: I take gate-17, 北门车站
            assistant> run({"command": "make test"})
            tool: failed at gate-18
            assistant> run({"command": "make test", "gate": "gate-17", "at": "北门车站"})
            tool: make test
            assistant> run({"command": "make test", "gate": "gate-18"})
            tool: done
            "#;
        assert_eq!(
            facts(script),
            [
                "run command make test -",
                "run gate gate-17 -",
                "run at 北门车站 -",
                "run command make test",
                "run gate gate-18",
            ]
        );
    }

    #[test]
    fn arguments_that_are_no_object_hold_no_facts() {
        assert!(facts("user: take ABCD\nassistant> t(ABCD)\ntool: ok").is_empty());
    }
}
