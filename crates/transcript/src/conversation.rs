//! One recorded conversation.

use crate::object::{push_one_line, push_string};
use crate::record::object_of;
use crate::{Envelope, Finding, Format, finding};
use foldback_core::{Message, Role};

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
    /// Creates a conversation from its parts. `Envelope::default()` is the envelope of one that was
    /// not read from a source.
    #[must_use]
    pub fn from_parts(id: Option<String>, messages: Vec<Message>, envelope: Envelope) -> Self {
        Self { id, messages, envelope }
    }

    /// Returns the text that was read, byte for byte, in its original format; for a converted
    /// conversation, the line of foldback JSON Lines that it was converted into.
    #[must_use]
    pub fn to_original(&self) -> String {
        self.envelope.wrap(self.messages.iter().map(Message::json))
    }

    /// Returns one line of foldback JSON Lines, without the newline after it. Each message is its
    /// exact text, the other keys keep their order and their exact values, and the id comes first
    /// if the envelope has none. Line breaks of pretty-printed JSON become spaces, because a line
    /// is one line.
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

    /// Returns whether it comes from a log or a session that its program continues.
    #[must_use]
    pub fn is_log(&self) -> bool {
        let logs = [Format::ClaudeCodeLog, Format::CodexLog, Format::OpenCodeSession];
        logs.contains(&self.envelope.format())
    }

    /// Returns how many of its first messages come before a response that its log does not call complete: all of them
    /// if there is no such response.
    #[must_use]
    pub fn complete(&self) -> usize {
        let open = if self.is_log() { self.fact("unfinished_response") } else { None };
        let begin = open.and_then(|line| self.begin_of(line.parse().ok()?));
        begin.unwrap_or(self.messages.len())
    }

    /// Returns how many of its first messages stay as they are while its log grows: those before an unfinished
    /// response, and, of those after the last response, the results of its calls until all are there.
    #[must_use]
    pub fn settled(&self) -> usize {
        let end = self.complete();
        if !self.is_log() {
            return end;
        }
        let said = self.messages.get(..end).unwrap_or_default();
        let Some(last) = said.iter().rposition(|message| *message.role() == Role::Assistant) else {
            return end;
        };
        let calls = said.get(last).map_or(0, |message| message.tool_calls().len());
        let behind = said.get(last + 1..).unwrap_or_default();
        let results = behind.iter().take_while(|message| *message.role() == Role::Tool).count();
        if results < calls { last + 1 + results } else { end }
    }

    /// Returns the number of the first message that comes from the last response on this line of its log: one response
    /// may become several messages.
    fn begin_of(&self, line: u64) -> Option<usize> {
        let last = self.messages.iter().rposition(|message| line_of(message) == Some(line))?;
        let (before, from) = self.messages.split_at(last);
        let response = from.first().and_then(response_of);
        let is_same = |one: &&Message| line_of(one) == Some(line) && response_of(one) == response;
        Some(last - before.iter().rev().take_while(is_same).count())
    }

    /// Returns a fact about the file or session that it was converted from, as JSON.
    pub(crate) fn fact(&self, key: &str) -> Option<String> {
        let source = self.envelope.get("source")?;
        Some(object_of(&source)?.get(key)?.get().to_owned())
    }

    /// Returns what is odd about the conversation, in the order of its messages, each with how a
    /// view handles it. An empty list means that it is a valid request as it is, except for the
    /// place of its instructions.
    #[must_use]
    pub fn check(&self) -> Vec<Finding> {
        finding::check(&self.messages, &self.envelope)
    }
}

/// Returns the line of its log on which a converted message begins.
pub(crate) fn line_of(message: &Message) -> Option<u64> {
    object_of(message.json())?.object("source")?.get("line")?.get().parse().ok()
}

/// Returns what a converted message says about the message of its source that it comes from: several may be on a line.
fn response_of(message: &Message) -> Option<String> {
    Some(object_of(message.json())?.object("source")?.get("message")?.get().to_owned())
}

/// Returns the id in a JSON value: a string, or a number as it is written.
pub(crate) fn id_of(json: &str) -> Option<String> {
    let json = json.trim();
    if let Some(inside) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return Some(foldback_core::decode_literal(inside).into_owned());
    }
    json.starts_with(|c: char| c == '-' || c.is_ascii_digit()).then(|| json.to_owned())
}
