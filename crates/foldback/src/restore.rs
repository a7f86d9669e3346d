//! Fills a new store with the contents of another one, whatever the engine and the encryption of either.
//!
//! Todos keep their numbers, because grants and children name each other by them. So only a store in which no todo was
//! ever made can be filled. Its numbers are reserved first, so that a process that has the store open makes no todo with
//! one of them. Until everything is copied, a mark in its records keeps it from being opened; what an interrupted attempt
//! has left is removed by the next one.

mod todo;

use crate::error::Failure;
use crate::memory::Shared;
use crate::{Audit, Error, Memory, Options, embedding, quota, secret};
use foldback_embedder::WordsOnly;
use foldback_kv::{
    Batch, Contended as _, Delete, Error as KvError, Expect, Key, Kv, Mode, Space, Todo,
};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use todo::TodoCopy;

/// The mark of a store that is being filled: the greatest number that is reserved in it, little-endian. Records of the whole
/// store use the number that no todo has.
const UNFINISHED: Key = Key { space: Space::Meta, todo: 0, n: 10 };

/// No todo has this number. Its head counts the attempts to fill the store, so that of two at once the later one goes on.
const ATTEMPTS: u32 = Key::TODO_END - 7;

/// How many todos are copied before they are named.
const STEP: usize = 512;

/// How many todos are copied at once: a server, and the sync of a disk, take as long for several commits as for one.
const THREADS: usize = 8;

/// What a store was filled with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Restored {
    /// How many todos it holds now.
    pub todos: u64,
    /// How many messages they have.
    pub messages: u64,
}

impl Memory {
    /// Fills the store in `dir` with everything that another one holds: messages, blocks, vectors, payloads, saved
    /// states, grants, todo lists, and what programs keep beside the messages. The store is created if there is none; it
    /// may have another engine than the source, be encrypted or not, and keep large payloads at another place. Indexes
    /// are rebuilt automatically. The audit log and the tenants of the source are not copied.
    ///
    /// Todos that are made in the source meanwhile are not copied, and one that is written to meanwhile is copied with all
    /// that was recorded when it was read. For a copy of a single moment, name a
    /// [backup](crate::Maintenance::backup). If this is interrupted, the store does not open; call it again, and it begins
    /// from the start. `progress` is called with the number of the last todo that is copied, and with the greatest number.
    ///
    /// # Errors
    /// When a todo was ever made in the store ([`AlreadyExists`](crate::ErrorKind::AlreadyExists)), when it is filled by
    /// another call at the same time ([`Conflict`](crate::ErrorKind::Conflict)), when a record of the source is damaged,
    /// or either store fails.
    pub fn restore(
        dir: &Path,
        options: Options,
        source: &Self,
        progress: impl FnMut(u64, u64),
    ) -> Result<Restored, Error> {
        // Nothing is embedded or looked up here.
        let options = options.with_mode(Mode::ReadWrite).with_audit(None::<Audit>);
        let embedder = Arc::new(WordsOnly) as Arc<dyn foldback_core::Embedder>;
        let options = options.with_embedder(embedder);
        let key = options.encryption.as_ref();
        let kv = foldback_kv::open_with(dir, options.truth(), Mode::ReadWrite, key)?;
        let target = Self::assemble(kv, Some(dir), options)?;
        let (source, target) = (&source.shared, &target);
        let attempt = begin(source, target, dir)?;
        Restore { source, target, attempt }.run(progress)
    }
}

/// Returns an error if filling a store was begun and not finished.
pub(crate) fn check_finished(kv: &dyn Kv) -> Result<(), Error> {
    match kv.get(UNFINISHED)? {
        Some(_) => Err(Failure::Unfinished.into()),
        None => Ok(()),
    }
}

/// Reserves the numbers of the source in a store in which no todo was ever made, and marks it as unfinished. What an
/// interrupted attempt has left is removed. Returns the number of this attempt.
fn begin(source: &Shared, target: &Memory, dir: &Path) -> Result<u64, Error> {
    let (kv, registry) = (&target.shared.kv, &target.shared.registry);
    let used = || Error::from(Failure::Used { path: dir.to_owned() });
    let reserved = match kv.get(UNFINISHED)? {
        Some(mark) => mark.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
        None => 0,
    };
    if registry.made()? != reserved {
        return Err(used());
    }
    let mark = |made: u64| vec![(UNFINISHED, made.to_le_bytes().to_vec())];
    let attempt = kv.head(ATTEMPTS)? + 1;
    let expect = Some(Expect { todo: ATTEMPTS, head: attempt - 1, next: attempt });
    let begun = kv.commit(Batch { expect, put: mark(reserved), ..Batch::default() });
    begun.map_err(filled_twice)?;
    if reserved > 0 {
        remove_left(target, attempt)?;
    }
    let made = source.registry.made()?;
    registry.reserve(reserved, made, mark(made)).map_err(|error| match error.is_conflict() {
        true => used(),
        false => error.into(),
    })?;
    Ok(attempt)
}

/// Returns the condition that no later attempt has begun.
fn of_attempt(attempt: u64) -> Expect {
    Expect { todo: ATTEMPTS, head: attempt, next: attempt }
}

/// Returns an error if a later attempt has begun.
fn check_attempt(target: &Shared, attempt: u64) -> Result<(), Error> {
    match target.kv.head(ATTEMPTS)? == attempt {
        true => Ok(()),
        false => Err(Failure::FilledTwice.into()),
    }
}

/// Returns the error of a write that another attempt has come before.
fn filled_twice(error: KvError) -> Error {
    match error.is_conflict() {
        true => Failure::FilledTwice.into(),
        false => error.into(),
    }
}

/// Removes the todos that an interrupted attempt has left.
fn remove_left(target: &Memory, attempt: u64) -> Result<(), Error> {
    let shared = &target.shared;
    loop {
        let left = shared.registry.list(0, STEP)?;
        if left.is_empty() {
            return Ok(());
        }
        shared.registry.unname(&left, of_attempt(attempt)).map_err(filled_twice)?;
        for todo in &left {
            todo::remove(shared, todo)?;
        }
    }
}

struct Restore<'r> {
    source: &'r Shared,
    target: &'r Memory,
    attempt: u64,
}

impl Restore<'_> {
    fn run(&self, mut progress: impl FnMut(u64, u64)) -> Result<Restored, Error> {
        let (source, target) = (&self.source.registry, &self.target.shared.registry);
        let made = target.made()?;
        let (mut restored, mut after) = (Restored::default(), 0);
        loop {
            let mut todos = source.list_with_info(after, STEP)?;
            todos.retain(|(todo, _)| u64::from(todo.no()) <= made);
            let Some((last, _)) = todos.last() else { break };
            after = last.no();
            target.register(&todos, of_attempt(self.attempt)).map_err(filled_twice)?;
            let (named, messages): (Vec<_>, Vec<_>) = self.copy(&todos)?.into_iter().unzip();
            target.name(&named, of_attempt(self.attempt)).map_err(filled_twice)?;
            restored.todos += named.len() as u64;
            restored.messages += messages.iter().sum::<u64>();
            progress(u64::from(after), made);
        }
        self.target.shared.kv.commit(self.of_store()?).map_err(filled_twice)?;
        Ok(restored)
    }

    /// Copies todos, several at once. Returns each that was not forgotten meanwhile, with the number of its messages.
    fn copy(&self, todos: &[(Todo, Vec<u8>)]) -> Result<Vec<(Todo, u64)>, Error> {
        let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let mut copied = Vec::new();
            while !has_failed.load(Ordering::Relaxed) {
                let next = todos.get(next.fetch_add(1, Ordering::Relaxed));
                let Some((todo, _)) = next else { break };
                let (source, target, attempt) = (self.source, self.target, self.attempt);
                let copy = TodoCopy { source, target, todo, attempt };
                match copy.run() {
                    Ok(messages) => copied.extend(messages.map(|count| (todo.clone(), count))),
                    Err(error) => {
                        has_failed.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(copied)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS.min(todos.len())).map(|_| scope.spawn(work)).collect();
            let mut copied = Vec::with_capacity(todos.len());
            for thread in threads {
                let part =
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                copied.extend(part);
            }
            Ok(copied)
        })
    }

    /// Returns the last commit: the records of the store itself, which are its secret, by which contexts in use know recalled
    /// text, its embedder, and its limits. The mark is removed.
    fn of_store(&self) -> Result<Batch, Error> {
        let mut put = Vec::new();
        for key in std::iter::once(secret::SECRET).chain(embedding::RECORDS) {
            put.extend(self.source.kv.get(key)?.map(|value| (key, value)));
        }
        // A new tenant has limits of its own already.
        if self.target.shared.kv.get(quota::OF_STORE)?.is_none() {
            let limits = self.source.kv.get(quota::OF_STORE)?;
            put.extend(limits.map(|value| (quota::OF_STORE, value)));
        }
        let expect = Some(Expect { todo: ATTEMPTS, head: self.attempt, next: 0 });
        Ok(Batch { expect, put, delete: vec![Delete::one(UNFINISHED)] })
    }
}

#[cfg(test)]
mod tests;
