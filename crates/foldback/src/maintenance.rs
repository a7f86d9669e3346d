//! Checks a store, repairs what is derived, returns space, copies and forgets.

mod backup;
mod forget;
mod partial_copy;
mod rebuild;
mod verify;

use crate::audit::{AuditFilter, AuditLog};
use crate::embedding::Embedding;
use crate::memory::Shared;
use crate::secret::write_again;
use crate::{Error, ErrorKind, Memory, Quota, disk, quota};
use foldback_blockstore::CaughtUp;
use foldback_kv::{Batch, Error as KvError, Lost, Todo, is_sound};
use rayon::prelude::*;
use rebuild::rebuild;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
pub(crate) use verify::last_block;
use verify::{TodoCheck, state_and_blocks};

/// Todos and messages are walked in steps of this many.
const STEP: usize = 512;

/// A payload file without a record is an orphan once it is this old; a younger one may belong to a
/// write in progress.
const ORPHAN_AGE: Duration = Duration::from_secs(3_600);

/// How long to wait while another thread or process works on an index.
const TURN: Duration = Duration::from_millis(10);

/// The finding about a state that was rebuilt.
const REBUILT: &str = "the saved state was rebuilt from the messages; messages that were pinned \
    by hand are no longer pinned";

/// The finding if the engine's own structures are damaged.
const UNSOUND: &str = "the structures of the database are damaged, so nothing in the store is repaired: writing could \
    spread the damage. Restore a backup, or export what can be read (`foldback export --lenient`) and import it \
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
    pub(crate) memory: &'a Arc<Shared>,
}

impl Memory {
    /// Returns the upkeep of the store.
    #[must_use]
    pub fn maintenance(&self) -> Maintenance<'_> {
        Maintenance { memory: &self.shared }
    }
}

/// The result of a check of the whole store.
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
    /// How many blocks the indexes are behind the records. That is no fault: those blocks are searched in the records.
    pub index_lag: u64,
    /// How many todos have a graph over the vectors of their index.
    pub graphs: u64,
    /// How many blocks the index over all todos is behind, if that is enough to be worth a volume.
    /// That is no fault either.
    pub all_todos_lag: u64,
    /// How many messages are open after the last blocks.
    pub tail: u64,
}

impl Checkup {
    /// Returns whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
impl Maintenance<'_> {
    /// Checks every hash and rebuilds every message. Each record must be intact, numbers must have no gap, blocks
    /// and open tail must be the transcript, every payload must have its content, and nothing may have been
    /// changed in the audit log.
    ///
    /// # Errors
    /// When the store cannot be read at all; damage is a finding.
    pub fn verify(self) -> Result<Checkup, Error> {
        Ok(self.verified()?.0)
    }

    /// Returns whether the engine's own structures are sound. If they are not, a write may damage what is still
    /// intact, and a memory that is open for writing writes on its own; so call this on one that is open read-only.
    ///
    /// # Errors
    /// When the store cannot be read at all.
    pub fn is_sound(self) -> Result<bool, Error> {
        Ok(is_sound(&self.memory.kv.check()?))
    }

    /// Returns the result of [`verify`](Self::verify), and whether the engine's own structures are sound.
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

    /// Checks as [`verify`](Self::verify) does, and also compares records and indexes exhaustively.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub fn doctor(self) -> Result<Checkup, Error> {
        Ok(self.examine(false)?.0)
    }

    /// Checks as [`doctor`](Self::doctor) does, and repairs what is derived. Indexes, inconsistent saved states of
    /// sessions, and damaged counts of bytes and of secrets are rebuilt from the records. Files that no commit refers
    /// to, grants of todos that are gone, and the remains of killed backups are removed. The findings describe the
    /// store before the repair.
    ///
    /// If the engine's own structures are damaged, nothing is repaired, since writing could spread the damage; a
    /// finding says so.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), and when the memory is read-only.
    pub fn repair(self) -> Result<Checkup, Error> {
        self.check_writable()?;
        let (checkup, is_sound) = self.examine(true)?;
        if is_sound {
            self.sweep()?;
        }
        Ok(checkup)
    }

    /// Returns the findings of [`doctor`](Self::doctor), repaired with `repair`; and whether the engine's own
    /// structures are sound.
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
            format!("a backup was killed and left an incomplete copy in {}", folder.display())
        }));
        checkup.all_todos_lag = self.memory.all_todos.lag()?;
        Ok((checkup, is_sound))
    }

    /// Turns an error into a finding; a full disk ends the work, whatever could not be written.
    fn finding(self, error: impl Into<Error>) -> Result<String, Error> {
        let error = disk::named(self.memory.dir.as_deref(), error);
        if error.kind() == ErrorKind::Full { Err(error) } else { Ok(error.to_string()) }
    }

    /// Rebuilds the saved state of a todo if it does not agree with the records, and removes payload files
    /// that no commit refers to.
    fn repair_todo(self, todo: &Todo, checkup: &mut Checkup) {
        let mut find = |what: String| checkup.findings.push(format!("{}: {what}", todo.id()));
        // If it agrees, an active writer is not disturbed.
        let rebuilt = match state_and_blocks(self.memory, todo) {
            Ok((live, last)) if live.blocks == last => Ok(false),
            _ => rebuild(self.memory, todo),
        };
        match rebuilt {
            Ok(false) => {}
            Ok(true) => find(REBUILT.to_owned()),
            Err(error) => find(format!("the saved state cannot be rebuilt: {error}")),
        }
        for (what, repaired) in [
            ("the count of its bytes was", self.memory.repair_count(todo)),
            ("the numbers of its secrets were", self.memory.repair_numbers(todo)),
        ] {
            match repaired {
                Ok(false) => {}
                Ok(true) => find(format!("{what} rebuilt from the messages")),
                Err(error) => find(format!("{what} not rebuilt: {error}")),
            }
        }
        // If a record is damaged, the files that it names are not known, and every file stays.
        if let Err(error) = self.memory.payloads.sweep(todo, ORPHAN_AGE, SystemTime::now()) {
            find(format!("no payload file is removed: {error}"));
        }
    }

    /// Removes what was left behind by todos that are gone.
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

    /// Brings every index that is far enough behind up to date with the records now.
    ///
    /// # Errors
    /// When an index cannot be written, or the memory is read-only.
    pub fn index(self) -> Result<(), Error> {
        self.check_writable()?;
        let named = |error| disk::named(self.memory.dir.as_deref(), error);
        self.for_each_step(|todos| {
            todos.par_iter().try_for_each(|todo| {
                // Another thread or process may be doing it; then this waits for its turn.
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

    /// Returns the acknowledged writes that are gone. Every caller should ask after opening: the log of the last
    /// writes may have been deleted or damaged since, and what is left looks intact.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn lost(self) -> Result<Option<Lost>, Error> {
        Ok(self.memory.kv.lost()?)
    }

    /// Accepts what is there as complete, so that the store can be written again. Then
    /// [`repair`](Self::repair) it: indexes may be ahead of the records.
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

    /// Removes the copies of the store that killed backups have left, which may hold what has been forgotten since.
    fn remove_left_copies(self) -> Result<(), Error> {
        self.memory.dir.as_deref().map_or(Ok(()), partial_copy::remove_left_of)
    }

    /// Gives the store limits of its own. They hold for each memory that is opened from now on, together with its
    /// [options'](crate::Options::quota): the stricter ones count.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn set_quota(self, quota: &Quota) -> Result<(), Error> {
        quota::set_of_store(self.memory.kv.as_ref(), quota)
    }

    /// Returns the limits that the store [has itself](Self::set_quota).
    ///
    /// # Errors
    /// When the store fails, or the record of them is damaged.
    pub fn quota(self) -> Result<Quota, Error> {
        quota::of_store(self.memory.kv.as_ref())
    }

    /// Writes what is already there. Whether the store accepts that shows whether it would accept anything.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn try_to_write(self) -> Result<(), Error> {
        write_again(self.memory.kv.as_ref())
    }

    /// Refuses a read-only memory before anything outside its records is touched.
    fn check_writable(self) -> Result<(), Error> {
        self.memory.kv.commit(Batch::default())?;
        match self.memory.kv.lost()? {
            // The remains of the lost writes are still there: in payload files and in indexes that are ahead.
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

    /// Passes on the todos, some at a time.
    fn for_each_step(
        self,
        mut visit: impl FnMut(&[Todo]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let list = |limit| self.memory.registry.list(after, limit);
            let todos = match list(STEP).or_else(|_| list(1)) {
                Ok(todos) => todos,
                // `verify` has reported the record; the todos after it are walked all the same.
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
    /// Brings the index over all todos up to date, and waits for its turn if another is doing so.
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
