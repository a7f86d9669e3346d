//! The copy of one todo.

use super::check_attempt;
use crate::error::Failure;
use crate::grants;
use crate::memory::Shared;
use crate::named_text::{self, Slot};
use crate::notes::NOTES;
use crate::{Error, Memory};
use foldback_kv::{Batch, Contended as _, Delete, Error as KvError, Expect, Key, Space, Todo};
use std::ops::Range;

/// What a todo has in records that are the same in every store. The last range is the state of its vectors; the rest of
/// that space is a copy of the index, which is made again.
const RECORDS: [(Space, Range<u64>); 8] = [
    (Space::Todo, 0..Key::N_END),
    (Space::Message, 0..Key::N_END),
    (Space::Block, 0..Key::N_END),
    (Space::Vector, 0..Key::N_END),
    (Space::Session, 0..Key::N_END),
    (Space::Plan, 0..Key::N_END),
    (Space::Sent, 0..Key::N_END),
    (Space::Index, 0..1),
];

/// Records whose numbers follow from their contents; in an encrypted store, from a keyed digest.
const HASHED: [(Space, Range<u64>); 2] =
    [(Space::Grant, 0..Key::N_END), (Space::Parked, 0..Key::N_END)];

/// How many records of a kind are read at once, at first and at most. Some have megabytes.
const FIRST_STEP: usize = 8;
const STEP: usize = 512;

/// How many bytes are committed at once.
const STEP_BYTES: usize = 4 << 20;

/// How often a todo that is written to meanwhile is copied again.
const MOST_TRIES: usize = 16;

/// The head of a todo that is not complete, by the attempt that fills it. The heads of complete ones are smaller.
const INCOMPLETE: u64 = 1 << 61;

/// The copy of one todo into a store that does not have it yet, under its number.
pub(super) struct TodoCopy<'c> {
    pub(super) source: &'c Shared,
    pub(super) target: &'c Memory,
    pub(super) todo: &'c Todo,
    pub(super) attempt: u64,
}

/// Records that are not committed yet.
#[derive(Default)]
struct Draft {
    put: Vec<(Key, Vec<u8>)>,
    bytes: usize,
    /// Whether some are committed.
    is_begun: bool,
}

impl TodoCopy<'_> {
    /// Copies it, and returns the number of its messages; `None` if it was forgotten meanwhile.
    pub(super) fn run(&self) -> Result<Option<u64>, Error> {
        for _ in 0..MOST_TRIES {
            // What a later attempt has written stays.
            check_attempt(&self.target.shared, self.attempt)?;
            match self.once() {
                Ok(None) => remove_contents(&self.target.shared, self.todo)?,
                // The rest of an earlier attempt, which ends with its next write.
                Err(error) if error.is_conflict() => {
                    remove_contents(&self.target.shared, self.todo)?;
                }
                Ok(messages) => return Ok(messages),
                Err(error) if self.is_there()? => return Err(self.blame(error)),
                Err(_) => break,
            }
        }
        if self.is_there()? {
            let (todo, expected) = (self.todo.no(), self.source.kv.head(self.todo.no())?);
            return Err(KvError::Conflict { todo, expected, found: expected }.into());
        }
        remove(&self.target.shared, self.todo)?;
        Ok(None)
    }

    /// Returns the number of messages, or `None` if the todo was written to meanwhile.
    fn once(&self) -> Result<Option<u64>, Error> {
        let (source, no) = (&self.source.kv, self.todo.no());
        let head = source.head(no)?;
        let (draft, messages) = self.contents()?;
        if source.head(no)? != head {
            return Ok(None);
        }
        let before = if draft.is_begun { self.incomplete() } else { 0 };
        let expect = Some(Expect { todo: no, head: before, next: head });
        self.target.shared.kv.commit(Batch { expect, put: draft.put, ..Batch::default() })?;
        Ok(Some(messages))
    }

    fn incomplete(&self) -> u64 {
        INCOMPLETE + self.attempt
    }

    /// Names the todo, where an error knows its number alone.
    fn blame(&self, error: Error) -> Error {
        match error.into_failure() {
            Failure::Kv(KvError::Corrupt { key, detail }) => {
                let todo = self.todo.id().clone();
                Failure::State { todo, what: format!("the record {key} is damaged: {detail}") }
                    .into()
            }
            failure => failure.into(),
        }
    }

    fn is_there(&self) -> Result<bool, Error> {
        let found = self.source.registry.find(self.todo.id())?;
        Ok(found.is_some_and(|found| found.no() == self.todo.no()))
    }

    /// Copies everything but the head. Returns what is to be committed with it, and the number of messages.
    fn contents(&self) -> Result<(Draft, u64), Error> {
        let mut draft = Draft::default();
        let is_sealed = |memory: &Shared| Ok::<_, Error>(memory.kv.cipher(0)?.is_some());
        let is_rehashed = is_sealed(self.source)? || is_sealed(&self.target.shared)?;
        let same = HASHED.iter().filter(|_| !is_rehashed);
        let messages = self.records(&mut draft, RECORDS.iter().chain(same).cloned().collect())?;
        if self.source.payloads.last(self.todo)? > 0 {
            self.commit(&mut draft)?;
            self.payloads(&mut draft)?;
        }
        if is_rehashed {
            self.commit(&mut draft)?;
            grants::copy(self.source, &self.target.shared, self.todo.no())?;
            self.named_texts()?;
        }
        Ok((draft, messages))
    }

    /// Copies the records of these ranges, and returns how many of them are messages.
    fn records(&self, draft: &mut Draft, mut left: Vec<(Space, Range<u64>)>) -> Result<u64, Error> {
        let (todo, mut messages, mut step) = (self.todo.no(), 0, FIRST_STEP);
        while !left.is_empty() {
            let found = self.source.kv.scan_each(todo, &left, step)?.found;
            let bytes: usize = found.iter().flatten().map(|(_, value)| value.len()).sum();
            let mut next = Vec::new();
            for ((space, range), found) in left.into_iter().zip(found) {
                if space == Space::Message {
                    messages += found.len() as u64;
                }
                if let Some((last, _)) = found.last().filter(|_| found.len() >= step) {
                    next.push((space, last + 1..range.end));
                }
                let keyed = found.into_iter().map(|(n, value)| (Key { space, todo, n }, value));
                self.add(draft, keyed)?;
            }
            left = next;
            step = match bytes {
                0..STEP_BYTES => (step * 4).min(STEP),
                _ => (step / 4).max(1),
            };
        }
        Ok(messages)
    }

    /// Copies the payloads, each as the new store keeps payloads of its size.
    fn payloads(&self, draft: &mut Draft) -> Result<(), Error> {
        let (source, target) = (&self.source.payloads, &self.target.shared.payloads);
        for n in 1..=source.last(self.todo)? {
            let mut pending = target.begin(self.todo)?;
            target.prepare_copy(&mut pending, source, n)?;
            self.add(draft, pending.into_puts())?;
            // The next one may have the same hash record.
            self.commit(draft)?;
        }
        Ok(())
    }

    /// Copies texts that are found by their names.
    fn named_texts(&self) -> Result<(), Error> {
        let (kv, no) = (&self.target.shared.kv, self.todo.no());
        let mut from = 0;
        loop {
            let found = self.source.kv.scan(Space::Parked, no, from..Key::N_END, FIRST_STEP)?;
            let Some((last, _)) = found.last() else { return Ok(()) };
            from = last + 1;
            for (n, value) in found {
                let key = Key { space: Space::Parked, todo: no, n };
                let name = named_text::name_of(key, &value)?;
                // A record without a name is what a deletion has left.
                let slot = match name.as_slice() {
                    [] => continue,
                    name if NOTES.contains(&n) => self.target.note_slot(no, name)?,
                    name => self.target.parked_slot(no, name)?,
                };
                // Where all places of a note are taken, it is not kept.
                if let Slot::Free(key) | Slot::Taken(key, _) = slot {
                    kv.commit(Batch { put: vec![(key, value)], ..Batch::default() })?;
                }
            }
        }
    }

    fn add(
        &self,
        draft: &mut Draft,
        records: impl IntoIterator<Item = (Key, Vec<u8>)>,
    ) -> Result<(), Error> {
        for (key, value) in records {
            draft.bytes += value.len();
            draft.put.push((key, value));
            if draft.bytes >= STEP_BYTES {
                self.commit(draft)?;
            }
        }
        Ok(())
    }

    /// Commits what is not committed yet. The head of the todo comes with the last of it.
    fn commit(&self, draft: &mut Draft) -> Result<(), Error> {
        let Draft { put, is_begun, .. } = std::mem::take(draft);
        let head = if is_begun { self.incomplete() } else { 0 };
        let expect = Some(Expect { todo: self.todo.no(), head, next: self.incomplete() });
        self.target.shared.kv.commit(Batch { expect, put, ..Batch::default() })?;
        draft.is_begun = true;
        Ok(())
    }
}

/// Removes a todo from a store that is being filled: everything but its name.
pub(super) fn remove(target: &Shared, todo: &Todo) -> Result<(), Error> {
    remove_contents(target, todo)?;
    let delete = vec![target.registry.unregister(todo)];
    Ok(target.kv.commit(Batch { delete, ..Batch::default() })?)
}

/// Removes what was copied of a todo.
fn remove_contents(target: &Shared, todo: &Todo) -> Result<(), Error> {
    let (no, head) = (todo.no(), target.kv.head(todo.no())?);
    let spaces = RECORDS.iter().chain(&HASHED).map(|(space, _)| Delete::todo(*space, no));
    let delete = spaces.chain(target.payloads.forget(todo)).collect();
    let expect = Some(Expect { todo: no, head, next: 0 });
    target.kv.commit(Batch { expect, delete, put: Vec::new() })?;
    Ok(target.payloads.remove_files(todo)?)
}
