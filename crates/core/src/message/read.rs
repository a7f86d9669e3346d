//! Reading the values of a message.

use crate::{Content, MessageError, Object, Part, ToolCall};
use serde_json::value::RawValue;
use std::borrow::Cow;

fn shape(key: &'static str, expected: &'static str, found: &RawValue) -> MessageError {
    MessageError::Shape { key, expected, found: found.get().chars().take(60).collect() }
}

pub(super) fn string<'a>(
    key: &'static str,
    value: &'a RawValue,
) -> Result<Cow<'a, str>, MessageError> {
    Object::text_of(value).ok_or_else(|| shape(key, "a string", value))
}

pub(super) fn opt_string(value: &RawValue) -> Option<String> {
    Object::text_of(value).map(Cow::into_owned)
}

pub(super) fn read_content(value: &RawValue) -> Result<Content, MessageError> {
    const EXPECTED: &str = "a string, null or a list of parts";
    match value.get().as_bytes().first() {
        Some(b'"') => Ok(Content::Text(string("content", value)?.into_owned())),
        Some(b'n') => Ok(Content::Empty),
        Some(b'[') => {
            let parts: Vec<&RawValue> = serde_json::from_str(value.get())?;
            parts.into_iter().map(read_part).collect::<Result<_, _>>().map(Content::Parts)
        }
        _ => Err(shape("content", EXPECTED, value)),
    }
}

fn read_part(value: &RawValue) -> Result<Part, MessageError> {
    if value.get().starts_with('"') {
        return Ok(Part::Text(string("content", value)?.into_owned()));
    }
    let part = Object::of(value)
        .ok_or_else(|| shape("content", "parts that are objects or strings", value))?;
    // Further keys of a text part (a cache mark, annotations) stay in the message's text.
    if part.text("type").as_deref() == Some("text")
        && let Some(text) = part.text("text")
    {
        return Ok(Part::Text(text.into_owned()));
    }
    Ok(Part::Other(value.get().into()))
}

/// Returns the calls, and whether all of them are as chat APIs write them: with arguments that are
/// text.
pub(super) fn read_calls(value: &RawValue) -> Result<(Vec<ToolCall>, bool), MessageError> {
    const EXPECTED: &str = "a list of calls, each with an id and a function";
    let wrong = || shape("tool_calls", EXPECTED, value);
    let raw: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|_| wrong())?;
    let mut calls = Vec::with_capacity(raw.len());
    let mut usual = true;
    for call in raw {
        let (call, is_usual) = read_call(call).ok_or_else(wrong)?;
        calls.push(call);
        usual &= is_usual;
    }
    Ok((calls, usual))
}

fn read_call(value: &RawValue) -> Option<(ToolCall, bool)> {
    let call = Object::of(value)?;
    let id = call.text("id")?;
    // A call of another type than `function` names its body by its type.
    let kind = call.text("type").unwrap_or(Cow::Borrowed("function"));
    let body = Object::of(call.get("function").or_else(|| call.get(&kind))?)?;
    let name = body.text("name")?;
    let value = body.get("arguments").or_else(|| body.get("input"));
    let text = value.and_then(Object::text_of);
    let is_usual = text.is_some();
    let arguments = text.or_else(|| value.map(|value| Cow::Borrowed(value.get())));
    let call = ToolCall::new(&id, &name, arguments.as_deref().unwrap_or("{}"));
    Some((call, is_usual))
}
