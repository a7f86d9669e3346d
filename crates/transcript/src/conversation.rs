//! One recorded conversation.

use crate::object::{push_one_line, push_string};
use crate::{Envelope, Finding, finding};
use foldback_core::Message;

/// A conversation: its messages, and the exact text of everything around them.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// The id that the source gave it; a bare array has none.
    pub id: Option<String>,
    /// The messages, in order. Each keeps its exact text.
    pub messages: Vec<Message>,
    /// Everything else.
    pub envelope: Envelope,
}

impl Conversation {
    /// A conversation made of its parts. `Envelope::default()` is the envelope of one that comes
    /// from nowhere.
    #[must_use]
    pub fn from_parts(id: Option<String>, messages: Vec<Message>, envelope: Envelope) -> Self {
        Self { id, messages, envelope }
    }

    /// The text that was read, byte for byte, in the format that it came in; of a conversation that
    /// was converted, what it was converted into: a line of foldback JSON Lines.
    #[must_use]
    pub fn to_original(&self) -> String {
        self.envelope.wrap(self.messages.iter().map(Message::json))
    }

    /// One line of foldback JSON Lines, without the newline behind it. Each message is its exact
    /// text, the other keys keep their order and their exact values, and the id stands first
    /// where the envelope has none. Line breaks of pretty-printed JSON become spaces, because a
    /// line is one line.
    #[must_use]
    pub fn to_json_line(&self) -> String {
        let fields = self.envelope.fields();
        let mut out = String::from("{");
        let begin = |key: &str, out: &mut String| {
            if out.len() > 1 {
                out.push(',');
            }
            push_string(key, out);
            out.push(':');
        };
        if let Some(id) = &self.id
            && !fields.iter().any(|(key, _)| key == "id")
        {
            begin("id", &mut out);
            push_string(id, &mut out);
        }
        for (key, value) in &fields {
            begin(key, &mut out);
            match (key.as_str(), &self.id) {
                ("messages", _) => {
                    out.push('[');
                    for (i, message) in self.messages.iter().enumerate() {
                        if i > 0 {
                            out.push(',');
                        }
                        push_one_line(message.json(), &mut out);
                    }
                    out.push(']');
                }
                ("id", Some(id)) if id_of(value).as_deref() != Some(id) => {
                    push_string(id, &mut out);
                }
                _ => push_one_line(value, &mut out),
            }
        }
        out.push('}');
        out
    }

    /// What is odd about the conversation, in the order of its messages: each with what a view of
    /// it does about that. An empty list says that it is a valid request as it stands but for the
    /// place of its instructions.
    #[must_use]
    pub fn check(&self) -> Vec<Finding> {
        finding::check(&self.messages, &self.envelope)
    }
}

/// The id in a JSON value: a string, or a number as it is written.
pub(crate) fn id_of(json: &str) -> Option<String> {
    let json = json.trim();
    if let Some(inside) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return Some(foldback_core::decode_literal(inside).into_owned());
    }
    json.starts_with(|c: char| c == '-' || c.is_ascii_digit()).then(|| json.to_owned())
}
