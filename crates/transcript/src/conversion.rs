//! The conversion of a conversation from another format to ours.

use crate::draft::{Draft, line_of, list_of, push_member, quoted};
use crate::format::{Context, Format};
use crate::object::{push_one_line, push_string};
use crate::{Conversation, Envelope, Error};
use foldback_core::Message;
use std::collections::BTreeMap;

/// A conversation that is built message by message. Everything that is not a message is kept under the conversation's
/// key `source`: facts about the file, the exact text of every record that is not a message, and how many of each kind
/// there were. Large values of messages are also kept there (`{"line", "message", "key", "record"}`, the message
/// counted from 0), and so is what may still grow.
pub(crate) struct Conversion {
    format: Format,
    id: Option<String>,
    messages: Vec<Message>,
    facts: Vec<(String, String)>,
    /// The members of a list.
    records: String,
    counts: BTreeMap<String, u64>,
    further: Vec<String>,
    waiting: Vec<Draft>,
}

impl Conversion {
    pub(crate) fn new(format: Format, id: Option<String>) -> Self {
        Self {
            format,
            id,
            messages: Vec::new(),
            facts: Vec::new(),
            records: String::new(),
            counts: BTreeMap::new(),
            further: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Adds a fact about the file or the session, as exact JSON.
    pub(crate) fn fact(&mut self, key: &str, json: &str) {
        self.facts.push((key.to_owned(), line_of(json)));
    }

    /// Adds a fact that is a text.
    pub(crate) fn fact_text(&mut self, key: &str, text: &str) {
        self.facts.push((key.to_owned(), quoted(text)));
    }

    /// Records that the message of this line may still change, because the log does not say that it
    /// is complete.
    pub(crate) fn unfinished_response(&mut self, line: Option<u64>) {
        self.facts.extend(line.map(|line| ("unfinished_response".to_owned(), line.to_string())));
    }

    /// Keeps a record that is not a message, and counts it by its kind.
    pub(crate) fn record(&mut self, kind: &str, line: u64, json: &str) {
        self.push_record(&format!("{{\"line\":{line}"), json);
        *self.counts.entry(kind.to_owned()).or_default() += 1;
    }

    /// Keeps a record after the members that say where it was.
    fn push_record(&mut self, begin: &str, json: &str) {
        if !self.records.is_empty() {
            self.records.push(',');
        }
        self.records.push_str(begin);
        self.records.push_str(",\"record\":");
        push_one_line(json, &mut self.records);
        self.records.push('}');
    }

    /// Adds a message.
    ///
    /// # Errors
    /// When it is too large, or is not a message.
    pub(crate) fn push(&mut self, mut draft: Draft, context: Context<'_>) -> Result<(), Error> {
        let (line, index) = (draft.line(), self.messages.len());
        let (large, further) = (draft.take_large(), draft.take_further());
        self.push_json(&draft.to_json(self.format), line, context)?;
        self.further.extend(further);
        for (key, json) in large {
            let mut begin = format!("{{\"line\":{line},\"message\":{index}");
            push_member("key", &quoted(&key), &mut begin);
            self.push_record(&begin, &json);
        }
        Ok(())
    }

    /// Adds a message that already has our shape.
    ///
    /// # Errors
    /// When it is too large, or is not a message.
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

    /// Queues a message for [`drain`](Self::drain). Queued messages hold what they need, so that the
    /// records they came from can be freed before that.
    pub(crate) fn add(&mut self, draft: Draft) {
        self.waiting.push(draft);
    }

    /// Turns all queued drafts into messages, and frees each draft as it becomes one. One that is
    /// too large or not a message is added to `damage` and left out.
    pub(crate) fn drain(&mut self, context: Context<'_>, damage: &mut Vec<Error>) {
        for draft in std::mem::take(&mut self.waiting) {
            damage.extend(self.push(draft, context).err());
        }
    }

    /// Returns whether it has no message.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn finish(self) -> Conversation {
        let mut after = String::from("],\"source\":{\"format\":");
        push_string(self.format.name(), &mut after);
        for (key, value) in &self.facts {
            push_member(key, value, &mut after);
        }
        if !self.further.is_empty() {
            push_member("further_lines", &list_of(&self.further), &mut after);
        }
        if !self.records.is_empty() {
            after.push_str(",\"records\":[");
            after.push_str(&self.records);
            after.push(']');
            drop(self.records);
        }
        if !self.counts.is_empty() {
            let counts: Vec<_> = self
                .counts
                .iter()
                .map(|(kind, count)| format!("{}:{count}", quoted(kind)))
                .collect();
            push_member("counts", &format!("{{{}}}", counts.join(",")), &mut after);
        }
        after.push_str("}}");
        let envelope = Envelope::converted(self.format, self.id.as_deref(), after);
        Conversation { id: self.id, messages: self.messages, envelope }
    }
}
