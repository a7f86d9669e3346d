//! Whole conversations in and out.

use crate::{Close, Error, Memory, TodoInfo};
use foldback_core::{Message, Recorded, SeqNo, TodoId};
use foldback_transcript::Conversation;

/// Messages of one transaction when a whole conversation comes in: enough that the cost of a
/// transaction is shared, few enough that a crash loses little work.
const PER_TRANSACTION: usize = 256;

/// Bytes of one transaction when a whole conversation comes in.
const BYTES_PER_TRANSACTION: usize = 4 << 20;

/// How many messages are read at once on the way out.
const PER_READ: u64 = 1_024;

impl Memory {
    /// Takes a whole conversation into a new todo and closes its last block.
    ///
    /// # Errors
    /// When the todo already holds messages, or the store fails. What was made durable before a
    /// failure stays, and importing goes on from there with [`continue_import`](Self::continue_import).
    pub fn import(
        &self,
        todo: &TodoId,
        conversation: &Conversation,
    ) -> Result<Vec<Recorded>, Error> {
        let len = match self.len(todo) {
            Ok(len) => len,
            Err(Error::NoTodo(_)) => 0,
            Err(error) => return Err(error),
        };
        if len > 0 {
            return Err(Error::NotEmpty { todo: todo.clone(), len });
        }
        self.continue_import(todo, conversation)
    }

    /// As [`import`](Self::import), into a todo that may already hold the conversation's first
    /// messages, because an earlier import was cut short.
    ///
    /// # Errors
    /// When the todo holds other messages, or the store fails.
    pub fn continue_import(
        &self,
        todo: &TodoId,
        conversation: &Conversation,
    ) -> Result<Vec<Recorded>, Error> {
        let foreign_id = conversation.id.clone().filter(|id| id != todo.as_str());
        let envelope = Some(conversation.envelope.clone());
        let mut session = self.session_with(todo, &TodoInfo { foreign_id, envelope })?;
        let mut recorded = Vec::with_capacity(conversation.messages.len());
        loop {
            let rest = self.rest_of(todo, session.len(), conversation)?;
            let Some(batch) = batches(rest).next() else { break };
            match session.record_all_at(SeqNo(session.len()), batch.to_vec()) {
                Ok(receipts) => recorded.extend(receipts),
                // Somebody else imports the same: what is there already need not come again.
                Err(Error::MovedOn { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let closed = session.close(Close::End)?;
        if let Some(last) = recorded.last_mut() {
            last.closed.extend(closed);
        }
        Ok(recorded)
    }

    /// What of the conversation follows the first `len` messages, which the todo holds.
    fn rest_of<'c>(
        &self,
        todo: &TodoId,
        len: u64,
        conversation: &'c Conversation,
    ) -> Result<&'c [Message], Error> {
        let other = || Error::NotEmpty { todo: todo.clone(), len };
        let mut rest = conversation.messages.as_slice();
        let mut from = 0;
        while from < len {
            let to = len.min(from + PER_READ);
            let held = self.messages(todo, from..to)?;
            let (same, after) = rest.split_at_checked(held.len()).ok_or_else(other)?;
            if held.is_empty() || held != same {
                return Err(other());
            }
            rest = after;
            from = to;
        }
        Ok(rest)
    }

    /// A todo's conversation, every message exactly as it was recorded.
    ///
    /// # Errors
    /// When there is no such todo, or a message is damaged.
    pub fn export(&self, todo: &TodoId) -> Result<Conversation, Error> {
        let info = self.info(todo)?;
        let len = self.len(todo)?;
        let mut messages = Vec::new();
        let mut from = 0;
        while from < len {
            let to = len.min(from + PER_READ);
            messages.extend(self.messages(todo, from..to)?);
            from = to;
        }
        let id = info.foreign_id.unwrap_or_else(|| todo.to_string());
        Ok(Conversation::from_parts(Some(id), messages, info.envelope.unwrap_or_default()))
    }
}

/// The messages in runs of bounded number and size.
fn batches(messages: &[Message]) -> impl Iterator<Item = &[Message]> {
    let mut rest = messages;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take(PER_TRANSACTION).take_while(|message| {
            let fits = bytes == 0 || bytes + message.json().len() <= BYTES_PER_TRANSACTION;
            bytes += message.json().len();
            fits
        });
        let (batch, after) = rest.split_at(fits.count());
        rest = after;
        (!batch.is_empty()).then_some(batch)
    })
}
