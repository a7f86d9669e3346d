//! What one todo was given to read of another: recorded, listed, taken back.
//!
//! A grant names one block or payload of the todo that gives it. Whoever holds the memory, or the
//! session of that todo, may grant; no text that a model writes or reads does. A grant holds between
//! the two todos as they are: it ends when either is forgotten, and a todo that is made anew under
//! the name of a forgotten one has given and received nothing.
//!
//! Each grant is kept with both todos, under a number that its content tells, so that granting again
//! changes nothing and a look-up is the same few reads, whatever was granted and whatever is asked for.
//! Blocks never change: the payloads that come with one are recorded when it is granted.
//!
//! One transaction compares the head of one todo only, and a grant concerns two. So whoever has granted
//! looks once more whether both are still there, and whoever has forgotten one looks once more for
//! grants: of a grant made beside a forgetting, one of the two finds what is left.

mod forgotten;
mod granting;
mod lookup;
mod record;

pub(crate) use forgotten::of_todo;
pub(crate) use granting::Granting;

use crate::error::Failure;
use crate::memory::Shared;
use crate::{Error, Memory, Session};
use foldback_core::{Reference, Timestamp, TodoId};
use foldback_kv::{Batch, Delete, Expect, Key, Todo, retry};
use record::{lookup, records};
use serde::Serialize;
use std::sync::Arc;

/// One block or payload that one todo gave another to read. A block comes with the payloads that
/// stood in its messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// Who gave it.
    pub from: TodoId,
    /// Who may read it.
    pub to: TodoId,
    /// What may be read.
    pub reference: Reference,
    /// When it was given, in milliseconds since 1970.
    pub at: Timestamp,
}

/// What todos may read of each other in a store.
///
/// ```
/// use foldback::core::{Message, Reference, TodoId};
/// use foldback::{Close, Memory, Options};
///
/// let memory = Memory::in_memory(Options::default())?;
/// let [research, report] = [TodoId::new("research")?, TodoId::new("report")?];
/// let mut session = memory.session(&research)?;
/// session.record(Message::user("The tide turns at 06:12."))?;
/// let block = Reference::Block(session.close(Close::End)?.remove(0));
/// memory.session(&report)?;
///
/// memory.grants().grant(&research, &report, &[block.clone()])?;
/// assert_eq!(memory.grants().list(&report)?[0].reference, block);
/// assert!(memory.grants().revoke(&research, &report, &block)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Grants<'a> {
    memory: &'a Arc<Shared>,
}

impl Memory {
    /// What todos may read of each other.
    #[must_use]
    pub fn grants(&self) -> Grants<'_> {
        Grants::of(&self.shared)
    }
}

impl<'a> Grants<'a> {
    pub(crate) fn of(memory: &'a Arc<Shared>) -> Self {
        Self { memory }
    }

    /// Lets the todo `to` load these blocks and payloads of the todo `from`. Granting again changes
    /// nothing. All are recorded in one transaction, or none.
    ///
    /// # Errors
    /// When there is no such todo, or a reference leads nowhere
    /// ([`NotFound`](crate::ErrorKind::NotFound)); when the two todos are one, or a reference leads into a
    /// third ([`NotPermitted`](crate::ErrorKind::NotPermitted)); and when the store fails.
    pub fn grant(
        self,
        from: &TodoId,
        to: &TodoId,
        references: &[Reference],
    ) -> Result<Vec<Grant>, Error> {
        self.memory.note_references(from, "grant", references, false)?;
        let from = self.memory.find(from)?;
        let (to, draft) = retry(|| {
            let to = self.memory.find(to)?;
            if from == to {
                return Err(Failure::ToItself(to.id().clone()).into());
            }
            let head = self.memory.kv.head(to.no())?;
            let mut draft = Granting::default();
            for reference in references {
                self.memory.check_own(&from, reference)?;
                draft.add(self.memory, &from, &to, reference)?;
            }
            self.memory.commit_moving(&to, head, draft.puts()?, Vec::new())?;
            Ok::<_, Error>((to, draft))
        })?;
        match self.memory.settle([&from, &to])? {
            Some(gone) => Err(Failure::NoTodo(gone).into()),
            None => Ok(draft.grants),
        }
    }

    /// Takes a grant back, and says whether there was one. What was loaded by it before stays in
    /// the other's conversation.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails.
    pub fn revoke(self, from: &TodoId, to: &TodoId, reference: &Reference) -> Result<bool, Error> {
        self.memory.note_references(from, "revoke", std::slice::from_ref(reference), false)?;
        let from = self.memory.find(from)?;
        retry(|| {
            let to = self.memory.find(to)?;
            let head = self.memory.kv.head(to.no())?;
            let (was_granted, put, delete) = self.memory.without(&from, &to, reference)?;
            self.memory.commit_moving(&to, head, put, delete)?;
            Ok(was_granted)
        })
    }

    /// What the todo was granted and what it has granted, the oldest first.
    ///
    /// # Errors
    /// When there is no such todo, the store fails, or a record is damaged.
    pub fn list(self, todo: &TodoId) -> Result<Vec<Grant>, Error> {
        let todo = self.memory.find(todo)?;
        let mut grants = Vec::new();
        for (_, record) in records(self.memory, todo.no())? {
            if record.direct && record.holds(&self.memory.registry)? {
                grants.push(record.grant());
            }
        }
        grants.sort_by(|a, b| (a.at, &a.to, &a.reference).cmp(&(b.at, &b.to, &b.reference)));
        Ok(grants)
    }
}

impl Session {
    /// Lets another todo load these blocks and payloads of this one, as [`Grants::grant`] does.
    ///
    /// # Errors
    /// As [`Grants::grant`].
    pub fn grant(&self, to: &TodoId, references: &[Reference]) -> Result<Vec<Grant>, Error> {
        Grants::of(&self.memory).grant(self.todo(), to, references)
    }
}

impl Shared {
    /// Whether the grant is there, and what is to be written and deleted so that it is not, with both
    /// todos; with a block, what is kept of the payloads that came with it.
    fn without(&self, from: &Todo, to: &Todo, reference: &Reference) -> Result<Change, Error> {
        let mut change = (false, Vec::new(), Vec::new());
        let payloads = match reference {
            Reference::Block(id) => self.payloads_in(from, id.n())?,
            Reference::Payload { .. } => Vec::new(),
        };
        for holder in [from.no(), to.no()] {
            for changed in [reference].into_iter().chain(&payloads) {
                let found = lookup(self, holder, (from.no(), to.no()), changed)?;
                let Some((key, mut record)) = found else { continue };
                if changed == reference {
                    change.0 |= std::mem::take(&mut record.direct);
                } else if let Reference::Block(id) = reference {
                    record.blocks.retain(|n| *n != id.n());
                }
                if record.direct || !record.blocks.is_empty() {
                    change.1.push((key, record.to_bytes()?));
                } else {
                    change.2.push(Delete::one(key));
                }
            }
        }
        Ok(change)
    }

    /// Writes if the todo's head is `head`, and moves it, so that whoever has looked at it before is
    /// told.
    fn commit_moving(
        &self,
        todo: &Todo,
        head: u64,
        put: Vec<(Key, Vec<u8>)>,
        delete: Vec<Delete>,
    ) -> Result<(), Error> {
        if put.is_empty() && delete.is_empty() {
            return Ok(());
        }
        let expect = Some(Expect { todo: todo.no(), head, next: head + 1 });
        Ok(self.kv.commit(Batch { expect, put, delete })?)
    }
}

/// Whether there was something, what is to be written, and what is to be deleted.
type Change = (bool, Vec<(Key, Vec<u8>)>, Vec<Delete>);

#[cfg(test)]
mod tests;
