//! A conversation of another format, on its way to ours.

use crate::draft::{Draft, line_of, list_of, push_member, quoted};
use crate::format::{Context, Format};
use crate::object::push_string;
use crate::{Conversation, Envelope, Error};
use foldback_core::Message;
use std::collections::BTreeMap;

/// A conversation that is put together message by message. What is no message is kept beside them,
/// under the conversation's key `source`: facts of the file, the exact text of every record that is
/// no message, and how many of each kind there were.
pub(crate) struct Conversion {
    format: Format,
    id: Option<String>,
    messages: Vec<Message>,
    facts: Vec<(String, String)>,
    records: Vec<String>,
    counts: BTreeMap<String, u64>,
}

impl Conversion {
    pub(crate) fn new(format: Format, id: Option<String>) -> Self {
        let (messages, facts, records) = (Vec::new(), Vec::new(), Vec::new());
        Self { format, id, messages, facts, records, counts: BTreeMap::new() }
    }

    /// States something of the file or of the session, as exact JSON.
    pub(crate) fn fact(&mut self, key: &str, json: &str) {
        self.facts.push((key.to_owned(), line_of(json)));
    }

    /// States something that is a text.
    pub(crate) fn fact_text(&mut self, key: &str, text: &str) {
        self.facts.push((key.to_owned(), quoted(text)));
    }

    /// Keeps a record that is no message, and counts it among those of its kind.
    pub(crate) fn record(&mut self, kind: &str, line: u64, json: &str) {
        self.records.push(format!("{{\"line\":{line},\"record\":{}}}", line_of(json)));
        *self.counts.entry(kind.to_owned()).or_default() += 1;
    }

    /// Adds a message.
    ///
    /// # Errors
    /// When it is too large, or is none.
    pub(crate) fn push(&mut self, draft: Draft, context: Context<'_>) -> Result<(), Error> {
        self.push_json(&draft.to_json(self.format), draft.line(), context)
    }

    /// Adds a message that is in our shape already.
    ///
    /// # Errors
    /// When it is too large, or is none.
    pub(crate) fn push_json(
        &mut self,
        json: &str,
        line: u64,
        context: Context<'_>,
    ) -> Result<(), Error> {
        let (place, index) = (context.at(line), self.messages.len());
        let (bytes, limit) = (json.len() as u64, context.limits.message_bytes);
        let conversation = self.id.clone();
        if bytes > limit {
            return Err(Error::LargeMessage { place, conversation, index, bytes, limit });
        }
        let message = Message::from_json(&line_of(json)).map_err(|source| Error::Message {
            place,
            conversation,
            index,
            source,
        })?;
        self.messages.push(message);
        Ok(())
    }

    pub(crate) fn finish(self) -> Conversation {
        let mut source = String::from("{\"format\":");
        push_string(self.format.name(), &mut source);
        for (key, value) in &self.facts {
            push_member(key, value, &mut source);
        }
        if !self.records.is_empty() {
            push_member("records", &list_of(&self.records), &mut source);
            let counts: Vec<_> = self
                .counts
                .iter()
                .map(|(kind, count)| format!("{}:{count}", quoted(kind)))
                .collect();
            push_member("counts", &format!("{{{}}}", counts.join(",")), &mut source);
        }
        source.push('}');
        let envelope = Envelope::converted(self.format, self.id.as_deref(), &source);
        Conversation { id: self.id, messages: self.messages, envelope }
    }
}
