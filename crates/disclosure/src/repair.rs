//! Changes a message so that a chat API accepts it. It is changed in the view only; the recorded
//! message stays as it is.

use crate::raw::{ObjectWriter, RawObject, string};
use foldback_core::{Content, Message, Part, Role, ToolCall};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// Replaces an empty result in a block's text.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// The label before an instruction that is shown as a user's turn.
pub(crate) const INSTRUCTION: &str = "[system instruction]";

/// Returns the message as it can be sent, whatever surrounds it: legal names and ids, no empty
/// content, calls by the model alone. `None` if nothing is left to send. A message that needs no
/// repair is returned unchanged and shared.
pub(crate) fn sendable(message: &Arc<Message>) -> Option<Arc<Message>> {
    if let Role::Other(role) = message.role() {
        return as_user_text(&format!("[{}]", legal_name(role)), message).map(Arc::new);
    }
    let mut changes = Changes::default();
    let may_call = *message.role() == Role::Assistant;
    if !may_call && !message.tool_calls().is_empty() {
        changes.calls = Some(Vec::new());
    } else if message.tool_calls().iter().any(|call| !is_legal(call)) {
        changes.calls = Some(message.tool_calls().iter().map(legal_call).collect());
    }
    if let Some(id) = message.tool_call_id() {
        let legal = legal_id(id.as_str());
        if legal != id.as_str() {
            changes.tool_call_id = Some(legal.into_owned());
        }
    }
    if let Some(name) = message.name() {
        let legal = legal_name(name);
        if legal != name {
            changes.name = Some(legal.into_owned());
        }
    }
    let calls = may_call && !message.tool_calls().is_empty();
    let is_silent = match message.role() {
        Role::Tool => matches!(message.content(), Content::Text(_)),
        _ => calls && *message.content() == Content::Empty,
    };
    if message.content().is_blank() && !is_silent {
        changes.content = Some(match message.role() {
            Role::Tool => Content::Text(String::new()),
            Role::Assistant if calls => Content::Empty,
            Role::Assistant => Content::Text(said_elsewhere(message)?),
            _ => return None,
        });
    }
    Some(if changes.is_none() { Arc::clone(message) } else { Arc::new(changes.apply(message)) })
}

/// The changes to one message; `None` leaves the part exactly as it is.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) content: Option<Content>,
    /// The calls, in order. What differs from the recorded call is rewritten, and the rest (a
    /// provider's own keys) stays.
    pub(crate) calls: Option<Vec<ToolCall>>,
    pub(crate) tool_call_id: Option<String>,
    pub(crate) name: Option<String>,
}

impl Changes {
    fn is_none(&self) -> bool {
        self.content.is_none()
            && self.calls.is_none()
            && self.tool_call_id.is_none()
            && self.name.is_none()
    }

    pub(crate) fn apply(&self, message: &Message) -> Message {
        let mut out = ObjectWriter::default();
        let mut content = self.content.as_ref().map(content_json);
        for (key, value) in message.fields() {
            let new = match key.as_ref() {
                "content" => content.take(),
                "tool_calls" => match &self.calls {
                    Some(calls) if calls.is_empty() => continue,
                    Some(calls) => calls_json(value, message.tool_calls(), calls),
                    None => None,
                },
                "tool_call_id" => self.tool_call_id.as_deref().map(string),
                "name" => self.name.as_deref().map(string),
                _ => None,
            };
            out.member(&key, new.as_deref().unwrap_or(value.get()));
        }
        if let Some(content) = content {
            out.member("content", &content);
        }
        // Exact members of a message that was read once can be read again; should that ever fail,
        // the parts that are known here are rewritten.
        Message::from_json(&out.finish()).unwrap_or_else(|_| {
            let content = self.content.clone().unwrap_or_else(|| message.content().clone());
            let calls = self.calls.clone().unwrap_or_else(|| message.tool_calls().to_vec());
            message.with_body(content, calls)
        })
    }
}

fn calls_json(value: &RawValue, old: &[ToolCall], new: &[ToolCall]) -> Option<String> {
    let raw: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    let mut out = String::from("[");
    for ((raw, old), new) in raw.iter().zip(old).zip(new) {
        if out.len() > 1 {
            out.push(',');
        }
        if old == new {
            out.push_str(raw.get());
        } else {
            out.push_str(&call_json(raw, old, new)?);
        }
    }
    out.push(']');
    Some(out)
}

fn call_json(raw: &RawValue, old: &ToolCall, new: &ToolCall) -> Option<String> {
    let call = RawObject::parse(raw.get())?;
    // A call of another type than `function` names its body by its type.
    let kind: Option<String> = call.get("type").and_then(|t| serde_json::from_str(t.get()).ok());
    let body_key = match kind {
        _ if call.get("function").is_some() => "function".to_owned(),
        kind => kind?,
    };
    let mut out = ObjectWriter::default();
    for (key, value) in &call.0 {
        if key == "id" && old.id != new.id {
            out.member(key, &string(new.id.as_str()));
        } else if *key == body_key {
            let mut body = ObjectWriter::default();
            for (key, value) in &RawObject::parse(value.get())?.0 {
                match key.as_str() {
                    "name" if old.name != new.name => body.member(key, &string(&new.name)),
                    "arguments" | "input" if old.arguments != new.arguments => {
                        body.member(key, &string(&new.arguments));
                    }
                    _ => body.member(key, value.get()),
                }
            }
            out.member(key, &body.finish());
        } else {
            out.member(key, value.get());
        }
    }
    Some(out.finish())
}

fn content_json(content: &Content) -> String {
    match content {
        Content::Empty => "null".to_owned(),
        Content::Text(text) => string(text),
        Content::Parts(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => {
                        format!("{{\"type\":\"text\",\"text\":{}}}", string(text))
                    }
                    Part::Other(json) => json.to_string(),
                })
                .collect();
            format!("[{}]", parts.join(","))
        }
    }
}

/// Returns an instruction that comes after the conversation has begun as a user's text that says
/// what it is: chat APIs accept instructions only at the beginning, where they would accumulate.
pub(crate) fn instruction(message: &Message) -> Option<Message> {
    as_user_text(INSTRUCTION, message)
}

/// Returns a message whose role is not allowed in its place as a user's text that begins with a label.
fn as_user_text(label: &str, message: &Message) -> Option<Message> {
    if message.content().is_blank() {
        return None;
    }
    let content = match message.content() {
        Content::Parts(parts) => {
            let label = Part::Text(label.to_owned());
            Content::Parts(std::iter::once(label).chain(parts.iter().cloned()).collect())
        }
        _ => Content::Text(format!("{label} {}", message.text())),
    };
    Some(Message::compose(Role::User, content, Vec::new(), None))
}

/// Returns what a model's message without content and calls says in another key, if anything.
fn said_elsewhere(message: &Message) -> Option<String> {
    message.fields().into_iter().find_map(|(key, value)| match key.as_ref() {
        "refusal" => {
            serde_json::from_str::<String>(value.get()).ok().filter(|text| !text.trim().is_empty())
        }
        "function_call" => {
            let call = RawObject::parse(value.get())?;
            let text = |key| {
                call.get(key).and_then(|value| serde_json::from_str::<String>(value.get()).ok())
            };
            Some(format!("(called {} with {})", text("name")?, text("arguments")?))
        }
        _ => None,
    })
}

fn is_legal(call: &ToolCall) -> bool {
    legal_id(call.id.as_str()) == call.id.as_str() && legal_name(&call.name) == call.name
}

fn legal_call(call: &ToolCall) -> ToolCall {
    ToolCall::new(&legal_id(call.id.as_str()), &legal_name(&call.name), &call.arguments)
}

/// The greatest length of a call's id: the smallest limit among the providers.
const ID_MAX: usize = 40;

/// Returns a call's id of 1 to 40 characters of `[a-zA-Z0-9_-]`: unchanged if it fits, else its
/// readable part and a hash of the whole, so that two ids stay distinct.
pub(crate) fn legal_id(id: &str) -> Cow<'_, str> {
    if !id.is_empty() && id.len() <= ID_MAX && id.bytes().all(is_name_byte) {
        return Cow::Borrowed(id);
    }
    let readable: String =
        id.chars().filter(|c| is_name_char(*c)).take(ID_MAX - 9).collect::<String>();
    let readable = if readable.is_empty() { "call" } else { &readable };
    Cow::Owned(format!("{readable}-{:08x}", short_hash(id)))
}

/// Returns a name of 1 to 64 characters of `[a-zA-Z0-9_-]`, which is what providers accept for
/// tools and speakers. What does not fit becomes `_`; a name that loses letters of its own gets a
/// hash, so that two speakers stay distinct.
pub(crate) fn legal_name(name: &str) -> Cow<'_, str> {
    if !name.is_empty() && name.len() <= 64 && name.bytes().all(is_name_byte) {
        return Cow::Borrowed(name);
    }
    let readable: String =
        name.chars().take(55).map(|c| if is_name_char(c) { c } else { '_' }).collect();
    let loses = !name.is_ascii() || name.chars().nth(55).is_some() || name.is_empty();
    if !loses {
        return Cow::Owned(readable);
    }
    let readable = readable.trim_matches('_');
    let readable = if readable.is_empty() { "name" } else { readable };
    Cow::Owned(format!("{readable}-{:08x}", short_hash(name)))
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

fn is_name_char(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_name_byte)
}

/// FNV-1a, folded to 32 bits: it distinguishes names and protects nothing.
fn short_hash(text: &str) -> u32 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    ((hash >> 32) ^ (hash & 0xffff_ffff)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<&str>) {
        let message = Arc::new(Message::from_json(json).unwrap());
        let sent = sendable(&message);
        assert_eq!(sent.as_ref().map(|m| m.json()), expected);
        if expected == Some(json) {
            assert!(Arc::ptr_eq(&sent.unwrap(), &message), "what needs no repair is shared");
        }
    }

    #[test]
    fn lv3_what_is_legal_stays_as_it_is() {
        for json in [
            r#"{"role":"user","content":"a","x":1.50}"#,
            r#"{"content":null,"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]}"#,
            r#"{"role":"developer","content":"be kind"}"#,
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}"#,
        ] {
            check(json, Some(json));
        }
    }

    #[test]
    fn lv3_what_says_nothing_is_left_out_or_is_a_silent_result() {
        check(r#"{"role":"user","content":" \n"}"#, None);
        check(r#"{"role":"assistant","content":""}"#, None);
        check(r#"{"role":"system","content":""}"#, None);
        let silent = r#"{"role":"tool","tool_call_id":"a","content":""}"#;
        check(silent, Some(silent));
        check(r#"{"role":"tool","tool_call_id":"a"}"#, Some(silent));
        check(r#"{"role":"tool","tool_call_id":"a","content":[]}"#, Some(silent));
        check(
            r#"{"role":"assistant","content":null,"refusal":"I will not"}"#,
            Some(r#"{"role":"assistant","content":"I will not","refusal":"I will not"}"#),
        );
    }

    #[test]
    fn lv3_calls_are_the_models_alone_and_have_legal_names() {
        check(
            r#"{"role":"user","content":"a","tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]}"#,
            Some(r#"{"role":"user","content":"a"}"#),
        );
        check(
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","extra":{"s":1.0},"function":{"name":"fs.read","arguments":"{ }"}}]}"#,
            Some(
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","extra":{"s":1.0},"function":{"name":"fs_read","arguments":"{ }"}}]}"#,
            ),
        );
    }

    #[test]
    fn lv11_names_and_ids_become_legal_and_stay_apart() {
        for id in ["", "a b", "调用", "x".repeat(90).as_str(), "call:1|2"] {
            let legal = legal_id(id);
            assert!((1..=ID_MAX).contains(&legal.len()) && legal.bytes().all(is_name_byte));
        }
        assert_ne!(legal_id("调用一"), legal_id("调用二"));
        assert_eq!(legal_name("Project Manager"), "Project_Manager");
        assert_ne!(legal_name("张三"), legal_name("李四"));
        for name in ["", "张三", "x".repeat(80).as_str(), "...."] {
            let legal = legal_name(name);
            assert!((1..=64).contains(&legal.len()) && legal.bytes().all(is_name_byte));
        }
    }

    #[test]
    fn lv11_a_role_that_no_api_knows_becomes_a_users_text() {
        check(
            r#"{"role":"critic","content":"too long"}"#,
            Some(r#"{"role":"user","content":"[critic] too long"}"#),
        );
    }
}
