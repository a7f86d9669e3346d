//! Chat-completions: bare arrays of messages, and request bodies.

use super::{Context, Format, conversation, messages_of};
use crate::object::{Object, push_one_line, push_string};
use crate::{Conversation, Error, Options};
use foldback_core::{Message, ToolDefinition};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Returns a request body of the chat-completions API, on one line: the messages as they are,
/// without the keys that only a recording has ([`Message::api_json`]), and the tools. Nothing is
/// repaired here; [`foldback_core::check_request`] says whether an API would accept the messages.
#[must_use]
pub fn body<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    tools: &[ToolDefinition],
    options: &Options,
) -> String {
    let mut out = String::from("{");
    if let Some(model) = &options.model {
        out.push_str("\"model\":");
        push_string(model, &mut out);
        out.push(',');
    }
    out.push_str("\"messages\":[");
    for (i, message) in messages.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        push_one_line(&message.api_json(), &mut out);
    }
    out.push(']');
    if !tools.is_empty() {
        out.push_str(",\"tools\":[");
        for (i, tool) in tools.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            out.push_str("{\"type\":\"function\",\"function\":{\"name\":");
            push_string(&tool.name, &mut out);
            out.push_str(",\"description\":");
            push_string(&tool.description, &mut out);
            out.push_str(",\"parameters\":");
            push_schema(&tool.parameters, &mut out);
            out.push_str("}}");
        }
        out.push(']');
    }
    if let Some(max) = options.max_tokens {
        out.push_str(&format!(",\"max_completion_tokens\":{max}"));
    }
    out.push('}');
    out
}

/// Writes the schema of a tool's arguments; anything but a JSON object becomes the schema of any object.
pub(super) fn push_schema(schema: &str, out: &mut String) {
    if serde_json::from_str::<Object<'_>>(schema).is_ok() {
        push_one_line(schema.trim(), out);
    } else {
        out.push_str("{\"type\":\"object\"}");
    }
}

/// Returns whether an object is a request body.
pub(super) fn fits(object: &Object<'_>) -> bool {
    object.has("messages")
}

pub(super) fn read_body(
    text: &str,
    object: &Object<'_>,
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let (array, values) = messages_of(object, context)?;
    conversation(Format::ChatCompletionsBody, None, text, array, &values, context)
}

pub(super) fn read_array(
    text: &str,
    values: &[&RawValue],
    context: Context<'_>,
) -> Result<Conversation, Error> {
    if values.is_empty() {
        return Err(context.no_messages(Format::ChatCompletionsArray, &BTreeMap::new()));
    }
    conversation(Format::ChatCompletionsArray, None, text, text, values, context)
}
