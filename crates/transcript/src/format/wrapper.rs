//! Unwraps bodies inside lines of logs and batches.

use super::anthropic_blocks::members_but;
use super::lines::Lines;
use super::{Context, Format, anthropic_body, messages_of};
use crate::conversation::id_of;
use crate::conversion::Conversion;
use crate::object::Object;
use crate::{Conversation, Error};

/// A request body, and what was around it.
pub(super) struct Wrapped<'a> {
    pub(super) body: Object<'a>,
    /// The body of the answer.
    pub(super) answer: Option<Object<'a>>,
    /// The name of the request in its batch or log.
    pub(super) id: Option<String>,
    /// The other members of the line, apart from the body and the answer, by name.
    around: Vec<(&'static str, String)>,
}

impl<'a> Wrapped<'a> {
    /// Returns a body without a wrapper.
    pub(super) fn bare(body: Object<'a>) -> Self {
        Self { body, answer: None, id: None, around: Vec::new() }
    }

    /// Returns the body in `{"request", "response"}`, or in a line of a batch:
    /// `{"custom_id", "body"}` or `{"custom_id", "params"}`. A line that has messages itself is none
    /// of these.
    pub(super) fn of(line: &Object<'a>) -> Option<Self> {
        if line.has("messages") {
            return None;
        }
        let is_batch = line.text("custom_id").is_some();
        let key = if line.has("response") && line.has("request") {
            "request"
        } else {
            ["body", "params"].into_iter().find(|key| is_batch && line.has(key))?
        };
        let response = line.object("response");
        // A response that is not an object, such as a server's message, stays where it is.
        let taken: &[&str] = if response.is_some() { &[key, "response"] } else { &[key] };
        let mut around = vec![("around", members_but(line, taken))];
        let mut inside = |name, object: Object<'a>| match object.object("body") {
            Some(body) => {
                around.push((name, members_but(&object, &["body"])));
                body
            }
            None => object,
        };
        let body = inside("request", line.object(key)?);
        let answer = response.map(|answer| inside("answer", answer));
        let ids = ["custom_id", "id"].into_iter().filter_map(|key| id_of(line.get(key)?.get()));
        let id = ids.into_iter().next();
        body.has("messages").then_some(Self { body, answer, id, around })
    }

    /// Returns whether the body or the answer to it says more than chat-completions can.
    pub(super) fn is_anthropic(&self) -> bool {
        let is_answered = self.answer.as_ref().is_some_and(|answer| {
            answer.text("type").as_deref() == Some("message")
                || answer.has("content") && !answer.has("choices")
        });
        anthropic_body::fits(&self.body) || is_answered && !anthropic_body::is_chat(&self.body)
    }

    /// Records what is not a message: the body except for `known`, and what was around it.
    pub(super) fn facts(&self, conversion: &mut Conversion, known: &[&str]) {
        conversion.fact("body", &members_but(&self.body, known));
        for (name, members) in &self.around {
            conversion.fact(name, members);
        }
    }
}

/// Reads a wrapped body of chat-completions, and the answer to it.
pub(super) fn read_chat(
    text: &str,
    wrapped: &Wrapped<'_>,
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let mut conversion = Conversion::new(Format::ChatCompletionsBody, wrapped.id.clone());
    wrapped.facts(&mut conversion, &["messages"]);
    let (_, messages) = messages_of(&wrapped.body, context)?;
    let mut lines = Lines::new(text, context.place.line);
    for message in messages {
        conversion.push_json(message.get(), lines.of(message.get()), context)?;
    }
    if let Some(answer) = &wrapped.answer {
        conversion.fact("response", &members_but(answer, &[]));
        let choices = answer.array("choices").unwrap_or_default();
        let message = choices.first().and_then(|choice| Object::of(choice)?.get("message"));
        if let Some(message) = message {
            conversion.push_json(message.get(), lines.of(message.get()), context)?;
        }
    }
    Ok(conversion.finish())
}
