//! Reads request bodies of the Anthropic Messages API, and lists of its messages.

use super::anthropic_blocks::{self, begin, members_but, wrong_content};
use super::lines::Lines;
use super::wrapper::Wrapped;
use super::{Context, Format, foreign, messages_of};
use crate::conversation::id_of;
use crate::conversion::Conversion;
use crate::draft::Draft;
use crate::object::Object;
use crate::record::ROOM;
use crate::scan::{check_depth, json_error};
use crate::{Conversation, Error, Limits, Place};
use foldback_core::Message;
use serde_json::value::RawValue;

/// Returns whether an object is a body whose messages say more than chat-completions can.
pub(super) fn fits(body: &Object<'_>) -> bool {
    let Some(messages) = body.array("messages") else { return false };
    if body.has("id") {
        // A conversation of ours may carry such keys and parts, and is reproduced as it was; calls
        // and results in the form of this API would not be recognised as such.
        return foreign::has_anthropic_blocks(&messages, foreign::CALLS);
    }
    let is_system = body.get("system").is_some_and(|system| system.get().starts_with(['"', '[']));
    foreign::has_anthropic_blocks(&messages, foreign::BLOCKS) || is_system && !is_chat(body)
}

/// Returns whether a message of a body is certainly one of chat-completions.
pub(super) fn is_chat(body: &Object<'_>) -> bool {
    body.array("messages").is_some_and(|m| m.iter().any(|m| foreign::is_chat_message(m)))
}

/// Returns whether a list consists of such messages.
pub(super) fn fits_array(items: &[&RawValue]) -> bool {
    foreign::has_anthropic_blocks(items, foreign::BLOCKS)
}

/// Reads a body, and the answer to it if there is one.
pub(super) fn read_body(
    text: &str,
    wrapped: &Wrapped<'_>,
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let body = &wrapped.body;
    let mut lines = Lines::new(text, context.place.line);
    let id = wrapped.id.clone().or_else(|| body.get("id").and_then(|id| id_of(id.get())));
    let mut conversion = Conversion::new(Format::AnthropicBody, id);
    wrapped.facts(&mut conversion, &["id", "system", "messages"]);
    if let Some(system) = body.get("system").filter(|system| system.get() != "null") {
        let line = lines.of(system.get());
        if !system.get().starts_with(['"', '[']) {
            return Err(context.shape(
                line,
                format!(
                    "\"system\" holds {}; expected a string or a list of text blocks",
                    begin(system)
                ),
            ));
        }
        let mut draft = Draft::new("system", line);
        draft.content(system.get());
        conversion.push(draft, context)?;
    }
    let (_, messages) = messages_of(body, context)?;
    push_messages(&mut conversion, &messages, lines, context)?;
    if let Some(answer) = &wrapped.answer {
        let line = context.place.line;
        let wrong = |what| context.shape(line, format!("the response: {what}"));
        let Some(content) = answer.get("content") else {
            // An error, or something else that is not a message.
            conversion.fact("response", &members_but(answer, &[]));
            return Ok(conversion.finish());
        };
        let mut draft = assistant(content, line).map_err(wrong)?;
        draft.keep("keys", &members_but(answer, &["role", "content"]));
        conversion.push(draft, context)?;
    }
    Ok(conversion.finish())
}

/// Reads a bare list of messages.
pub(super) fn read_array(
    text: &str,
    items: &[&RawValue],
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let mut conversion = Conversion::new(Format::AnthropicBody, None);
    push_messages(&mut conversion, items, Lines::new(text, context.place.line), context)?;
    Ok(conversion.finish())
}

/// Converts one message of a body to our messages: tool results are messages of their own.
pub(super) fn read_message(json: &str) -> Result<Vec<Message>, Error> {
    let (place, limits) = (Place { file: "a message".to_owned(), line: 1 }, Limits::default());
    let context = Context { place: &place, limits: &limits, meta: None };
    let value: &RawValue =
        serde_json::from_str(json).map_err(|error| json_error(&error, json, &place))?;
    check_depth(json, &place, &limits.without_depth(ROOM))?;
    let mut conversion = Conversion::new(Format::AnthropicBody, None);
    push_messages(&mut conversion, &[value], Lines::new(json, 1), context)?;
    Ok(conversion.finish().messages)
}

fn push_messages(
    conversion: &mut Conversion,
    messages: &[&RawValue],
    mut lines: Lines<'_>,
    context: Context<'_>,
) -> Result<(), Error> {
    for (index, raw) in messages.iter().enumerate() {
        let line = lines.of(raw.get());
        let drafts = drafts_of(raw, line)
            .map_err(|what| context.shape(line, format!("message {index}: {what}")))?;
        for mut draft in drafts {
            // Records which results shared one message of the source.
            draft.keep("message", &index.to_string());
            conversion.push(draft, context)?;
        }
    }
    Ok(())
}

fn drafts_of(raw: &RawValue, line: u64) -> Result<Vec<Draft>, String> {
    let message = Object::of(raw)
        .ok_or_else(|| format!("it is {}; expected an object with a \"role\"", begin(raw)))?;
    let role = message.get("role").map_or_else(|| "nothing".to_owned(), begin);
    let content = message
        .get("content")
        .ok_or_else(|| "it has no \"content\"; expected a string or a list of blocks".to_owned())?;
    let mut drafts = match message.text("role").as_deref() {
        Some("user") => anthropic_blocks::user(content, line)?,
        Some("assistant") => vec![assistant(content, line)?],
        // Instructions in the middle of the conversation.
        Some("system") => {
            let mut draft = Draft::new("system", line);
            draft.content(content.get());
            vec![draft]
        }
        _ => {
            return Err(format!(
                "the role is {role}; expected \"user\", \"assistant\" or \"system\""
            ));
        }
    };
    let further = members_but(&message, &["role", "content"]);
    if further != "{}" {
        for draft in &mut drafts {
            for key in ["id", "timestamp"] {
                if let Some(value) = message.get(key).filter(|value| value.get().starts_with('"')) {
                    draft.field(key, value.get());
                }
            }
            draft.keep("keys", &further);
        }
    }
    Ok(drafts)
}

/// Reads what the model said: a text, blocks, or nothing.
fn assistant(content: &RawValue, line: u64) -> Result<Draft, String> {
    let mut draft = Draft::new("assistant", line);
    if content.get().starts_with(['"', 'n']) {
        draft.content(content.get());
    } else {
        let blocks = Object::array_of(content).ok_or_else(|| wrong_content(content))?;
        anthropic_blocks::assistant(&mut draft, &blocks)?;
    }
    Ok(draft)
}
