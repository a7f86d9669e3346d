//! What one todo was given to read of another: recorded, listed, taken back.
//!
//! A grant names one block or payload of the todo that gives it. Whoever holds the memory, or the
//! session of that todo, may grant; no text that a model writes or reads does. A grant holds between
//! the two todos as they are: it ends when either is forgotten, and a todo that is made anew under
//! the name of a forgotten one has given and received nothing.
//!
//! Each grant is kept with both todos, under a number that its content tells, so that granting again
//! changes nothing and one lookup finds it.

use crate::memory::Shared;
use crate::{Error, Memory, Session};
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::Error as BlockError;
use foldback_core::{PayloadRef, Reference, Timestamp, TodoId};
use foldback_disclosure::{Error as RecallError, Grants};
use foldback_kv::{Batch, Delete, Error as KvError, Expect, Key, Registry, Space, Todo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

impl Memory {
    /// Lets the todo `to` load these blocks and payloads of the todo `from`. Granting again changes
    /// nothing. All are recorded in one transaction, or none.
    ///
    /// # Errors
    /// [`Error::NoTodo`]; [`Error::NotOwn`] for a reference into a third todo, and
    /// [`Error::NoReference`] for one that leads nowhere; and when the store fails.
    pub fn grant(
        &self,
        from: &TodoId,
        to: &TodoId,
        references: &[Reference],
    ) -> Result<Vec<Grant>, Error> {
        let from = self.find(from)?;
        loop {
            let to = self.find(to)?;
            let head = self.shared.kv.head(to.no())?;
            let mut draft = Draft::default();
            for reference in references {
                self.shared.check_own(&from, reference)?;
                draft.add(&self.shared, &from, &to, reference)?;
            }
            // The head is compared and left as it is: nothing is granted to a todo that goes.
            let expect = Some(Expect { todo: to.no(), head, next: head });
            let put = draft.puts.into_iter().collect();
            match self.shared.kv.commit(Batch { expect, put, ..Batch::default() }) {
                Ok(()) => return Ok(draft.grants),
                Err(KvError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes a grant back, and says whether there was one. What was loaded by it before stays in
    /// the other's conversation.
    ///
    /// # Errors
    /// [`Error::NoTodo`], and when the store fails.
    pub fn revoke(&self, from: &TodoId, to: &TodoId, reference: &Reference) -> Result<bool, Error> {
        let (from, to) = (self.find(from)?, self.find(to)?);
        let mut delete = Vec::new();
        for holder in [&from, &to] {
            let found = lookup(&self.shared, holder, &from, &to, reference)?;
            delete.extend(found.map(Delete::one));
        }
        let was_granted = !delete.is_empty();
        self.shared.kv.commit(Batch { delete, ..Batch::default() })?;
        Ok(was_granted)
    }

    /// What the todo was granted and what it has granted, the oldest first.
    ///
    /// # Errors
    /// [`Error::NoTodo`], and when the store fails or a record is damaged.
    pub fn grants(&self, todo: &TodoId) -> Result<Vec<Grant>, Error> {
        let todo = self.find(todo)?;
        let mut grants = Vec::new();
        for (_, record) in records(&self.shared, &todo)? {
            if record.holds(&self.shared.registry)? {
                grants.push(record.grant());
            }
        }
        grants.sort_by(|a, b| (a.at, &a.to, &a.reference).cmp(&(b.at, &b.to, &b.reference)));
        Ok(grants)
    }

    /// The todo that a reference leads to, as seen from `todo`: `todo` itself, or another that has
    /// granted it.
    ///
    /// # Errors
    /// [`Error::NoTodo`] when there is no `todo`; [`Error::NoReference`] for what was not granted
    /// and for what never was, in the same words; and when the store fails.
    pub fn locate(&self, todo: &TodoId, reference: &Reference) -> Result<Todo, Error> {
        self.shared.locate(&self.find(todo)?, reference)
    }
}

impl Session {
    /// Lets another todo load these blocks and payloads of this one, as [`Memory::grant`] does.
    ///
    /// # Errors
    /// As [`Memory::grant`].
    pub fn grant(&self, to: &TodoId, references: &[Reference]) -> Result<Vec<Grant>, Error> {
        Memory { shared: self.memory.clone() }.grant(self.todo(), to, references)
    }
}

/// Grants that one transaction will record.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) puts: BTreeMap<Key, Vec<u8>>,
    pub(crate) grants: Vec<Grant>,
}

impl Draft {
    /// Adds a grant, unless it is there already.
    pub(crate) fn add(
        &mut self,
        memory: &Shared,
        from: &Todo,
        to: &Todo,
        reference: &Reference,
    ) -> Result<(), Error> {
        if from == to || lookup(memory, to, from, to, reference)?.is_some() {
            return Ok(());
        }
        let record = Record {
            from: from.no(),
            to: to.no(),
            to_id: to.id().clone(),
            reference: reference.clone(),
            at: (memory.clock)().0,
        };
        let bytes =
            rmp_serde::to_vec(&record).map_err(|_| Error::Internal("a grant has no bytes"))?;
        for holder in [from, to] {
            let slot = slots(holder, &record)
                .find(|key| !self.puts.contains_key(key) && is_free(memory, *key))
                .ok_or(Error::Internal("there is no number left for a grant"))?;
            self.puts.insert(slot, bytes.clone());
        }
        self.grants.push(record.grant());
        Ok(())
    }
}

impl Shared {
    /// As [`Memory::locate`].
    pub(crate) fn locate(&self, todo: &Todo, reference: &Reference) -> Result<Todo, Error> {
        let located = if reference.todo() == todo.id() {
            self.has(todo, reference)?.then(|| todo.clone())
        } else {
            self.granted(todo, reference)?
        };
        let missing =
            || Error::NoReference { todo: todo.id().clone(), reference: reference.clone() };
        located.ok_or_else(missing)
    }

    /// Checks that the reference names something of this very todo.
    pub(crate) fn check_own(&self, todo: &Todo, reference: &Reference) -> Result<(), Error> {
        let (id, reference) = (todo.id().clone(), reference.clone());
        if reference.todo() != todo.id() {
            return Err(Error::NotOwn { todo: id, reference });
        }
        if self.has(todo, &reference)? {
            Ok(())
        } else {
            Err(Error::NoReference { todo: id, reference })
        }
    }

    /// Whether the todo holds what the reference, which is one into it, names.
    fn has(&self, todo: &Todo, reference: &Reference) -> Result<bool, Error> {
        match reference {
            Reference::Block(id) => Ok(self.blocks.block(todo, id.n())?.is_some()),
            Reference::Payload { n, check, .. } => {
                match self.payloads.resolve(todo, &PayloadRef::local(*n, *check)) {
                    Ok(_) => Ok(true),
                    Err(PayloadError::NotFound { .. } | PayloadError::WrongCheck { .. }) => {
                        Ok(false)
                    }
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Whether a payload stood in a message of a block that was granted.
    fn comes_with_a_block(
        &self,
        from: &Todo,
        to: &Todo,
        reference: &Reference,
    ) -> Result<bool, Error> {
        let Reference::Payload { n, check, .. } = reference else { return Ok(false) };
        for (_, record) in records(self, to)? {
            let Reference::Block(id) = &record.reference else { continue };
            if (record.from, record.to) != (from.no(), to.no()) {
                continue;
            }
            let stored = match self.blocks.block(from, id.n()) {
                Ok(Some(block)) => self.blocks.messages(from, block.range.as_u64()),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            let stored = match stored {
                Ok(stored) => stored,
                // What cannot be read tells of no payload.
                Err(BlockError::Corrupt { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let offloads = stored.iter().flat_map(|message| &message.offloads);
            if offloads.into_iter().any(|offload| (offload.n, offload.check) == (*n, *check)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn find_granted(&self, to: &Todo, reference: &Reference) -> Result<Option<Todo>, Error> {
        let Some(from) = self.registry.find(reference.todo())? else { return Ok(None) };
        let is_granted = lookup(self, to, &from, to, reference)?.is_some()
            || self.comes_with_a_block(&from, to, reference)?;
        let is_there = || match self.has(&from, reference) {
            // What is damaged was there; whoever reads it says so.
            Err(
                Error::Blocks(BlockError::Corrupt { .. })
                | Error::Payloads(PayloadError::Corrupt { .. }),
            ) => Ok(true),
            has => has,
        };
        // A grant of something that is not there leads nowhere.
        Ok((is_granted && is_there()?).then_some(from))
    }
}

impl Grants for Shared {
    fn granted(&self, to: &Todo, reference: &Reference) -> Result<Option<Todo>, RecallError> {
        self.find_granted(to, reference).map_err(|error| match error {
            Error::Kv(error) => error.into(),
            Error::Blocks(error) => error.into(),
            Error::Payloads(error) => error.into(),
            Error::Recall(error) => error,
            // Nothing else fails while something is looked up.
            other => RecallError::Grants(KvError::Io {
                doing: "look up a grant in",
                path: std::path::PathBuf::new(),
                source: std::io::Error::other(other),
            }),
        })
    }
}

/// The records of the other todos that a todo's grants are kept with as well: they go when it is
/// forgotten.
pub(crate) fn counterparts(memory: &Shared, todo: &Todo) -> Result<Vec<Delete>, Error> {
    let mut delete = vec![Delete::todo(Space::Grant, todo.no())];
    for (_, record) in records(memory, todo)? {
        let other = if record.from == todo.no() { record.to } else { record.from };
        let keys = slot_numbers(&record).map(|n| Key { space: Space::Grant, todo: other, n });
        for key in keys {
            let held = memory.kv.get(key).ok().flatten();
            if held.and_then(|bytes| read(&bytes)).is_some_and(|held| held.is_same(&record)) {
                delete.push(Delete::one(key));
            }
        }
    }
    Ok(delete)
}

/// A grant at rest, as MessagePack: an array of these in this order. The todo that gave it is named
/// by the reference.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    from: u32,
    to: u32,
    to_id: TodoId,
    reference: Reference,
    at: i64,
}

impl Record {
    fn grant(&self) -> Grant {
        Grant {
            from: self.reference.todo().clone(),
            to: self.to_id.clone(),
            reference: self.reference.clone(),
            at: Timestamp(self.at),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.from, self.to, &self.reference) == (other.from, other.to, &other.reference)
    }

    /// Whether both todos are still the ones that they were.
    fn holds(&self, registry: &Registry) -> Result<bool, Error> {
        let lives = |id: &TodoId, no: u32| -> Result<bool, Error> {
            Ok(registry.find(id)?.is_some_and(|todo| todo.no() == no))
        };
        Ok(lives(self.reference.todo(), self.from)? && lives(&self.to_id, self.to)?)
    }
}

/// Grants whose content hashes alike stand beside each other, up to this many.
const SLOTS: u64 = 8;

/// The numbers under which a grant may be kept.
fn slot_numbers(record: &Record) -> std::ops::Range<u64> {
    let name = format!("{} {} {}", record.from, record.to, record.reference);
    let first = xxhash_rust::xxh3::xxh3_64(name.as_bytes()) % (Key::N_END - SLOTS);
    first..first + SLOTS
}

fn slots(holder: &Todo, record: &Record) -> impl Iterator<Item = Key> {
    let todo = holder.no();
    slot_numbers(record).map(move |n| Key { space: Space::Grant, todo, n })
}

/// A slot that cannot be read is not free: what it held may come back with a backup.
fn is_free(memory: &Shared, key: Key) -> bool {
    matches!(memory.kv.get(key), Ok(None))
}

fn read(bytes: &[u8]) -> Option<Record> {
    rmp_serde::from_slice(bytes).ok()
}

/// Where `holder` keeps the grant, if it is there and can be read: a damaged grant is none.
fn lookup(
    memory: &Shared,
    holder: &Todo,
    from: &Todo,
    to: &Todo,
    reference: &Reference,
) -> Result<Option<Key>, Error> {
    let wanted = Record {
        from: from.no(),
        to: to.no(),
        to_id: to.id().clone(),
        reference: reference.clone(),
        at: 0,
    };
    for key in slots(holder, &wanted) {
        match memory.kv.get(key) {
            Ok(Some(bytes)) if read(&bytes).is_some_and(|found| found.is_same(&wanted)) => {
                return Ok(Some(key));
            }
            Ok(_) | Err(KvError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Grants are read in steps of this many.
const STEP: usize = 512;

/// All grants that the todo keeps, given and received. A damaged one is none.
fn records(memory: &Shared, todo: &Todo) -> Result<Vec<(Key, Record)>, Error> {
    let mut found = Vec::new();
    let mut from = 0;
    while from < Key::N_END {
        let step = match memory.kv.scan(Space::Grant, todo.no(), from..Key::N_END, STEP) {
            Err(KvError::Corrupt { key, .. }) if key.n >= from => {
                let before = memory.kv.scan(Space::Grant, todo.no(), from..key.n, usize::MAX)?;
                from = key.n + 1;
                before
            }
            step => {
                let step = step?;
                from = match step.last() {
                    Some((last, _)) if step.len() == STEP => last + 1,
                    _ => Key::N_END,
                };
                step
            }
        };
        found.extend(step.into_iter().filter_map(|(n, bytes)| {
            Some((Key { space: Space::Grant, todo: todo.no(), n }, read(&bytes)?))
        }));
    }
    Ok(found)
}
