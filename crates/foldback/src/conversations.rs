//! Imports and exports whole conversations.

mod follow;
mod import;
mod info;
mod salvage;

pub use follow::Followed;
pub use import::Import;
pub use info::TodoInfo;
pub(crate) use info::origin_of;
pub use salvage::Salvage;

use crate::error::Failure;
use crate::memory::Shared;
use crate::{Error, ErrorKind, Maintenance, Memory, Session, texts};
use foldback_core::{Message, Recorded, Role, SeqNo, TodoId, beginning};
use foldback_kv::{Todo, retry};
use foldback_transcript::Conversation;
use std::ops::Range;
use std::sync::Arc;

/// Messages per transaction when a whole conversation is imported: enough that the cost of a
/// transaction is shared, few enough that a crash loses little work.
const PER_TRANSACTION: usize = 256;

/// Bytes per transaction when a whole conversation is imported.
const BYTES_PER_TRANSACTION: usize = 4 << 20;

/// How many characters of a message an error shows.
const BEGINNING: usize = 40;

/// How many messages are read at once for an export.
const PER_READ: u64 = 1_024;

/// Conversations of other programs, each a todo of its own: imported whole, and exported byte for
/// byte.
///
/// ```
/// use foldback::core::TodoId;
/// use foldback::{Memory, Options};
///
/// let line = r#"{"id": "trip", "messages": [{"role": "user", "content": "Which gate?"}]}"#;
/// let conversation = foldback_transcript::read_bytes(line.as_bytes())?.next().ok_or("none")??;
/// let memory = Memory::in_memory(Options::default())?;
/// let todo = TodoId::new("trip")?;
/// memory.conversations().import(&todo, &conversation)?;
/// assert_eq!(memory.conversations().export(&todo)?, conversation);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Conversations<'a> {
    memory: &'a Arc<Shared>,
}

/// A todo into which a conversation is imported.
struct Begun {
    session: Session,
    /// How many of its messages are known to be the conversation's.
    checked: u64,
    /// Whether the todo was made for it.
    is_new: bool,
}

impl Memory {
    /// Returns the import and export of whole conversations.
    #[must_use]
    pub fn conversations(&self) -> Conversations<'_> {
        Conversations::of(&self.shared)
    }
}

impl<'a> Conversations<'a> {
    pub(crate) fn of(memory: &'a Arc<Shared>) -> Self {
        Self { memory }
    }

    /// Imports a whole conversation into a new todo and closes its last block. While its last call
    /// has no result, this block stays open, as the open tail.
    ///
    /// # Errors
    /// When the todo already holds messages, or the store fails. What was made durable before a failure
    /// stays, and [`continue_import`](Self::continue_import) continues from there.
    pub fn import(
        self,
        todo: &TodoId,
        conversation: &Conversation,
    ) -> Result<Vec<Recorded>, Error> {
        let found = self.memory.registry.find(todo)?;
        let len = found.map_or(Ok(0), |found| self.len(&found))?;
        if len > 0 {
            return Err(Failure::NotEmpty { todo: todo.clone(), len }.into());
        }
        self.continue_import(todo, conversation)
    }

    /// Returns the session of a todo that a conversation is imported into. The todo is new, or
    /// holds the conversation's first messages; what surrounds the messages is stored with it.
    ///
    /// # Errors
    /// As [`continue_import`](Self::continue_import).
    pub fn session_for(self, todo: &TodoId, conversation: &Conversation) -> Result<Session, Error> {
        Ok(self.begin(todo, conversation)?.session)
    }

    /// Checks that the messages of a range, up to the last that a session knows, are exactly the
    /// conversation's.
    ///
    /// # Errors
    /// When one differs, or the range goes beyond the conversation
    /// ([`AlreadyExists`](crate::ErrorKind::AlreadyExists)); and when the store fails.
    pub fn check_exact(
        self,
        todo: &TodoId,
        range: Range<u64>,
        conversation: &Conversation,
    ) -> Result<(), Error> {
        let found = self.memory.find(todo)?;
        let other = || Failure::NotEmpty { todo: todo.clone(), len: range.end };
        let place = |seq: u64| usize::try_from(seq).unwrap_or(usize::MAX);
        let expected = conversation.messages.get(place(range.start)..place(range.end));
        let mut seq = range.start;
        for step in expected.ok_or_else(other)?.chunks(PER_READ as usize) {
            let to = seq + step.len() as u64;
            let held = texts::exact_messages(self.memory, &found, seq..to)?;
            let is_same = |(held, new): (&Message, &Message)| match self.memory.redaction {
                Some(_) => self.memory.compared(held) == self.memory.compared(new),
                None => held == new,
            };
            if held.len() != step.len() || !held.iter().zip(step).all(is_same) {
                return Err(other().into());
            }
            seq = to;
        }
        Ok(())
    }

    /// Returns the session as [`session_for`](Self::session_for) does, and how far it is known.
    fn begin(self, id: &TodoId, conversation: &Conversation) -> Result<Begun, Error> {
        let is_new = self.memory.registry.find(id)?.is_none();
        // If another writer changes the todo meanwhile, its contents are checked again.
        let (todo, held) = retry(|| {
            let todo = self.memory.registry.create(id, b"")?;
            let head = self.memory.kv.head(todo.no())?;
            let held = self.len(&todo)?;
            self.check_held(&todo, 0..held, conversation)?;
            self.keep(&todo, head, conversation)?;
            Ok::<_, Error>((todo, held))
        })?;
        let session = Session::resume(self.memory.clone(), todo)?;
        Ok(Begun { session, checked: held, is_new })
    }

    /// Removes a todo that was made for a conversation of which nothing may be recorded, because a limit is exceeded.
    fn undone(self, todo: &TodoId, is_new: bool, error: Error) -> Error {
        let is_empty = || {
            let found = self.memory.registry.find(todo).ok().flatten();
            found.is_some_and(|found| self.len(&found).is_ok_and(|len| len == 0))
        };
        if is_new && error.kind() == ErrorKind::Quota && is_empty() {
            // What is left of it does no harm.
            let _ = Maintenance { memory: self.memory }.forget(todo);
        }
        error
    }

    fn len(self, todo: &Todo) -> Result<u64, Error> {
        Ok(self.memory.blocks.head(todo)?.messages)
    }

    /// Checks that the messages in `range`, up to the last that the todo holds, are the
    /// conversation's; their line numbers may differ.
    fn check_held(
        self,
        todo: &Todo,
        range: Range<u64>,
        conversation: &Conversation,
    ) -> Result<(), Error> {
        let all = &conversation.messages;
        let (id, len, has) = (|| todo.id().clone(), range.end, all.len() as u64);
        let mut from = range.start;
        while from < len.min(has) {
            let to = len.min(has).min(from + PER_READ);
            let held = texts::exact_messages(self.memory, todo, from..to)?;
            let given = all.iter().skip(usize::try_from(from).unwrap_or(usize::MAX));
            let other = (from..).zip(held.iter().zip(given)).find(|(_, (held, given))| {
                held != given && self.memory.compared(held) != self.memory.compared(given)
            });
            if let Some((seq, (held, given))) = other {
                let is_last = seq > 0 && seq + 1 == len;
                let seq = SeqNo(seq);
                return Err(match held.role() {
                    Role::Assistant if is_last => Failure::Rewritten { todo: id(), seq },
                    _ => Failure::Other { todo: id(), len, seq, given: self.beginning_of(given) },
                }
                .into());
            }
            from = to;
        }
        match len > has {
            true => Err(Failure::Longer { todo: id(), len, has }.into()),
            false => Ok(()),
        }
    }

    /// Returns how a message begins, in a few words without secrets.
    fn beginning_of(self, message: &Message) -> String {
        let text = message.text();
        let begins = beginning(&self.memory.redacted(&text), BEGINNING).into_owned();
        format!("of role {} that begins with {begins:?}", message.role().as_str())
    }

    /// Returns a todo's conversation, every message exactly as it was recorded.
    ///
    /// # Errors
    /// When there is no such todo, or a message is damaged.
    pub fn export(self, todo: &TodoId) -> Result<Conversation, Error> {
        Ok(self.export_with(todo, false)?.0)
    }

    /// Exports as [`export`](Self::export) does, with what was [removed](crate::Redaction) and sealed back in its
    /// place: every message as it came. What was removed without a key stays a mark.
    ///
    /// # Errors
    /// As [`export`](Self::export); and when the memory has no key, or a different one than something was sealed with
    /// ([`NotPermitted`](crate::ErrorKind::NotPermitted)).
    pub fn export_revealed(self, todo: &TodoId) -> Result<Conversation, Error> {
        let (conversation, sealed) = self.export_revealed_in_part(todo)?;
        sealed.into_iter().next().map_or(Ok(conversation), Err)
    }

    /// Exports as [`export_revealed`](Self::export_revealed) does, and leaves the marks where the key does not open what
    /// was sealed. Returns an error for each such place, which names it.
    ///
    /// # Errors
    /// As [`export`](Self::export); and when the memory has no key, or one that opens nothing that was sealed
    /// ([`NotPermitted`](crate::ErrorKind::NotPermitted)).
    pub fn export_revealed_in_part(
        self,
        todo: &TodoId,
    ) -> Result<(Conversation, Vec<Error>), Error> {
        self.export_with(todo, true)
    }

    fn export_with(
        self,
        todo: &TodoId,
        is_revealed: bool,
    ) -> Result<(Conversation, Vec<Error>), Error> {
        let info = self.info(todo)?;
        let found = self.memory.find(todo)?;
        let len = self.len(&found)?;
        let mut messages = Vec::new();
        let (mut sealed, mut is_any_open, mut from) = (Vec::new(), false, 0);
        let mut unless_sealed = |error: Error| match error.failure() {
            Failure::Sealed { .. } => {
                sealed.push(error);
                Ok(())
            }
            _ => Err(error),
        };
        while from < len {
            let to = len.min(from + PER_READ);
            let held = texts::exact_messages(self.memory, &found, from..to)?;
            for (seq, message) in (from..).map(SeqNo).zip(held) {
                let revealed = match is_revealed {
                    true => self.memory.revealed(&found, seq, &message),
                    false => Ok(None),
                };
                let revealed = revealed.or_else(|error| unless_sealed(error).map(|()| None))?;
                is_any_open |= revealed.is_some();
                messages.push(revealed.unwrap_or(message));
            }
            from = to;
        }
        let id = info.foreign_id.unwrap_or_else(|| todo.to_string());
        let revealed = if is_revealed { self.revealed_envelope(&found) } else { Ok(None) };
        let revealed = revealed.or_else(|error| unless_sealed(error).map(|()| None))?;
        is_any_open |= revealed.is_some();
        if !is_any_open && let Some(error) = sealed.pop() {
            return Err(error);
        }
        let envelope = match revealed {
            Some(envelope) => envelope,
            None => self.envelope(todo)?.unwrap_or_default(),
        };
        Ok((Conversation::from_parts(Some(id), messages, envelope), sealed))
    }
}

/// Splits the messages into runs of bounded number and size.
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

#[cfg(test)]
mod tests;
