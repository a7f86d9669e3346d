//! Recognises shapes that are known but not read, so that the error can name them.

use crate::object::Object;
use serde_json::value::RawValue;

/// Says what a JSON object is, if it is known but not read here: a sentence without its full stop.
pub(super) fn recognise_object(found: &Object<'_>) -> Option<&'static str> {
    let kind = found.text("type");
    let kind = kind.as_deref();
    if !holds_messages(found)
        && let Some(line) = recognise_line(found, kind)
    {
        return Some(line);
    }
    if is_langchain(found) {
        return Some("This looks like LangChain data that is not a message");
    }
    recognise_whole(found, kind)
}

/// Says what an object is that is one line of a log or history.
fn recognise_line(found: &Object<'_>, kind: Option<&str>) -> Option<&'static str> {
    if matches!(
        kind,
        Some(
            "session_meta"
                | "response_item"
                | "event_msg"
                | "turn_context"
                | "compacted"
                | "world_state"
        )
    ) && found.object("payload").is_some()
        || found.text("record_type").as_deref() == Some("state")
        || (kind.is_none() && found.has("instructions") && found.text("timestamp").is_some())
        || (found.object("session").is_some_and(|s| s.has("id")) && found.array("items").is_some())
    {
        return Some(
            "This looks like a line of a session log of Codex, which is read as a whole file",
        );
    }
    if (found.has("sessionId") && found.has("parentUuid") && found.has("uuid"))
        || (matches!(kind, Some("summary" | "last-prompt")) && found.has("leafUuid"))
        || (kind == Some("file-history-snapshot") && found.has("messageId"))
        || (kind.is_some() && found.has("sessionId"))
    {
        return Some(
            "This looks like a line of a session log of Claude Code, which is read as a whole file",
        );
    }
    if matches!(kind, Some("system" | "assistant" | "result" | "user")) && found.has("session_id") {
        return Some("This looks like the stream output of Claude Code, not a session log");
    }
    if matches!(kind, Some("thread.started" | "turn.started" | "item.completed")) {
        return Some("This looks like the output of codex exec --json, not a session log");
    }
    if (found.has("session_id") && found.has("ts") && found.has("text"))
        || (found.has("display") && found.has("timestamp") && found.has("project"))
    {
        return Some("This looks like a history of prompts, not a conversation");
    }
    None
}

/// Says what a standalone object is.
fn recognise_whole(found: &Object<'_>, kind: Option<&str>) -> Option<&'static str> {
    if found.has("sessionId") && found.has("projectHash") {
        return Some("This looks like a session of Gemini CLI, which is not read yet");
    }
    if (found.has("trajectory") && found.has("history"))
        || found.has("trajectory_format")
        || found.text("schema_version").is_some_and(|version| version.starts_with("ATIF-"))
    {
        return Some("This looks like an agent's trajectory file, which is not read yet");
    }
    if (found.text("object").as_deref() == Some("response") && found.has("output"))
        || (found.has("input") && found.has("model") && !found.has("messages"))
    {
        return Some("This looks like a body of the OpenAI Responses API, which is not read yet");
    }
    if found.has("choices") {
        return Some(
            "This looks like a chat-completions response, which holds one answer and not a conversation",
        );
    }
    if kind == Some("message") && found.array("content").is_some() && found.has("stop_reason") {
        return Some(
            "This looks like an Anthropic response, which holds one answer and not a conversation",
        );
    }
    if !found.has("messages") && found.text("role").is_some() {
        return Some(
            "This is one message and not a conversation (lines of single messages are taken where \
             messages are recorded one by one)",
        );
    }
    None
}

/// Says what an array is, if it is known but not read here.
pub(super) fn recognise_array(items: &[&RawValue]) -> Option<String> {
    let first = items.first()?;
    let Some(found) = Object::of(first) else {
        return Some(format!(
            "This is a list that begins with {}, not with a message",
            first.get().chars().take(40).collect::<String>()
        ));
    };
    if let Some(known) = recognise_object(&found)
        && !found.has("role")
    {
        let known = known.trim_start_matches("This looks like ");
        return Some(format!("This is a list whose items look like {known}"));
    }
    if found.has("messages") {
        return Some(
            "This is a list of conversations; expected one conversation on each line".to_owned(),
        );
    }
    if found.has("call_id") {
        return Some(
            "This looks like items of the OpenAI Responses API, which are not read yet".to_owned(),
        );
    }
    (!found.has("role")).then(|| describe(&found))
}

/// Describes an unknown object by its keys.
pub(super) fn describe(found: &Object<'_>) -> String {
    let keys: Vec<_> = found
        .0
        .iter()
        .take(8)
        .map(|(key, _)| format!("{:?}", key.chars().take(30).collect::<String>()))
        .collect();
    if keys.is_empty() {
        return "This is an object without keys".to_owned();
    }
    let more = if found.0.len() > keys.len() { " and others" } else { "" };
    format!("This is an object with the keys {}{more}, of an unknown format", keys.join(", "))
}

/// Describes a text that is not a JSON object or array.
pub(super) fn describe_text(text: &str) -> String {
    if text.starts_with("## Summarized at ") {
        return "This looks like a conversation history of deepagents, which is not read yet"
            .to_owned();
    }
    let begin: String = text.lines().next().unwrap_or("").chars().take(40).collect();
    format!("The text begins with {begin:?}, which is not a JSON object or array")
}

/// Says what bytes are with which no text begins.
pub(crate) fn describe_bytes(bytes: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 8] = [
        (b"SQLite format 3\0", "This is an SQLite database"),
        (b"\x28\xb5\x2f\xfd", "This is packed with zstd more than once; unpack it once"),
        (b"\x1f\x8b", "This is packed with gzip; unpack it first, or pack it with zstd"),
        (b"PK\x03\x04", "This is a zip archive; unpack it first"),
        (b"BZh", "This is packed with bzip2; unpack it first, or pack it with zstd"),
        (b"\xfd7zXZ\0", "This is packed with xz; unpack it first, or pack it with zstd"),
        (b"\xff\xfe", "This is UTF-16 text; conversations are UTF-8"),
        (b"\xfe\xff", "This is UTF-16 text; conversations are UTF-8"),
    ];
    known.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| name)
}

fn is_langchain(found: &Object<'_>) -> bool {
    let constructor = found.has("lc") && found.text("type").as_deref() == Some("constructor");
    let dict = found.object("data").is_some_and(|data| data.has("content"))
        && found.text("type").is_some();
    let flat = found.has("content")
        && (found.has("additional_kwargs") || found.has("response_metadata"))
        && !found.has("role");
    constructor || dict || flat
}

/// Returns whether an object has messages, each with a role. No line of a log has that, whatever
/// else it has.
pub(crate) fn holds_messages(found: &Object<'_>) -> bool {
    let Some(messages) = found.array("messages") else { return false };
    let has_role =
        |message: &&RawValue| Object::of(message).is_some_and(|m| m.text("role").is_some());
    let is_named = || super::foldback_line::fits(found);
    messages.iter().all(has_role) && (!messages.is_empty() || is_named())
}

/// Blocks of Anthropic's API that carry meaning and that chat-completions do not know.
pub(super) const BLOCKS: &[&str] =
    &["tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"];

/// Those of them that are calls or results.
pub(super) const CALLS: &[&str] = &["tool_use", "tool_result"];

/// Returns whether the messages hold a block of a wanted type.
pub(super) fn has_anthropic_blocks(messages: &[&RawValue], wanted: &[&str]) -> bool {
    let mut found = false;
    for message in messages {
        if is_chat_message(message) {
            return false;
        }
        // Looking for the name first spares most messages a second parse.
        let may_hold = |name: &str| message.get().contains(name);
        if !wanted.iter().any(|name| may_hold(name)) {
            continue;
        }
        let parts = Object::of(message).and_then(|m| m.get("content")).and_then(Object::array_of);
        found |= parts.into_iter().flatten().filter_map(Object::of).any(|part| {
            let Some(kind) = part.text("type") else { return false };
            let is_source = matches!(kind.as_ref(), "image" | "document");
            wanted.contains(&kind.as_ref()) && (!is_source || part.object("source").is_some())
        });
    }
    found
}

/// Returns whether a message is certainly one of chat-completions.
pub(super) fn is_chat_message(message: &RawValue) -> bool {
    Object::of(message).is_some_and(|m| {
        m.has("tool_calls")
            || m.has("tool_call_id")
            || m.object("source").is_some_and(|source| source.has("format"))
            || m.text("role").is_some_and(|role| {
                matches!(role.as_ref(), "system" | "developer" | "tool" | "function")
            })
    })
}
