//! A small store with something of every kind in it, and all that can be read of it.

use foldback::kv::{Batch, Engine, Expect, Key, Kv, Mode, Space};
use foldback::{Close, ErrorKind, KNOWN_SECRET, Memory, Options};
use foldback_core::{Budget, Message, Timestamp, TodoId, ToolCall, ToolCallId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

/// The todos of the store.
pub const TODOS: [&str; 2] = ["harbour", "lock"];

/// Options under which a small todo has an index on disk, and a graph, and two runs are alike.
#[must_use]
pub fn options() -> Options {
    let mut options =
        Options::default().with_clock(|| Timestamp(1_700_000_000_000)).with_secret(KNOWN_SECRET);
    options.index.index_after_blocks = 4;
    options.index.batch_blocks = 1;
    options.index.hnsw_after_vectors = 8;
    options
}

/// Fills a memory: messages, blocks, vectors, payloads in records and in files, indexes and graphs.
pub fn fill(memory: &Memory) {
    for (todo, count) in TODOS.into_iter().zip([16, 6]) {
        let id = TodoId::new(todo).expect("an id");
        let mut session = memory.session(&id).expect("a session");
        for n in 0..count {
            // A file of its own, a record of its own, and part of the message. The file has few words in its lines, since
            // every word is analysed again at each reading of the store.
            let (lines, dashes) = match n % 8 {
                0 => (180, 400),
                3 => (200, 0),
                _ => (1, 0),
            };
            let (metres, dashes) = (n % 7, "-".repeat(dashes));
            let line = format!(
                "marker{n} of {todo}: the tide at quay {n} rises {metres}.{n} m, 潮汐{dashes}\n"
            );
            let call = format!("c{n}");
            let messages = vec![
                Message::user(&format!("How high is the tide at quay {n} of {todo}?")),
                Message::calls("", vec![ToolCall::new(&call, "read", "{\"path\": \"tide.txt\"}")]),
                Message::tool_result(&ToolCallId::new(&call), &line.repeat(lines)),
                Message::assistant(&format!("At quay {n} it rises {}.{n} m.", n % 7)),
            ];
            session.record_all(messages).expect("recorded");
        }
        session.close(Close::End).expect("closed");
        session.record(Message::user("And tomorrow?")).expect("recorded");
    }
    memory.maintenance().index().expect("indexed");
}

/// A store whose records are in memory, and whose files are in a folder.
pub struct SoundStore {
    /// Its payload files and indexes.
    pub dir: TempDir,
    /// Every record.
    pub records: Vec<(Key, Vec<u8>)>,
    heads: Vec<(u32, u64)>,
    /// What is read of it.
    pub readings: Readings,
}

/// The store, made once in a process.
///
/// # Panics
/// Where it cannot be made.
pub fn sound_store() -> &'static SoundStore {
    static STORE: OnceLock<SoundStore> = OnceLock::new();
    STORE.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a folder");
        let kv = foldback::kv::memory();
        let memory = Memory::open_on(kv.clone(), Some(dir.path()), options()).expect("a store");
        fill(&memory);
        drop(memory);
        let heads = kv.heads(0..Key::TODO_END).expect("the heads");
        let mut records = Vec::new();
        let known = heads.iter().map(|(todo, _)| *todo);
        // Names stand under a hash of them, everything else under the todo's number.
        let names = TODOS.map(|todo| (xxhash_rust::xxh3::xxh3_64(todo.as_bytes()) >> 33) as u32);
        for todo in [0].into_iter().chain(known).chain(names) {
            for space in Space::ALL {
                let found = kv.scan(space, todo, 0..Key::N_END, usize::MAX).expect("records");
                records.extend(found.into_iter().map(|(n, value)| (Key { space, todo, n }, value)));
            }
        }
        records.sort_by_key(|(key, _)| *key);
        records.dedup_by_key(|(key, _)| *key);
        let mut store = SoundStore { dir, records, heads, readings: Readings::default() };
        store.readings = Readings::of(&store.open(&[], store.dir.path()));
        assert!(store.readings.errors.is_empty(), "{:?}", store.readings.errors);
        store
    })
}

impl SoundStore {
    /// A copy of its records with other values for these keys, or none; whose todos are as far as they were.
    ///
    /// # Panics
    /// Where a key is out of range.
    #[must_use]
    pub fn kv(&self, changes: &[(Key, Option<Vec<u8>>)]) -> Arc<dyn Kv> {
        let kv = foldback::kv::memory();
        // The registry's last: a todo without a head whose number was given out counts as forgotten.
        for &(todo, head) in self.heads.iter().rev() {
            self.set_head(kv.as_ref(), todo, 0, head);
        }
        let is_changed = |key: &Key| changes.iter().any(|(changed, _)| changed == key);
        let mut put: Vec<_> =
            self.records.iter().filter(|(key, _)| !is_changed(key)).cloned().collect();
        put.extend(changes.iter().filter_map(|(key, value)| Some((*key, value.clone()?))));
        kv.commit(Batch { put, ..Batch::default() }).expect("the records");
        kv
    }

    /// How far a todo is, by its number in the store.
    ///
    /// # Panics
    /// Where there is none of that number.
    #[must_use]
    pub fn head(&self, todo: u32) -> u64 {
        self.heads.iter().find(|(no, _)| *no == todo).expect("a todo").1
    }

    /// Moves the head of a todo.
    ///
    /// # Panics
    /// Where it is another one.
    pub fn set_head(&self, kv: &dyn Kv, todo: u32, head: u64, next: u64) {
        let expect = Some(Expect { todo, head, next });
        kv.commit(Batch { expect, ..Batch::default() }).expect("the head");
    }

    /// A memory on a copy of its records, with other values for these keys, and on the files in a folder.
    ///
    /// # Panics
    /// Where the changes are such that no store is there.
    #[must_use]
    pub fn open(&self, changes: &[(Key, Option<Vec<u8>>)], dir: &Path) -> Memory {
        Self::open_kv(self.kv(changes), dir).expect("the store opens")
    }

    /// A memory on these records and the files in a folder, which are left as they are.
    ///
    /// # Errors
    /// As [`Memory::open_on`].
    pub fn open_kv(kv: Arc<dyn Kv>, dir: &Path) -> Result<Memory, foldback::Error> {
        Memory::open_on(kv, Some(dir), options().with_mode(Mode::ReadOnly))
    }

    /// The records of a space.
    #[must_use]
    pub fn of(&self, space: Space) -> Vec<&(Key, Vec<u8>)> {
        self.records.iter().filter(|(key, _)| key.space == space).collect()
    }
}

/// A store of the default engine on disk, made in a folder.
///
/// # Panics
/// Where it cannot be made.
pub fn on_disk(dir: &Path) -> Readings {
    let memory = Memory::open(dir, options().with_engine(Engine::Sqlite)).expect("a store");
    fill(&memory);
    Readings::of(&memory)
}

/// The files below a folder, in order.
#[must_use]
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// All that can be read of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// What is one thing or an error, whatever else is damaged: messages, blocks, payloads.
    pub exact: BTreeMap<String, String>,
    /// What is put together of much: searches, lists, prompts.
    pub composed: BTreeMap<String, String>,
    /// What was refused, and why.
    pub errors: BTreeMap<String, (ErrorKind, String)>,
}

impl Readings {
    /// Reads a store in every way.
    ///
    /// # Panics
    /// Where an error is one that should be impossible.
    #[must_use]
    pub fn of(memory: &Memory) -> Self {
        let mut read = Self::default();
        read.exact("todos".to_owned(), memory.todos(None, 100).map(|ids| format!("{ids:?}")));
        for todo in TODOS {
            let id = TodoId::new(todo).expect("an id");
            read.todo(memory, &id);
        }
        read
    }

    fn todo(&mut self, memory: &Memory, id: &TodoId) {
        let length = memory.len(id).unwrap_or(0);
        self.exact(format!("{id} length"), memory.len(id).map(|length| length.to_string()));
        for n in 0..length.min(200) {
            let message = memory.messages(id, n..n + 1);
            let json = message.map(|found| found.iter().map(|m| m.json()).collect::<String>());
            self.exact(format!("{id} message {n}"), json);
        }
        for n in 1..=40 {
            let block = foldback_core::BlockId::new(id.clone(), n);
            match memory.block(id, &block) {
                Ok(None) => {}
                found => {
                    self.exact(format!("{id} block {n}"), found.map(|found| format!("{found:?}")));
                }
            }
        }
        if let Ok(todo) = memory.find(id) {
            let payloads = memory.payloads();
            for n in 1..=12 {
                match payloads.get(&todo, n) {
                    Err(foldback_backend_store::Error::NotFound { .. }) => {}
                    Ok(bytes) => {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        self.exact.insert(format!("{id} payload {n}"), text);
                    }
                    Err(error) => {
                        let error = (ErrorKind::Corrupt, error.to_string());
                        self.errors.insert(format!("{id} payload {n}"), error);
                    }
                }
            }
        }
        let export = memory.conversations().export(id);
        self.composed(format!("{id} export"), export.map(|export| export.to_json_line()));
        for (tool, arguments) in [
            ("search_block", r#"{"query": "marker7 quay 潮汐", "k": 5}"#),
            ("search_block", r#"{"query": "how high is the tide tomorrow"}"#),
            ("list_blocks", "{}"),
            ("load", r#"{"ref": "b_001"}"#),
        ] {
            let answer = memory.recall(id, tool, arguments);
            self.composed(format!("{id} {tool} {arguments}"), answer.map(|answer| answer.text));
        }
        // Reads of a todo that is not there must not make it.
        if memory.find(id).is_ok() {
            let prompt = memory.session(id).map(|session| session.prompt(&Budget::default()));
            let prompt = prompt.map(|prompt| {
                prompt.messages.iter().map(|message| message.api_json()).collect::<String>()
            });
            self.composed(format!("{id} prompt"), prompt);
        }
    }

    fn exact(&mut self, key: String, read: Result<String, foldback::Error>) {
        match read {
            Ok(read) => drop(self.exact.insert(key, read)),
            Err(error) => self.error(key, &error),
        }
    }

    fn composed(&mut self, key: String, read: Result<String, foldback::Error>) {
        match read {
            Ok(read) => drop(self.composed.insert(key, read)),
            Err(error) => self.error(key, &error),
        }
    }

    fn error(&mut self, key: String, error: &foldback::Error) {
        assert_ne!(error.kind(), ErrorKind::Internal, "{key}: {error}");
        self.errors.insert(key, (error.kind(), error.to_string()));
    }

    /// What is read of a damaged store that is something else than in the sound one.
    #[must_use]
    pub fn wrong(&self, damaged: &Self) -> Vec<String> {
        let wrong = damaged.exact.iter().filter(|(key, read)| self.exact.get(*key) != Some(*read));
        wrong.map(|(key, read)| format!("{key}: {read:.200}")).collect()
    }
}
