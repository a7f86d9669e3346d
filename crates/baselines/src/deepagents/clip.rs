//! Long arguments of calls that write or edit files, cut to their beginnings.

use foldback_core::{Message, Object, ToolCall};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An argument with more characters than this is clipped.
const ARGUMENT_CHARACTERS: usize = 2_000;

/// The number of its characters that are kept.
const KEPT_CHARACTERS: usize = 20;

/// The words by which a tool that writes files is recognised. The original knows `write_file` and
/// `edit_file`; other agents' tools do the same under other names.
const WORDS: [&str; 5] = ["write", "edit", "editor", "multiedit", "patch"];

/// Returns the message with its long arguments clipped; `None` if there are none.
pub(super) fn clipped(message: &Message) -> Option<Message> {
    let clip = |call: &ToolCall| if writes(&call.name) { clipped_call(call) } else { None };
    let calls: Vec<Option<ToolCall>> = message.tool_calls().iter().map(clip).collect();
    if calls.iter().all(Option::is_none) {
        return None;
    }
    let recorded = message.tool_calls().iter();
    let calls = recorded.zip(calls).map(|(call, clipped)| clipped.unwrap_or_else(|| call.clone()));
    Some(message.with_body(message.content().clone(), calls.collect()))
}

/// Returns whether one of the words in a name says that the tool writes: `write_file`, `MultiEdit`, but
/// not `get_credit`.
fn writes(name: &str) -> bool {
    let mut word = String::new();
    let mut ends_lower = false;
    for c in name.chars().chain(['_']) {
        let begins_word = c.is_uppercase() && ends_lower;
        if begins_word || !c.is_alphanumeric() {
            if WORDS.contains(&word.as_str()) {
                return true;
            }
            word.clear();
        }
        ends_lower = c.is_lowercase();
        word.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
    }
    false
}

/// Returns the call with its long arguments clipped; `None` if there are none.
fn clipped_call(call: &ToolCall) -> Option<ToolCall> {
    let mut is_clipped = false;
    let member = |(key, value): &(Cow<'_, str>, &RawValue)| {
        let clipped = clipped_value(value);
        is_clipped |= clipped.is_some();
        format!("{}: {}", quoted(key), clipped.as_deref().unwrap_or(value.get()))
    };
    let members: Vec<String> = call.members()?.iter().map(member).collect();
    let arguments = format!("{{{}}}", members.join(", "));
    is_clipped.then(|| ToolCall { id: call.id.clone(), name: call.name.clone(), arguments })
}

fn clipped_value(value: &RawValue) -> Option<String> {
    let text = Object::text_of(value).filter(|text| text.len() > ARGUMENT_CHARACTERS)?;
    if text.chars().count() <= ARGUMENT_CHARACTERS {
        return None;
    }
    let head: String = text.chars().take(KEPT_CHARACTERS).collect();
    Some(quoted(&format!("{head}... (clipped)")))
}

/// Returns a text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_write_are_known_by_a_word_of_their_name() {
        for name in
            ["write_file", "edit_file", "Write", "MultiEdit", "str_replace_editor", "applyPatch"]
        {
            assert!(writes(name), "{name}");
        }
        for name in ["read_file", "get_credit", "create_order", "Bash", "rewriter", "", "写_file"]
        {
            assert!(!writes(name), "{name}");
        }
    }

    #[test]
    fn an_argument_of_2000_characters_stays_and_one_of_2001_is_clipped() {
        let call = |content: &str| {
            let content = quoted(content);
            let arguments = format!(r#"{{"n": 1.50, "content": {content}}}"#);
            Message::calls("", vec![ToolCall::new("c", "write_file", &arguments)])
        };
        assert!(clipped(&call(&"门".repeat(2_000))).is_none());
        let message = clipped(&call(&"门\"".repeat(1_001))).unwrap();
        let head = "门\\\"".repeat(10);
        let expected = format!(r#"{{"n": 1.50, "content": "{head}... (clipped)"}}"#);
        assert_eq!(message.tool_calls()[0].arguments, expected);
        let other = ToolCall::new("c", "read_file", &message.tool_calls()[0].arguments);
        assert!(clipped(&Message::calls("", vec![other])).is_none());
    }
}
