//! A store in a folder of its own, with one todo, and a commit as the layer above would do it.

use foldback_backend_store::{BackendConfig, BackendStore, Error, Meta, Prepared};
use foldback_core::TodoId;
use foldback_kv::{Batch, Engine, Expect, Key, Kv, Mode, Registry, Todo};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) struct World {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) store: BackendStore,
    pub(crate) todo: Todo,
    pub(crate) dir: tempfile::TempDir,
}

impl World {
    /// With files for large payloads.
    pub(crate) fn new() -> Self {
        Self::with(BackendConfig::default())
    }

    pub(crate) fn with(config: BackendConfig) -> Self {
        Self::on(tempfile::tempdir().unwrap(), foldback_kv::memory(), config)
    }

    /// Records in a file too, which can be damaged.
    pub(crate) fn on_disk() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    fn at(dir: tempfile::TempDir) -> Self {
        let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
        Self::on(dir, kv, BackendConfig::default())
    }

    fn on(dir: tempfile::TempDir, kv: Arc<dyn Kv>, config: BackendConfig) -> Self {
        let store =
            BackendStore::open(kv.clone(), Some(dir.path().join("payloads")), config).unwrap();
        let todo = create(&kv, "todo001");
        Self { kv, store, todo, dir }
    }

    /// All bytes in records.
    pub(crate) fn in_memory() -> Self {
        let world = Self::new();
        let store = BackendStore::open(world.kv.clone(), None, BackendConfig::default()).unwrap();
        Self { store, ..world }
    }

    /// The store on disk, opened again after a bit of this record was flipped in its file.
    pub(crate) fn with_flipped(self, key: Key) -> Self {
        let value = self.kv.get(key).unwrap().unwrap();
        let Self { kv, store, dir, .. } = self;
        drop((kv, store));
        let file = dir.path().join("store.sqlite");
        let mut bytes = fs::read(&file).unwrap();
        let found: Vec<usize> = (0..bytes.len() - value.len())
            .filter(|at| bytes[*at..*at + value.len()] == value)
            .collect();
        assert_eq!(found.len(), 1, "the record stands once in the file");
        bytes[found[0] + value.len() / 2] ^= 1;
        fs::write(&file, bytes).unwrap();
        Self::at(dir)
    }

    pub(crate) fn another(&self, id: &str) -> Todo {
        create(&self.kv, id)
    }

    /// Prepares and commits.
    pub(crate) fn put(&self, bytes: &[u8]) -> Meta {
        self.put_in(&self.todo, bytes).meta
    }

    pub(crate) fn put_in(&self, todo: &Todo, bytes: &[u8]) -> Prepared {
        let head = self.kv.head(todo.no()).unwrap();
        let mut pending = self.store.begin(todo).unwrap();
        let prepared = self.store.prepare(&mut pending, bytes).unwrap();
        let expect = Some(Expect { todo: todo.no(), head, next: head + 1 });
        self.kv.commit(Batch { expect, put: pending.into_puts(), delete: vec![] }).unwrap();
        prepared
    }

    pub(crate) fn get(&self, n: u64) -> Result<Vec<u8>, Error> {
        self.store.get(&self.todo, n)
    }

    /// The payload files of all todos, by path.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        walk(&self.dir.path().join("payloads"), &mut files);
        files.retain(|path| path.file_name().unwrap() != "lock");
        files.sort();
        files
    }
}

fn create(kv: &Arc<dyn Kv>, id: &str) -> Todo {
    Registry::new(kv.clone()).create(&TodoId::new(id).unwrap(), b"").unwrap()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

/// Bytes that neither repeat nor compress.
pub(crate) fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + 8);
    let mut random = Random(seed);
    while out.len() < size {
        out.extend(random.next().to_le_bytes());
    }
    out.truncate(size);
    out
}

/// A small generator (splitmix64), so that every run tests the same.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
