//! Whole conversations in and out.

mod follow;
mod info;
mod salvage;

pub use follow::Followed;
pub use info::TodoInfo;
pub(crate) use info::origin_of;
pub use salvage::Salvage;

use crate::error::Failure;
use crate::memory::Shared;
use crate::{Close, Error, Memory, Session, texts};
use foldback_core::{Message, Recorded, Role, SeqNo, TodoId};
use foldback_kv::{Todo, retry};
use foldback_transcript::Conversation;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Messages of one transaction when a whole conversation comes in: enough that the cost of a
/// transaction is shared, few enough that a crash loses little work.
const PER_TRANSACTION: usize = 256;

/// Bytes of one transaction when a whole conversation comes in.
const BYTES_PER_TRANSACTION: usize = 4 << 20;

/// How many messages are read at once on the way out.
const PER_READ: u64 = 1_024;

/// Conversations of other programs, each a todo of its own: whole conversations in, and out again
/// byte for byte.
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

impl Memory {
    /// Whole conversations, in and out.
    #[must_use]
    pub fn conversations(&self) -> Conversations<'_> {
        Conversations::of(&self.shared)
    }
}

impl<'a> Conversations<'a> {
    pub(crate) fn of(memory: &'a Arc<Shared>) -> Self {
        Self { memory }
    }

    /// Takes a whole conversation into a new todo and closes its last block.
    ///
    /// # Errors
    /// When the todo already holds messages, or the store fails. What was made durable before a
    /// failure stays, and importing goes on from there with [`continue_import`](Self::continue_import).
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

    /// As [`import`](Self::import), into a todo that may already hold the conversation's first
    /// messages, because an earlier import was cut short or the conversation has grown since.
    ///
    /// # Errors
    /// When the todo holds other messages, or more of them
    /// ([`AlreadyExists`](crate::ErrorKind::AlreadyExists)); when only the last message that it holds is
    /// another one now ([`SourceChanged`](crate::ErrorKind::SourceChanged)); and when the store fails.
    pub fn continue_import(
        self,
        todo: &TodoId,
        conversation: &Conversation,
    ) -> Result<Vec<Recorded>, Error> {
        let begun = self.begin(todo, conversation)?;
        self.go_on(begun, conversation)
    }

    /// As [`continue_import`](Self::continue_import) for several conversations, each into a todo of its
    /// own; they are cut and embedded beside each other. The todos are made, and what they hold already
    /// is checked, in the order given: behind one that is refused, and for which `is_passed` is
    /// false, nothing is begun. The results are in that order, and end with that one.
    ///
    /// # Errors
    /// In the place of each conversation, as [`continue_import`](Self::continue_import).
    pub fn continue_imports(
        self,
        conversations: &[(TodoId, &Conversation)],
        is_passed: impl Fn(&Error) -> bool,
    ) -> Vec<Result<Vec<Recorded>, Error>> {
        let mut begun = Vec::with_capacity(conversations.len());
        for (todo, conversation) in conversations {
            let session = self.begin(todo, conversation);
            let ends = session.as_ref().is_err_and(|error| !is_passed(error));
            begun.push((session, *conversation));
            if ends {
                break;
            }
        }
        let import = |(begun, conversation): (Result<_, Error>, &Conversation)| {
            begun.and_then(|begun| self.go_on(begun, conversation))
        };
        begun.into_par_iter().map(import).collect()
    }

    /// Records what of a conversation its todo does not hold yet, and closes its last block.
    fn go_on(
        self,
        (mut session, mut checked): (Session, u64),
        conversation: &Conversation,
    ) -> Result<Vec<Recorded>, Error> {
        let mut recorded = Vec::new();
        loop {
            self.check_held(&session.todo, checked..session.len(), conversation)?;
            let held = usize::try_from(session.len()).unwrap_or(usize::MAX);
            let rest = conversation.messages.get(held..).unwrap_or_default();
            let Some(batch) = batches(rest).next() else { break };
            match session.record_all_at(SeqNo(session.len()), batch.to_vec()) {
                Ok(receipts) => {
                    recorded.extend(receipts);
                    checked = session.len();
                }
                // Somebody else imports the same: what is there already need not come again.
                Err(error) if matches!(error.failure(), Failure::MovedOn { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // Its end may be closed already.
        if session.open() == 0 {
            return Ok(recorded);
        }
        let closed = session.close(Close::End)?;
        if let Some(last) = recorded.last_mut() {
            last.closed.extend(closed);
        }
        Ok(recorded)
    }

    /// The session of a todo that a conversation goes into. The todo is new, or holds the
    /// conversation's first messages; what stands around the messages is kept with it.
    ///
    /// # Errors
    /// As [`continue_import`](Self::continue_import).
    pub fn session_for(self, todo: &TodoId, conversation: &Conversation) -> Result<Session, Error> {
        Ok(self.begin(todo, conversation)?.0)
    }

    /// Checks that the messages of a range, up to the last that a session knows, are the conversation's, each
    /// exactly as it is there.
    ///
    /// # Errors
    /// When one is another message, or the range goes beyond the conversation
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

    /// As [`session_for`](Self::session_for), with how many of its messages are known to be the
    /// conversation's.
    fn begin(self, id: &TodoId, conversation: &Conversation) -> Result<(Session, u64), Error> {
        // Where somebody writes to the todo meanwhile, what it holds then is looked at again.
        let (todo, held) = retry(|| {
            let todo = self.memory.registry.create(id, b"")?;
            let head = self.memory.kv.head(todo.no())?;
            let held = self.len(&todo)?;
            self.check_held(&todo, 0..held, conversation)?;
            self.keep(&todo, head, conversation)?;
            Ok::<_, Error>((todo, held))
        })?;
        Ok((Session::resume(self.memory.clone(), todo)?, held))
    }

    fn len(self, todo: &Todo) -> Result<u64, Error> {
        Ok(self.memory.blocks.head(todo)?.messages)
    }

    /// Checks that the messages `range`, up to the last that the todo holds, are the conversation's;
    /// the lines on which they stand may be others.
    fn check_held(
        self,
        todo: &Todo,
        range: Range<u64>,
        conversation: &Conversation,
    ) -> Result<(), Error> {
        let all = &conversation.messages;
        let not_empty = || Failure::NotEmpty { todo: todo.id().clone(), len: range.end };
        if range.end > all.len() as u64 {
            return Err(not_empty().into());
        }
        let mut from = range.start;
        while from < range.end {
            let to = range.end.min(from + PER_READ);
            let held = texts::exact_messages(self.memory, todo, from..to)?;
            let compared = |message| self.memory.compared(message);
            let other = (from..).zip(&held).find(|(seq, message)| {
                let new = usize::try_from(*seq).ok().and_then(|at| all.get(at));
                new.is_none_or(|new| compared(new) != compared(message))
            });
            if let Some((seq, message)) = other {
                let is_last = seq > 0 && seq + 1 == range.end;
                let rewritten = || Failure::Rewritten { todo: todo.id().clone(), seq: SeqNo(seq) };
                return Err(match message.role() {
                    Role::Assistant if is_last => rewritten().into(),
                    _ => not_empty().into(),
                });
            }
            from = to;
        }
        Ok(())
    }

    /// A todo's conversation, every message exactly as it was recorded.
    ///
    /// # Errors
    /// When there is no such todo, or a message is damaged.
    pub fn export(self, todo: &TodoId) -> Result<Conversation, Error> {
        self.export_with(todo, false)
    }

    /// As [`export`](Self::export), with what was [removed](crate::Redaction) and sealed in its place again: every
    /// message as it came. What was removed without a key stays a mark.
    ///
    /// # Errors
    /// As [`export`](Self::export); and when the memory has no key, or another than the one that something was sealed
    /// with ([`NotPermitted`](crate::ErrorKind::NotPermitted)).
    pub fn export_revealed(self, todo: &TodoId) -> Result<Conversation, Error> {
        self.export_with(todo, true)
    }

    fn export_with(self, todo: &TodoId, is_revealed: bool) -> Result<Conversation, Error> {
        let info = self.info(todo)?;
        let found = self.memory.find(todo)?;
        let len = self.len(&found)?;
        let mut messages = Vec::new();
        let mut from = 0;
        while from < len {
            let to = len.min(from + PER_READ);
            let held = texts::exact_messages(self.memory, &found, from..to)?;
            for (seq, message) in (from..).map(SeqNo).zip(held) {
                messages.push(match is_revealed {
                    true => self.memory.revealed(&found, seq, message)?,
                    false => message,
                });
            }
            from = to;
        }
        let id = info.foreign_id.unwrap_or_else(|| todo.to_string());
        let revealed = if is_revealed { self.revealed_envelope(&found)? } else { None };
        let envelope = match revealed {
            Some(envelope) => envelope,
            None => self.envelope(todo)?.unwrap_or_default(),
        };
        Ok(Conversation::from_parts(Some(id), messages, envelope))
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
