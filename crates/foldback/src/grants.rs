//! Permissions for one todo to read parts of another: recorded, listed and revoked.
//!
//! A grant names one block or payload of the todo that gives it. A caller with the memory, or with
//! the session of that todo, may grant; no text that a model writes or reads does. A grant holds
//! between the two todos as they are: it ends when either is forgotten, and a new todo with the name
//! of a forgotten one has given and received nothing.
//!
//! Each grant is stored with both todos, under a number derived from its content, so that granting
//! again changes nothing and a look-up takes the same few reads, whatever was granted and whatever is
//! asked for. Blocks never change: the payloads that come with one are recorded when it is granted.
//!
//! One transaction compares the head of one todo only, and a grant concerns two. So the granting side
//! checks afterwards whether both are still there, and the forgetting side checks afterwards for
//! grants: if the two happen at the same time, one of them finds what is left.

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
pub(crate) use record::copy;
use record::{lookup, records};
use serde::Serialize;
use std::sync::Arc;

/// One block or payload that one todo lets another read. A block comes with the payloads of its
/// messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The todo that gave it.
    pub from: TodoId,
    /// The todo that may read it.
    pub to: TodoId,
    /// What may be read.
    pub reference: Reference,
    /// When it was given, in milliseconds since 1970.
    pub at: Timestamp,
}

/// The grants between the todos of a store.
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
    /// Returns the grants between todos.
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

    /// Revokes a grant, and returns whether there was one. What was loaded through it before stays
    /// in the other's conversation.
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

    /// Returns what the todo was granted and what it has granted, the oldest first.
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
    /// Returns whether the grant exists, and what must be written and deleted with both todos to
    /// remove it; with a block, also what is stored of the payloads that came with it.
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

    /// Writes if the todo's head is `head`, and moves it, so that a writer that read it before gets
    /// a conflict.
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

/// Whether there was a grant, what is to be written, and what is to be deleted.
type Change = (bool, Vec<(Key, Vec<u8>)>, Vec<Delete>);

#[cfg(test)]
mod tests;
