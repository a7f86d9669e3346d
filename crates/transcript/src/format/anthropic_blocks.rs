//! Maps the content of Anthropic messages to our messages.
//!
//! [`anthropic::body`](super::anthropic::body) is the reverse, and reads what is kept here.

use crate::draft::{Draft, list_of, push_member};
use crate::object::Object;
use serde_json::value::RawValue;

/// Puts the blocks of an assistant message into `draft`: leading thinking under `thinking_blocks`,
/// tool calls as calls, anything else as parts, in order. If calls are not last, `source` keeps
/// their places.
///
/// # Errors
/// What is wrong with a block, and what was expected.
pub(crate) fn assistant(draft: &mut Draft, blocks: &[&RawValue]) -> Result<(), String> {
    let (mut thinking, mut parts) = (Vec::new(), Vec::new());
    let (mut places, mut further) = (Vec::new(), Vec::new());
    let (mut at, mut calls_are_last) = (0, true);
    for raw in blocks {
        let block = block_of(raw)?;
        match block.text("type").as_deref() {
            Some("thinking" | "redacted_thinking") if parts.is_empty() && places.is_empty() => {
                thinking.push(raw.get().to_owned());
            }
            Some("tool_use") => {
                let text = |key: &str| {
                    block.text(key).ok_or_else(|| wrong_key("tool_use", key, &block, "a string"))
                };
                let input = block.get("input").map_or("{}", RawValue::get);
                draft.call(&text("id")?, &text("name")?, input);
                places.push(at.to_string());
                further.push(members_but(&block, &["type", "id", "name", "input"]));
            }
            _ => {
                calls_are_last &= places.is_empty();
                parts.push(*raw);
                // The reverse conversion leaves blank texts out.
                if is_blank(&block) {
                    continue;
                }
            }
        }
        at += 1;
    }
    if !thinking.is_empty() {
        draft.field("thinking_blocks", &list_of(&thinking));
    }
    push_parts(draft, &parts);
    if !calls_are_last {
        draft.keep("calls_at", &format!("[{}]", places.join(",")));
    }
    if further.iter().any(|members| members != "{}") {
        draft.keep("calls", &format!("[{}]", further.join(",")));
    }
    Ok(())
}

/// Returns the messages that a user's content makes: one for each tool result, in order, and a user
/// message for anything else. A content that is null says nothing.
///
/// # Errors
/// What is wrong with the content, and what was expected.
pub(crate) fn user(content: &RawValue, line: u64) -> Result<Vec<Draft>, String> {
    if content.get().starts_with(['"', 'n']) {
        let mut draft = Draft::new("user", line);
        draft.content(content.get());
        return Ok(vec![draft]);
    }
    let blocks = Object::array_of(content).ok_or_else(|| wrong_content(content))?;
    let (mut drafts, mut parts) = (Vec::new(), Vec::new());
    for (at, raw) in blocks.into_iter().enumerate() {
        let block = block_of(raw)?;
        if block.text("type").as_deref() != Some("tool_result") {
            parts.push(raw);
            continue;
        }
        let mut draft = result(&block, line)?;
        if !parts.is_empty() {
            draft.keep("block_at", &at.to_string());
        }
        drafts.push(draft);
    }
    if !parts.is_empty() || drafts.is_empty() {
        let mut draft = Draft::new("user", line);
        push_parts(&mut draft, &parts);
        drafts.push(draft);
    }
    Ok(drafts)
}

fn result(block: &Object<'_>, line: u64) -> Result<Draft, String> {
    let mut draft = Draft::new("tool", line);
    let id = block
        .text("tool_use_id")
        .ok_or_else(|| wrong_key("tool_result", "tool_use_id", block, "a string"))?;
    draft.answers(&id);
    if let Some(content) = block.get("content") {
        if !content.get().starts_with(['"', '[', 'n']) {
            let expected = "a string, null or a list of blocks";
            return Err(wrong_key("tool_result", "content", block, expected));
        }
        draft.content(content.get());
    }
    let mut known = vec!["type", "tool_use_id", "content"];
    if block.get("is_error").is_some_and(|value| value.get() == "true") {
        draft.field("is_error", "true");
        known.push("is_error");
    }
    let further = members_but(block, &known);
    if further != "{}" {
        draft.keep("block", &further);
    }
    Ok(draft)
}

/// Returns whether a member of an object is the one that counts for its key: of a repeated key, the
/// last.
pub(crate) fn counts(object: &Object<'_>, key: &str, value: &RawValue) -> bool {
    object.get(key).is_some_and(|last| std::ptr::eq(last, value))
}

/// Returns the members of an object except for some, as an object. Earlier ones of a repeated key
/// count as further members, whatever the key.
pub(crate) fn members_but(object: &Object<'_>, known: &[&str]) -> String {
    let mut members = String::new();
    for (key, value) in &object.0 {
        if !(known.contains(&key.as_ref()) && counts(object, key, value)) {
            push_member(key, value.get(), &mut members);
        }
    }
    format!("{{{}}}", members.strip_prefix(',').unwrap_or_default())
}

/// Returns the error for a content of another type.
pub(crate) fn wrong_content(content: &RawValue) -> String {
    format!("\"content\" holds {}; expected a string or a list of blocks", begin(content))
}

/// Returns the beginning of a value, for an error.
pub(crate) fn begin(value: &RawValue) -> String {
    value.get().chars().take(40).collect()
}

/// Makes parts the content: a single plain text becomes a string.
fn push_parts(draft: &mut Draft, parts: &[&RawValue]) {
    if let [only] = parts
        && let Some(block) = Object::of(only)
        && let [(_, _), (_, _)] = block.0.as_slice()
        && block.text("type").as_deref() == Some("text")
        && let Some(text) = block.get("text").filter(|text| text.get().starts_with('"'))
    {
        draft.content(text.get());
        return;
    }
    for part in parts {
        draft.part(part.get());
    }
}

fn is_blank(block: &Object<'_>) -> bool {
    block.text("type").as_deref() == Some("text")
        && block.text("text").is_some_and(|text| text.trim().is_empty())
}

fn block_of(raw: &RawValue) -> Result<Object<'_>, String> {
    Object::of(raw).ok_or_else(|| {
        format!("a content block is {}; expected an object with a \"type\"", begin(raw))
    })
}

fn wrong_key(kind: &str, key: &str, block: &Object<'_>, expected: &str) -> String {
    let found = block.get(key).map_or_else(|| "nothing".to_owned(), begin);
    format!("the {key:?} of a {kind} block holds {found}; expected {expected}")
}
