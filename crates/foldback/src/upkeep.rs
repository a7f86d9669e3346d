//! Checking a store, repairing what is derived, returning space, copying, forgetting.

use crate::live::Live;
use crate::memory::Shared;
use crate::rebuild::rebuild;
use crate::{Error, Memory, grants, texts};
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::Error as BlockError;
use foldback_core::{SeqNo, TodoId};
use foldback_kv::{Batch, Delete, Error as KvError, Space, Todo};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, SystemTime};

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

impl Memory {
    /// Checks every hash and rebuilds every message: that each record is whole, that numbers have
    /// no gap, that blocks and open tail are the transcript, that every payload has its content.
    ///
    /// # Errors
    /// When the store cannot be read at all; damage is a finding.
    pub fn verify(&self) -> Result<Checkup, Error> {
        let mut checkup = Checkup::default();
        let findings = self.shared.kv.check()?;
        checkup.findings.extend(findings.iter().map(ToString::to_string));
        self.for_each_todo(|todo| self.verify_todo(todo, &mut checkup))?;
        Ok(checkup)
    }

    /// As [`verify`](Self::verify), and compares truth and indexes exhaustively; with `repair`,
    /// indexes and saved states of sessions that do not agree are made again from the truth, and
    /// files that no commit came to, and grants of todos that are gone, are removed.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), and of a memory that can only be read with `repair`.
    pub fn doctor(&self, repair: bool) -> Result<Checkup, Error> {
        if repair {
            self.check_writable()?;
        }
        let mut checkup = self.verify()?;
        checkup.findings.extend(self.examine_vectors(repair)?);
        self.for_each_todo(|todo| {
            let mut find = |what: String| checkup.findings.push(format!("{}: {what}", todo.id()));
            match self.shared.blocks.doctor(todo, repair) {
                Ok(findings) => findings.iter().for_each(|found| find(found.to_string())),
                Err(error) => find(error.to_string()),
            }
            match self.shared.blocks.index_lag(todo) {
                Ok(lag) => checkup.index_lag += lag,
                Err(error) => find(error.to_string()),
            }
            if repair {
                // Where it agrees, a writer that is at work is not disturbed.
                let rebuilt = match state_and_blocks(&self.shared, todo) {
                    Ok((live, last)) if live.blocks == last => Ok(false),
                    _ => rebuild(&self.shared, todo),
                };
                match rebuilt {
                    Ok(false) => {}
                    Ok(true) => find(REBUILT.to_owned()),
                    Err(error) => find(format!("the saved state cannot be made again: {error}")),
                }
                // Where a record is damaged, what it names is not known, and every file stays.
                let swept = self.shared.payloads.sweep(todo, ORPHAN_AGE, SystemTime::now());
                if let Err(error) = swept {
                    let todo = todo.id();
                    checkup.findings.push(format!("{todo}: no payload file is removed: {error}"));
                }
            }
            Ok(())
        })?;
        if repair {
            self.shared.sweep_grants()?;
            self.shared.blocks.sweep_forgotten()?;
            self.shared.payloads.sweep_forgotten(|no| {
                let next = self.shared.registry.list(no.saturating_sub(1), 1)?;
                Ok(next.first().is_some_and(|todo| todo.no() == no))
            })?;
        }
        Ok(checkup)
    }

    /// Lets every index that is far enough behind catch up with the truth now.
    ///
    /// # Errors
    /// When an index cannot be written, or the memory can only be read.
    pub fn index_now(&self) -> Result<(), Error> {
        self.check_writable()?;
        self.for_each_todo(|todo| {
            // Another thread or process may be at it; then this waits for its turn.
            while self.shared.blocks.maintain(todo)?.busy {
                std::thread::sleep(TURN);
            }
            while self.shared.blocks.build_graph(todo)?.busy {
                std::thread::sleep(TURN);
            }
            Ok(())
        })
    }

    /// Returns unused space to the system.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn compact(&self) -> Result<(), Error> {
        Ok(self.shared.kv.compact()?)
    }

    /// Writes a consistent copy of the store into `dir`, which must be empty or new. Others may
    /// go on writing meanwhile; the copy is of one moment. Indexes are not copied: they come back
    /// by themselves.
    ///
    /// Only a todo that is forgotten meanwhile may be there by half: its records, and not the files
    /// of its large payloads. `verify` of the copy names those; forget the todo there too.
    ///
    /// # Errors
    /// When a file cannot be written; then `dir` holds no store that opens.
    pub fn backup(&self, dir: &Path) -> Result<(), Error> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| Error::Kv(KvError::Io { doing, path, source })
        };
        if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Error::Kv(KvError::NotEmpty { path: dir.to_owned() }));
        }
        // The copy gets its name when it is whole.
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let partial = dir.with_file_name(format!(".{name}.partial-{}", std::process::id()));
        let copied = self.copy_into(&partial).and_then(|()| {
            std::fs::rename(&partial, dir).map_err(failed("finish the backup in", dir))
        });
        if copied.is_err() {
            // What is left of a failed copy is of no use; that it cannot be removed is no news.
            drop(std::fs::remove_dir_all(&partial));
        }
        copied?;
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let synced = std::fs::File::open(parent).and_then(|folder| folder.sync_all());
        synced.map_err(failed("make durable", parent))
    }

    fn copy_into(&self, dir: &Path) -> Result<(), Error> {
        self.shared.kv.backup(dir)?;
        // Payload files never change, and each is there before the record that names it and until
        // that is gone: copied after the records, none is missing.
        self.shared.payloads.backup(&dir.join("payloads"))?;
        Ok(())
    }

    /// Deletes a todo for good: its messages, blocks, vectors, payloads, indexes, todo list, the
    /// grants that it gave and received, and its name. No
    /// search finds it from the moment this returns; `compact` takes its bytes from the files.
    ///
    /// # Errors
    /// When there is no such todo, the store fails, or can only be read; then everything is still
    /// there. When only files could not be removed, of payloads or indexes, the todo is gone all the
    /// same, and a repairing [`doctor`](Self::doctor) removes them.
    pub fn forget(&self, id: &TodoId) -> Result<(), Error> {
        let todo = self.find(id)?;
        let mut delete = self.shared.blocks.forget(&todo);
        delete.extend(self.shared.payloads.forget(&todo));
        delete.extend(grants::of_todo(&self.shared, todo.no())?);
        delete.push(Delete::todo(Space::Plan, todo.no()));
        self.shared.registry.remove(&todo, delete)?;
        // From here on nothing new is granted; what was granted meanwhile goes now.
        let grants = self.shared.sweep_forgotten_grants(todo.no());
        // Files go last: until the records are gone, they are needed. Each kind is removed whatever
        // becomes of the others.
        let payloads = self.shared.payloads.remove_files(&todo);
        let indexes = self.shared.blocks.remove_index(&todo);
        grants?;
        payloads?;
        Ok(indexes?)
    }

    /// Refuses a memory that can only be read, before anything outside of its records is touched.
    fn check_writable(&self) -> Result<(), Error> {
        Ok(self.shared.kv.commit(Batch::default())?)
    }

    fn for_each_todo(
        &self,
        mut visit: impl FnMut(&Todo) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let list = |limit| self.shared.registry.list(after, limit);
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
            todos.iter().try_for_each(&mut visit)?;
        }
    }

    fn verify_todo(&self, todo: &Todo, checkup: &mut Checkup) -> Result<(), Error> {
        let shared = &self.shared;
        checkup.todos += 1;
        let mut find = |what: String| checkup.findings.push(format!("{}: {what}", todo.id()));
        // What is written meanwhile is left for the next time: first is seen how far everything
        // goes, the blocks before the messages that they are of.
        let ends = last_block(shared, todo).and_then(|last| Ok((last, shared.blocks.head(todo)?)));
        let (end, len) = match ends {
            Ok((end, head)) => (end, head.messages),
            Err(error) => {
                find(error.to_string());
                return Ok(());
            }
        };
        for seq in 0..len {
            let found = shared.blocks.messages(todo, seq..seq + 1).map_err(Error::from);
            let rebuilt = found.and_then(|stored| match stored.first() {
                Some(stored) => texts::fill(shared, todo, SeqNo(seq), stored, 0).map(drop),
                None => Err(Error::NoMessage { todo: todo.id().clone(), seq: SeqNo(seq), len }),
            });
            match rebuilt {
                // Named once below, however many messages need the payload.
                Ok(()) | Err(Error::Payloads(PayloadError::Corrupt { .. })) => {}
                Err(error) => find(error.to_string()),
            }
        }
        match self.envelope(todo.id()) {
            // A damaged record is in the engine's own findings.
            Ok(_) | Err(Error::Kv(_)) => {}
            Err(error) => find(error.to_string()),
        }
        checkup.messages += len;
        let mut after = 0;
        let mut next = 0;
        while after < end {
            let limit = STEP.min((end - after) as usize);
            let blocks = match shared.blocks.blocks(todo, after, limit) {
                Ok(blocks) => blocks,
                Err(error) => {
                    checkup.findings.push(format!("{}: {error}", todo.id()));
                    break;
                }
            };
            let Some(last) = blocks.last() else { break };
            after = last.header.block_id.n();
            for block in &blocks {
                let (first, id) = (block.range.first().0, &block.header.block_id);
                if first != next {
                    checkup.findings.push(format!(
                        "{}: block {id} begins at message {first}, and the one before ends at {next}",
                        todo.id()
                    ));
                }
                next = block.range.last().0 + 1;
                checkup.blocks += 1;
            }
        }
        if next > len {
            let todo = todo.id();
            checkup.findings.push(format!("{todo}: the last block ends behind the last message"));
        }
        checkup.tail += len.saturating_sub(next);
        match state_and_blocks(shared, todo) {
            Ok((live, last)) if live.blocks == last => {}
            Ok((live, last)) => checkup.findings.push(format!(
                "{}: the saved state is of {} blocks, and there are {last}",
                todo.id(),
                live.blocks
            )),
            Err(error) => checkup.findings.push(format!("{}: {error}", todo.id())),
        }
        let mut after = 0;
        loop {
            let metas = match shared.payloads.metas(todo, after, STEP) {
                Ok(metas) => metas,
                Err(error) => {
                    checkup.findings.push(format!("{}: {error}", todo.id()));
                    break;
                }
            };
            let Some(last) = metas.last() else { break };
            after = last.n;
            checkup.payloads += metas.len() as u64;
        }
        match shared.payloads.verify(todo) {
            Ok(findings) => {
                for found in findings {
                    // A damaged record is in the engine's own findings, without the todo's name.
                    checkup.findings.retain(|known| *known != found.what);
                    checkup.findings.push(format!("{}: {found}", todo.id()));
                }
            }
            Err(error) => checkup.findings.push(format!("{}: {error}", todo.id())),
        }
        Ok(())
    }
}

/// The saved state of a todo and the number of its last block, both of one moment where they differ.
fn state_and_blocks(memory: &Shared, todo: &Todo) -> Result<(Live, u32), Error> {
    loop {
        let live = Live::load(memory, todo)?;
        let last = last_block(memory, todo)?;
        if live.blocks == last || memory.blocks.head(todo)? == live.head {
            return Ok((live, last));
        }
    }
}

/// The number of a todo's last block, damaged or not; 0 for none.
fn last_block(memory: &Shared, todo: &Todo) -> Result<u32, Error> {
    match memory.blocks.last_block(todo) {
        Ok(last) => Ok(last.map_or(0, |block| block.header.block_id.n())),
        Err(BlockError::Corrupt { key, .. }) => Ok(u32::try_from(key.n).unwrap_or(u32::MAX)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Close, Options};
    use foldback_core::{Message, ToolCall, ToolCallId};
    use foldback_kv::{Key, Mode};
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A result that is large enough for a file of its own.
    fn result(n: usize) -> String {
        (0..9_000).map(|line| format!("row {line} of table {n}: {}\n", line * 7919 + n)).collect()
    }

    fn exchange(n: usize) -> [Message; 3] {
        let id = format!("call_{n}");
        [
            Message::user(&format!("Read table {n}.")),
            Message::calls("", vec![ToolCall::new(&id, "read_table", "{}")]),
            Message::tool_result(&ToolCallId::new(&id), &result(n)),
        ]
    }

    fn open(dir: &Path, mode: Mode) -> Memory {
        Memory::open(dir, Options { mode, ..Options::default() }).unwrap()
    }

    fn record(memory: &Memory, id: &TodoId, n: usize) {
        memory.session(id).unwrap().record_all(exchange(n).to_vec()).unwrap();
    }

    /// The payload files of a store, by path.
    fn files(dir: &Path) -> Vec<std::path::PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![dir.join("payloads")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else if entry.file_name() != "lock" {
                    found.push(entry.path());
                }
            }
        }
        found
    }

    #[test]
    fn bs6_a_damaged_payload_record_is_one_finding_and_the_rest_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let id = TodoId::new("tables").unwrap();
        let memory = open(dir.path(), Mode::ReadWrite);
        (0..3).for_each(|n| record(&memory, &id, n));
        let todo = memory.find(&id).unwrap();
        assert!(memory.verify().unwrap().is_clean());
        let key = Key { space: Space::Payload, todo: todo.no(), n: 1 };
        let value = memory.shared.kv.get(key).unwrap().unwrap();
        let third = memory.shared.payloads.meta(&todo, 3).unwrap().hash;
        drop(memory);
        let file = dir.path().join("store.sqlite");
        let mut bytes = fs::read(&file).unwrap();
        let at = bytes.windows(value.len()).position(|window| window == value).unwrap();
        bytes[at + value.len() / 2] ^= 1;
        fs::write(&file, bytes).unwrap();
        let third: String = third.iter().map(|byte| format!("{byte:02x}")).collect();
        let third = files(dir.path()).into_iter().find(|path| path.ends_with(&third)).unwrap();
        fs::remove_file(third).unwrap();

        let memory = open(dir.path(), Mode::ReadWrite);
        let checkup = memory.verify().unwrap();
        assert_eq!((checkup.todos, checkup.messages), (1, 9));
        assert_eq!(checkup.findings.len(), 2, "{:?}", checkup.findings);
        assert!(checkup.findings[0].starts_with("tables: payload 1: the record payload 1/1"));
        assert_eq!(checkup.findings[1], "tables: payload 3: its file is missing");
        // A doctor gets to its end too, and takes no file whose record cannot be read.
        let before = files(dir.path());
        assert_eq!(memory.doctor(false).unwrap().findings, checkup.findings);
        let repaired = memory.doctor(true).unwrap().findings;
        assert_eq!(repaired[..2], checkup.findings);
        assert!(repaired[2].starts_with("tables: no payload file is removed: "), "{repaired:?}");
        assert_eq!(files(dir.path()), before);
    }

    /// Options under which every block is indexed on disk at once.
    fn eager(mode: Mode) -> Options {
        let mut options = Options { mode, ..Options::default() };
        options.index.index_after_blocks = 0;
        options.index.batch_blocks = 1;
        options.index.hnsw_after_vectors = 1;
        options
    }

    /// Every file below a folder and what it holds, but for locks.
    fn contents(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                found.extend(contents(&entry.path()));
            } else {
                found.push((entry.path(), fs::read(entry.path()).unwrap()));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn s9_a_todo_that_could_not_be_forgotten_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let id = TodoId::new("tables").unwrap();
        let memory = Memory::open(dir.path(), eager(Mode::ReadWrite)).unwrap();
        record(&memory, &id, 0);
        memory.session(&id).unwrap().close(Close::End).unwrap();
        memory.index_now().unwrap();
        drop(memory);
        let index = dir.path().join("index");
        let before = contents(&index);
        assert!(index.join("1/tantivy/meta.json").exists());
        // A store that can only be read keeps its indexes as they are, whatever is asked of it.
        let reader = Memory::open(dir.path(), eager(Mode::ReadOnly)).unwrap();
        let refused = |done| matches!(done, Err(Error::Kv(KvError::ReadOnly { .. })));
        assert!(refused(reader.forget(&id)));
        assert!(refused(reader.index_now()));
        assert!(refused(reader.doctor(true).map(drop)));
        assert!(contents(&index) == before, "the index is another one");
        assert_eq!(reader.doctor(false).unwrap().findings, Vec::<String>::new());
        drop(reader);

        let memory = open(dir.path(), Mode::ReadWrite);
        assert_eq!(files(dir.path()).len(), 1);
        memory.forget(&id).unwrap();
        assert_eq!(files(dir.path()).len(), 0);
        assert_eq!(contents(&index), []);
        assert!(matches!(memory.find(&id), Err(Error::NoTodo(_))));
    }

    /// What is written and indexed while a check looks is no finding.
    #[test]
    fn a_check_beside_a_busy_writer_has_no_findings() {
        let dir = tempfile::tempdir().unwrap();
        let id = TodoId::new("busy").unwrap();
        let memory = Memory::open(dir.path(), eager(Mode::ReadWrite)).unwrap();
        let checker = Memory::open(dir.path(), eager(Mode::ReadWrite)).unwrap();
        record(&memory, &id, 0);
        let stop = AtomicBool::new(false);
        let mut found = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut session = memory.session(&id).unwrap();
                for n in 1.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let text = format!("Entry {n} of the log, 第{n}条。");
                    session.record_all(vec![Message::user(&text)]).unwrap();
                    session.record_all(vec![Message::assistant("Noted.")]).unwrap();
                    session.close(Close::End).unwrap();
                }
            });
            let (mut turn, mut blocks) = (0, 0);
            while turn < 20 || blocks < 60 {
                turn += 1;
                let checkup = checker.doctor(turn % 4 == 0).unwrap();
                blocks = checkup.blocks;
                found.extend(checkup.findings);
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(found, Vec::<String>::new());
    }
}
