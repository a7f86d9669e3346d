//! Bodies inside lines of logs and batches.

use super::anthropic_blocks::members_but;
use super::{Context, Format, messages_of, place_of};
use crate::conversion::Conversion;
use crate::object::{Object, object};
use crate::{Conversation, Error};

/// A request body, and what stood around it.
pub(super) struct Wrapped<'a> {
    pub(super) body: Object<'a>,
    /// The body of the answer.
    pub(super) answer: Option<Object<'a>>,
    /// The name of the request in its batch.
    pub(super) id: Option<String>,
    /// What stood around the body and the answer, by name: the members but for those.
    around: Vec<(&'static str, String)>,
}

impl<'a> Wrapped<'a> {
    /// A body that stands by itself.
    pub(super) fn bare(body: Object<'a>) -> Self {
        Self { body, answer: None, id: None, around: Vec::new() }
    }

    /// The body in `{"request", "response"}`, or in a line of a batch: `{"custom_id", "body"}` or
    /// `{"custom_id", "params"}`.
    pub(super) fn of(line: &Object<'a>) -> Option<Self> {
        let id = line.text("custom_id");
        let key = if line.has("response") && line.has("request") {
            "request"
        } else {
            ["body", "params"].into_iter().find(|key| id.is_some() && line.has(key))?
        };
        let mut around = vec![("around", members_but(line, &[key, "response"]))];
        let mut inside = |name, object: Object<'a>| match object.object("body") {
            Some(body) => {
                around.push((name, members_but(&object, &["body"])));
                body
            }
            None => object,
        };
        let body = inside("request", line.object(key)?);
        let answer = line.get("response").and_then(object).map(|answer| inside("answer", answer));
        let id = id.map(|id| id.into_owned());
        body.has("messages").then_some(Self { body, answer, id, around })
    }

    /// States what is no message: the body but for `known`, and what stood around it.
    pub(super) fn facts(&self, conversion: &mut Conversion, known: &[&str]) {
        conversion.fact("body", &members_but(&self.body, known));
        for (name, members) in &self.around {
            conversion.fact(name, members);
        }
    }
}

/// Reads a body of chat-completions that was inside something else, and the answer to it.
pub(super) fn read_chat(
    text: &str,
    wrapped: &Wrapped<'_>,
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let mut conversion = Conversion::new(Format::ChatCompletionsBody, wrapped.id.clone());
    wrapped.facts(&mut conversion, &["messages"]);
    let (_, messages) = messages_of(&wrapped.body, context)?;
    for message in messages {
        let line = place_of(message.get(), text, context.place).line;
        conversion.push_json(message.get(), line, context)?;
    }
    if let Some(answer) = &wrapped.answer {
        conversion.fact("response", &members_but(answer, &[]));
        let choices = answer.array("choices").unwrap_or_default();
        let message = choices.first().and_then(|choice| object(choice)?.get("message"));
        if let Some(message) = message {
            let line = place_of(message.get(), text, context.place).line;
            conversion.push_json(message.get(), line, context)?;
        }
    }
    Ok(conversion.finish())
}
