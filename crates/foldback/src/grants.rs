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

use crate::memory::Shared;
use crate::{Error, Memory, Session};
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::Error as BlockError;
use foldback_core::{BlockId, PayloadRef, Reference, Timestamp, TodoId};
use foldback_disclosure::{Error as RecallError, Grants};
use foldback_kv::{Batch, Delete, Error as KvError, Expect, Key, Registry, Space, Todo};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
    /// [`Error::NoTodo`]; [`Error::ToItself`] when the two are one; [`Error::NotOwn`] for a reference
    /// into a third todo, and [`Error::NoReference`] for one that leads nowhere; and when the store
    /// fails.
    pub fn grant(
        &self,
        from: &TodoId,
        to: &TodoId,
        references: &[Reference],
    ) -> Result<Vec<Grant>, Error> {
        let from = self.find(from)?;
        loop {
            let to = self.find(to)?;
            if from == to {
                return Err(Error::ToItself(to.id().clone()));
            }
            let head = self.shared.kv.head(to.no())?;
            let mut draft = Granting::default();
            for reference in references {
                self.shared.check_own(&from, reference)?;
                draft.add(&self.shared, &from, &to, reference)?;
            }
            match self.shared.commit_moving(&to, head, draft.puts()?, Vec::new()) {
                Ok(()) => {}
                Err(Error::Kv(KvError::Conflict { .. })) => continue,
                Err(error) => return Err(error),
            }
            return match self.shared.settle([&from, &to])? {
                Some(gone) => Err(Error::NoTodo(gone)),
                None => Ok(draft.grants),
            };
        }
    }

    /// Takes a grant back, and says whether there was one. What was loaded by it before stays in
    /// the other's conversation.
    ///
    /// # Errors
    /// [`Error::NoTodo`], and when the store fails.
    pub fn revoke(&self, from: &TodoId, to: &TodoId, reference: &Reference) -> Result<bool, Error> {
        let from = self.find(from)?;
        loop {
            let to = self.find(to)?;
            let head = self.shared.kv.head(to.no())?;
            let (was_granted, put, delete) = self.shared.without(&from, &to, reference)?;
            match self.shared.commit_moving(&to, head, put, delete) {
                Ok(()) => return Ok(was_granted),
                Err(Error::Kv(KvError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What the todo was granted and what it has granted, the oldest first.
    ///
    /// # Errors
    /// [`Error::NoTodo`], and when the store fails or a record is damaged.
    pub fn grants(&self, todo: &TodoId) -> Result<Vec<Grant>, Error> {
        let todo = self.find(todo)?;
        let mut grants = Vec::new();
        for (_, record) in records(&self.shared, todo.no())? {
            if record.direct && record.holds(&self.shared.registry)? {
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
pub(crate) struct Granting {
    records: BTreeMap<Key, Record>,
    pub(crate) grants: Vec<Grant>,
    /// Who gives and who receives.
    pub(crate) todos: BTreeSet<Todo>,
}

impl Granting {
    /// Adds a grant, unless it is there already; with a block, the payloads that stood in it.
    pub(crate) fn add(
        &mut self,
        memory: &Shared,
        from: &Todo,
        to: &Todo,
        reference: &Reference,
    ) -> Result<(), Error> {
        let is_new = self.change(memory, from, to, reference, |record| {
            !std::mem::replace(&mut record.direct, true)
        })?;
        self.grants.extend(is_new);
        self.todos.extend([from.clone(), to.clone()]);
        let Reference::Block(id) = reference else { return Ok(()) };
        for payload in memory.payloads_in(from, id.n())? {
            self.change(memory, from, to, &payload, |record| {
                let is_new = !record.blocks.contains(&id.n());
                record.blocks.extend(is_new.then_some(id.n()));
                is_new
            })?;
        }
        Ok(())
    }

    /// Changes the record of a reference, which is made if there is none, with both todos; gives the
    /// grant when `change` says that it has changed.
    fn change(
        &mut self,
        memory: &Shared,
        from: &Todo,
        to: &Todo,
        reference: &Reference,
        change: impl Fn(&mut Record) -> bool,
    ) -> Result<Option<Grant>, Error> {
        let mut granted = None;
        for holder in [from, to] {
            let wanted = Record {
                from: from.no(),
                to: to.no(),
                to_id: to.id().clone(),
                reference: reference.clone(),
                at: (memory.clock)().0,
                direct: false,
                blocks: Vec::new(),
            };
            let (slot, mut record) = self.slot(memory, holder, wanted)?;
            if change(&mut record) {
                granted = Some(record.grant());
                self.records.insert(slot, record);
            }
        }
        Ok(granted)
    }

    /// Where `holder` keeps the record, or may keep it, and the record as it is now.
    fn slot(&self, memory: &Shared, holder: &Todo, wanted: Record) -> Result<(Key, Record), Error> {
        let mut free = None;
        for key in slots(holder.no(), &wanted) {
            let held = match self.records.get(&key) {
                Some(record) => Slot::Held(record.clone()),
                None => held(memory, key)?,
            };
            match held {
                Slot::Held(record) if record.is_same(&wanted) => return Ok((key, record)),
                Slot::Free => free = free.or(Some(key)),
                Slot::Held(_) | Slot::Damaged => {}
            }
        }
        let free = free.ok_or(Error::Internal("there is no number left for a grant"))?;
        Ok((free, wanted))
    }

    /// What is to be written.
    pub(crate) fn puts(&self) -> Result<Vec<(Key, Vec<u8>)>, Error> {
        self.records.iter().map(|(key, record)| Ok((*key, record.to_bytes()?))).collect()
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

    /// The payloads that stood in the messages of a block. What cannot be read tells of none.
    fn payloads_in(&self, todo: &Todo, n: u32) -> Result<Vec<Reference>, Error> {
        let stored = match self.blocks.block(todo, n) {
            Ok(Some(block)) => self.blocks.messages(todo, block.range.as_u64()),
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let stored = match stored {
            Err(BlockError::Corrupt { .. }) => Vec::new(),
            stored => stored?,
        };
        let offloads = stored.iter().flat_map(|message| &message.offloads);
        let named = offloads.map(|offload| Reference::Payload {
            todo: todo.id().clone(),
            n: offload.n,
            check: offload.check,
        });
        Ok(named.collect())
    }

    fn find_granted(&self, to: &Todo, reference: &Reference) -> Result<Option<Todo>, Error> {
        // For a todo that is not there the same is read as for one that is: nobody has the number 0.
        let from = self.registry.find(reference.todo())?;
        let is_granted = self.is_granted(from.as_ref().map_or(0, Todo::no), to, reference)?;
        let Some(from) = from.filter(|_| is_granted) else { return Ok(None) };
        let is_there = match self.has(&from, reference) {
            // What is damaged was there; whoever reads it says so.
            Err(
                Error::Blocks(BlockError::Corrupt { .. })
                | Error::Payloads(PayloadError::Corrupt { .. }),
            ) => true,
            has => has?,
        };
        // A grant of something that is not there leads nowhere.
        Ok(is_there.then_some(from))
    }

    /// Whether `to` may read what the reference names: it was granted by itself, or stood in a block
    /// that was.
    fn is_granted(&self, from: u32, to: &Todo, reference: &Reference) -> Result<bool, Error> {
        let Some((_, record)) = lookup(self, to.no(), (from, to.no()), reference)? else {
            return Ok(false);
        };
        for n in &record.blocks {
            let block = Reference::Block(BlockId::new(reference.todo().clone(), *n));
            let block = lookup(self, to.no(), (from, to.no()), &block)?;
            if block.is_some_and(|(_, block)| block.direct) {
                return Ok(true);
            }
        }
        Ok(record.direct)
    }

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

    /// Looks, after something was granted, whether all of these todos are still there. If one is not,
    /// what was granted goes after it; gives its name.
    pub(crate) fn settle<'a>(
        &self,
        todos: impl IntoIterator<Item = &'a Todo> + Clone,
    ) -> Result<Option<TodoId>, Error> {
        for todo in todos.clone() {
            if self.registry.find(todo.id())?.as_ref() != Some(todo) {
                todos.into_iter().try_for_each(|todo| self.drop_stale(todo))?;
                return Ok(Some(todo.id().clone()));
            }
        }
        Ok(None)
    }

    /// Deletes the grants of a todo that hold no more, because either side is gone.
    fn drop_stale(&self, todo: &Todo) -> Result<(), Error> {
        let mut delete = Vec::new();
        for (key, record) in records(self, todo.no())? {
            if !record.holds(&self.registry)? {
                delete.push(Delete::one(key));
                delete.extend(counterpart(self, todo.no(), &record)?);
            }
        }
        Ok(self.kv.commit(Batch { delete, ..Batch::default() })?)
    }

    /// Deletes the grants of todos that are gone: what was left behind when a process was killed
    /// while it granted or forgot.
    pub(crate) fn sweep_grants(&self) -> Result<(), Error> {
        // The registry's own head counts the todos ever made.
        let last = u32::try_from(self.kv.head(0)?).unwrap_or(u32::MAX);
        for no in 1..=last {
            let next = self.registry.list(no - 1, 1);
            match next.as_deref().map(<[Todo]>::first) {
                Ok(Some(todo)) if todo.no() == no => self.drop_stale(todo)?,
                Ok(_) => self.sweep_forgotten_grants(no)?,
                // Whose record cannot be read is not known to be gone.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Deletes whatever is kept under the number of a todo that is gone, and with the others.
    pub(crate) fn sweep_forgotten_grants(&self, no: u32) -> Result<(), Error> {
        if matches!(self.kv.last(Space::Grant, no), Ok(None)) {
            return Ok(());
        }
        let mut delete = of_todo(self, no)?;
        // What is damaged names nobody, and goes as well.
        delete.push(Delete::todo(Space::Grant, no));
        Ok(self.kv.commit(Batch { delete, ..Batch::default() })?)
    }
}

/// Whether there was something, what is to be written, and what is to be deleted.
type Change = (bool, Vec<(Key, Vec<u8>)>, Vec<Delete>);

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

/// What is kept of a todo's grants now, with itself and with the others: it goes when the todo is
/// forgotten. What is granted meanwhile stays, so that
/// [`sweep_forgotten_grants`](Shared::sweep_forgotten_grants) finds it.
pub(crate) fn of_todo(memory: &Shared, no: u32) -> Result<Vec<Delete>, Error> {
    let mut delete = Vec::new();
    for (key, record) in records(memory, no)? {
        delete.push(Delete::one(key));
        delete.extend(counterpart(memory, no, &record)?);
    }
    Ok(delete)
}

/// The same record with the other todo.
fn counterpart(memory: &Shared, no: u32, record: &Record) -> Result<Option<Delete>, Error> {
    let other = if record.from == no { record.to } else { record.from };
    let found = lookup(memory, other, (record.from, record.to), &record.reference)?;
    Ok(found.map(|(key, _)| Delete::one(key)))
}

/// A grant at rest, as MessagePack: an array of these in this order. The todo that gave it is named
/// by the reference.
///
/// A payload's may be there because of blocks alone. Then it holds as long as one of those is granted:
/// that is looked up, so that no late write of this record can make it hold longer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    from: u32,
    to: u32,
    to_id: TodoId,
    reference: Reference,
    at: i64,
    /// Whether it was granted by itself.
    #[serde(default = "yes")]
    direct: bool,
    /// The blocks that were granted in whose messages the payload stood.
    #[serde(default)]
    blocks: Vec<u32>,
}

/// Records without the last two members are of grants by themselves.
fn yes() -> bool {
    true
}

impl Record {
    fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        rmp_serde::to_vec(self).map_err(|_| Error::Internal("a grant has no bytes"))
    }

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

/// Where `holder` may keep the record.
fn slots(holder: u32, record: &Record) -> impl Iterator<Item = Key> + use<> {
    slots_of(holder, (record.from, record.to), &record.reference)
}

fn slots_of(
    holder: u32,
    (from, to): (u32, u32),
    reference: &Reference,
) -> impl Iterator<Item = Key> + use<> {
    let name = format!("{from} {to} {reference}");
    let first = xxhash_rust::xxh3::xxh3_64(name.as_bytes()) % (Key::N_END - SLOTS);
    (first..first + SLOTS).map(move |n| Key { space: Space::Grant, todo: holder, n })
}

/// What stands under a number.
enum Slot {
    Free,
    Held(Record),
    /// Not free: what it held may come back with a backup.
    Damaged,
}

fn held(memory: &Shared, key: Key) -> Result<Slot, Error> {
    match memory.kv.get(key) {
        Ok(None) => Ok(Slot::Free),
        Ok(Some(bytes)) => Ok(read(&bytes).map_or(Slot::Damaged, Slot::Held)),
        Err(KvError::Corrupt { .. }) => Ok(Slot::Damaged),
        Err(error) => Err(error.into()),
    }
}

fn read(bytes: &[u8]) -> Option<Record> {
    rmp_serde::from_slice(bytes).ok()
}

/// The record that `holder` keeps of a reference, if it is there and can be read: a damaged grant is
/// none. What is not there costs the same reads, whatever it is.
fn lookup(
    memory: &Shared,
    holder: u32,
    (from, to): (u32, u32),
    reference: &Reference,
) -> Result<Option<(Key, Record)>, Error> {
    for key in slots_of(holder, (from, to), reference) {
        if let Slot::Held(record) = held(memory, key)?
            && (record.from, record.to, &record.reference) == (from, to, reference)
        {
            return Ok(Some((key, record)));
        }
    }
    Ok(None)
}

/// Grants are read in steps of this many.
const STEP: usize = 512;

/// All grants that the todo of this number keeps, given and received. A damaged one is none.
fn records(memory: &Shared, no: u32) -> Result<Vec<(Key, Record)>, Error> {
    let mut found = Vec::new();
    let mut from = 0;
    while from < Key::N_END {
        let step = match memory.kv.scan(Space::Grant, no, from..Key::N_END, STEP) {
            Err(KvError::Corrupt { key, .. }) if key.n >= from => {
                let before = memory.kv.scan(Space::Grant, no, from..key.n, usize::MAX)?;
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
            Some((Key { space: Space::Grant, todo: no, n }, read(&bytes)?))
        }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
