//! Checking a store, repairing what is derived, returning space, copying, forgetting.

mod backup;
mod forget;
mod partial_copy;
mod rebuild;
mod verify;

use crate::audit::{AuditFilter, AuditLog};
use crate::embedding::Embedding;
use crate::memory::Shared;
use crate::secret::write_again;
use crate::{Error, ErrorKind, Memory, disk};
use foldback_blockstore::CaughtUp;
use foldback_kv::{Batch, Error as KvError, Lost, Todo, is_sound};
use rayon::prelude::*;
use rebuild::rebuild;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use verify::{TodoCheck, state_and_blocks};

/// Todos and messages are walked in steps of this many.
const STEP: usize = 512;

/// A payload file without a record is an orphan when it is this old; a younger one may belong to a
/// write that is under way.
const ORPHAN_AGE: Duration = Duration::from_secs(3_600);

/// How long to wait for another's turn at an index.
const TURN: Duration = Duration::from_millis(10);

/// What is said of a state that was made again.
const REBUILT: &str = "the saved state was made again from the messages; what was pinned by hand \
    is pinned no more";

/// What is said where the engine's own structures are damaged.
const UNSOUND: &str = "the structures of the database are damaged, so nothing in the store is repaired: writing could \
    spread the damage. Go back to a backup, or export what can be read (`foldback export --lenient`) and import it \
    into a new store";

/// The upkeep of a store: checks, repairs, indexes, space, copies, and forgetting.
///
/// ```
/// use foldback::core::{Message, TodoId};
/// use foldback::{Memory, Options};
///
/// let memory = Memory::in_memory(Options::default())?;
/// let todo = TodoId::new("errand")?;
/// memory.session(&todo)?.record(Message::user("Post the letter."))?;
///
/// assert!(memory.maintenance().verify()?.is_clean());
/// memory.maintenance().forget(&todo)?;
/// assert!(memory.todos(None, 1)?.is_empty());
/// # Ok::<(), foldback::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Maintenance<'a> {
    memory: &'a Arc<Shared>,
}

impl Memory {
    /// The upkeep of the store.
    #[must_use]
    pub fn maintenance(&self) -> Maintenance<'_> {
        Maintenance { memory: &self.shared }
    }
}

/// What a check of the whole store found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checkup {
    /// How many todos were checked.
    pub todos: u64,
    /// How many messages.
    pub messages: u64,
    /// How many blocks.
    pub blocks: u64,
    /// How many payloads.
    pub payloads: u64,
    /// What is wrong, in sentences, each naming the todo and the record.
    pub findings: Vec<String>,
    /// How many blocks the indexes are behind the truth: no fault, they are searched from there.
    pub index_lag: u64,
    /// How many todos have a graph over the vectors of their index.
    pub graphs: u64,
    /// How many blocks the index over all todos is behind, where that is enough to be worth a volume:
    /// no fault either.
    pub all_todos_lag: u64,
    /// How many messages stand open behind the last blocks.
    pub tail: u64,
}

impl Checkup {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
impl Maintenance<'_> {
    /// Checks every hash and rebuilds every message: that each record is whole, that numbers have
    /// no gap, that blocks and open tail are the transcript, that every payload has its content; and that nothing
    /// was changed in the log of what was looked up.
    ///
    /// # Errors
    /// When the store cannot be read at all; damage is a finding.
    pub fn verify(self) -> Result<Checkup, Error> {
        Ok(self.verified()?.0)
    }

    /// Whether the engine's own structures hold. Where they do not, a write may damage what is still whole, and a
    /// memory that is open for writing writes by itself; so ask this of one that is open for reading.
    ///
    /// # Errors
    /// When the store cannot be read at all.
    pub fn is_sound(self) -> Result<bool, Error> {
        Ok(is_sound(&self.memory.kv.check()?))
    }

    /// What [`verify`](Self::verify) gives, and whether the engine's own structures are sound.
    fn verified(self) -> Result<(Checkup, bool), Error> {
        let mut checkup = Checkup::default();
        let findings = self.memory.kv.check()?;
        let is_sound = is_sound(&findings);
        checkup.findings.extend(findings.iter().map(ToString::to_string));
        let report = AuditLog::of(self.memory).read(&AuditFilter::default(), |_| {})?;
        if let Some((line, why)) = report.broken {
            checkup.findings.push(format!("the audit log is broken at line {line}: {why}"));
        }
        self.for_each_todo(|todo| {
            TodoCheck { memory: self.memory, todo, checkup: &mut checkup, refused: None }.run()
        })?;
        Ok((checkup, is_sound))
    }

    /// As [`verify`](Self::verify), and compares truth and indexes exhaustively.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub fn doctor(self) -> Result<Checkup, Error> {
        Ok(self.examine(false)?.0)
    }

    /// As [`doctor`](Self::doctor), and sets right what is derived: indexes, saved states of sessions
    /// that do not agree, and damaged counts of bytes and of secrets are made again from the truth, and files that no commit came to, grants of
    /// todos that are gone, and what killed backups have left, are removed. The findings are of before.
    ///
    /// Where the engine's own structures are damaged, nothing is set right, since writing could spread the damage; a
    /// finding says so.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), and when the memory can only be read.
    pub fn repair(self) -> Result<Checkup, Error> {
        self.check_writable()?;
        let (checkup, is_sound) = self.examine(true)?;
        if is_sound {
            self.sweep()?;
        }
        Ok(checkup)
    }

    /// What [`doctor`](Self::doctor) finds, set right with `repair`; and whether the engine's own structures are sound.
    fn examine(self, repair: bool) -> Result<(Checkup, bool), Error> {
        let (mut checkup, is_sound) = self.verified()?;
        if !is_sound {
            checkup.findings.push(UNSOUND.to_owned());
        }
        let repair = repair && is_sound;
        checkup.findings.extend(Embedding::of(self.memory).examine(repair)?);
        self.for_each_todo(|todo| {
            let mut find = |what: String| checkup.findings.push(format!("{}: {what}", todo.id()));
            match self.memory.blocks.doctor(todo, repair) {
                Ok(findings) => findings.iter().for_each(|found| find(found.to_string())),
                Err(error) => find(self.finding(error)?),
            }
            match self.memory.blocks.index_lag(todo) {
                Ok(lag) => checkup.index_lag += lag,
                Err(error) => find(error.to_string()),
            }
            checkup.graphs += u64::from(self.memory.blocks.has_graph(todo));
            if repair {
                self.repair_todo(todo, &mut checkup);
            }
            Ok(())
        })?;
        match self.memory.all_todos.examine(repair) {
            Ok(found) => checkup.findings.extend(found.iter().map(ToString::to_string)),
            Err(error) => checkup.findings.push(self.finding(error)?),
        }
        let left = self.memory.dir.as_deref().map(partial_copy::left_of).unwrap_or_default();
        checkup.findings.extend(left.iter().map(|folder| {
            format!("a backup was killed, and left a part of its copy in {}", folder.display())
        }));
        checkup.all_todos_lag = self.memory.all_todos.lag()?;
        Ok((checkup, is_sound))
    }

    /// What an error finds; a full disk ends the work, whatever it kept from being written.
    fn finding(self, error: impl Into<Error>) -> Result<String, Error> {
        let error = disk::named(self.memory.dir.as_deref(), error);
        if error.kind() == ErrorKind::Full { Err(error) } else { Ok(error.to_string()) }
    }

    /// Makes the saved state of a todo again where it does not agree with the records, and removes payload
    /// files that no commit came to.
    fn repair_todo(self, todo: &Todo, checkup: &mut Checkup) {
        let mut find = |what: String| checkup.findings.push(format!("{}: {what}", todo.id()));
        // Where it agrees, a writer that is at work is not disturbed.
        let rebuilt = match state_and_blocks(self.memory, todo) {
            Ok((live, last)) if live.blocks == last => Ok(false),
            _ => rebuild(self.memory, todo),
        };
        match rebuilt {
            Ok(false) => {}
            Ok(true) => find(REBUILT.to_owned()),
            Err(error) => find(format!("the saved state cannot be made again: {error}")),
        }
        for (what, repaired) in [
            ("the count of its bytes was", self.memory.repair_count(todo)),
            ("the numbers of its secrets were", self.memory.repair_numbers(todo)),
        ] {
            match repaired {
                Ok(false) => {}
                Ok(true) => find(format!("{what} made again from the messages")),
                Err(error) => find(format!("{what} not made again: {error}")),
            }
        }
        // Where a record is damaged, what it names is not known, and every file stays.
        if let Err(error) = self.memory.payloads.sweep(todo, ORPHAN_AGE, SystemTime::now()) {
            find(format!("no payload file is removed: {error}"));
        }
    }

    /// Removes what was left behind of todos that are gone.
    fn sweep(self) -> Result<(), Error> {
        let memory = self.memory;
        self.remove_left_copies()?;
        memory.sweep_grants()?;
        memory.blocks.sweep_forgotten()?;
        memory.payloads.sweep_forgotten(|no| {
            let next = memory.registry.list(no.saturating_sub(1), 1)?;
            Ok(next.first().is_some_and(|todo| todo.no() == no))
        })?;
        Ok(())
    }

    /// Lets every index that is far enough behind catch up with the truth now.
    ///
    /// # Errors
    /// When an index cannot be written, or the memory can only be read.
    pub fn index(self) -> Result<(), Error> {
        self.check_writable()?;
        let named = |error| disk::named(self.memory.dir.as_deref(), error);
        self.for_each_step(|todos| {
            todos.par_iter().try_for_each(|todo| {
                // Another thread or process may be at it; then this waits for its turn.
                while self.memory.blocks.maintain(todo)?.busy {
                    std::thread::sleep(TURN);
                }
                while self.memory.blocks.build_graph(todo)?.busy {
                    std::thread::sleep(TURN);
                }
                Ok(())
            })
        })
        .map_err(named)?;
        self.memory.index_all_todos(false, &mut |_, _| {}).map(drop).map_err(named)
    }

    /// The acknowledged writes that are gone, as every opening should ask: the log of the last ones may have been
    /// deleted or damaged since, and what is left looks whole.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn lost(self) -> Result<Option<Lost>, Error> {
        Ok(self.memory.kv.lost()?)
    }

    /// Takes what is there for all that there is, so that the store can be written again.
    /// [`repair`](Self::repair) it then: indexes may know more than the records.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn accept_loss(self) -> Result<(), Error> {
        Ok(self.memory.kv.accept_loss()?)
    }

    /// Returns unused space to the system.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn compact(self) -> Result<(), Error> {
        if let Err(error) = self.memory.kv.compact() {
            return Err(match &self.memory.dir {
                Some(store) => disk::named_of_compaction(store, error),
                None => error.into(),
            });
        }
        self.remove_left_copies()
    }

    /// Removes the copies of the store that killed backups have left, with whatever has been forgotten since.
    fn remove_left_copies(self) -> Result<(), Error> {
        self.memory.dir.as_deref().map_or(Ok(()), partial_copy::remove_left_of)
    }

    /// Writes what is there already. Whether the store takes that shows whether it would take anything.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn try_to_write(self) -> Result<(), Error> {
        write_again(self.memory.kv.as_ref())
    }

    /// Refuses a memory that can only be read, before anything outside of its records is touched.
    fn check_writable(self) -> Result<(), Error> {
        self.memory.kv.commit(Batch::default())?;
        match self.memory.kv.lost()? {
            // What is left of the lost writes is still there: in payload files and in indexes that are ahead.
            Some(lost) => {
                let path = self.memory.dir.clone().unwrap_or_default();
                Err(KvError::Lost { path, lost }.into())
            }
            None => Ok(()),
        }
    }

    fn for_each_todo(self, mut visit: impl FnMut(&Todo) -> Result<(), Error>) -> Result<(), Error> {
        self.for_each_step(|todos| todos.iter().try_for_each(&mut visit))
    }

    /// Hands over the todos, some at a time.
    fn for_each_step(
        self,
        mut visit: impl FnMut(&[Todo]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let list = |limit| self.memory.registry.list(after, limit);
            let todos = match list(STEP).or_else(|_| list(1)) {
                Ok(todos) => todos,
                // `verify` has named the record; the todos behind it are walked all the same.
                Err(KvError::Corrupt { key, .. }) => {
                    after = u32::try_from(key.n).unwrap_or(u32::MAX);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let Some(last) = todos.last() else { return Ok(()) };
            after = last.no();
            visit(&todos)?;
        }
    }
}

impl Shared {
    /// Lets the index over all todos catch up, and waits for its turn where another is at it.
    pub(crate) fn index_all_todos(
        &self,
        is_forced: bool,
        report: &mut dyn FnMut(u64, u64),
    ) -> Result<CaughtUp, Error> {
        loop {
            let done = self.all_todos.catch_up(is_forced, &mut *report)?;
            if !done.busy {
                return Ok(done);
            }
            std::thread::sleep(TURN);
        }
    }
}

#[cfg(test)]
mod tests;
