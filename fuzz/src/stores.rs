//! Readers of what lies on disk.

use super::sound_store::{Readings, SoundStore, files, sound_store};
use foldback::kv::{Engine, Mode};
use foldback_backend_store::{BackendConfig, BackendStore};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// Files that say which format a store has.
pub fn formats() -> Vec<Vec<u8>> {
    let format =
        |version: u64, rest: &str| format!("foldback store\nversion {version}\nengine {rest}");
    [format(3, "sqlite\n"), format(1, "sled\n"), format(3, "sqlite\nunfinished\n")]
        .map(Into::into)
        .into()
}

/// Opens a folder whose format file is of these bytes: there is no store in it, which is an error.
pub fn format(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("FORMAT"), bytes).expect("the file");
    for engine in [Engine::Sqlite, Engine::Sled] {
        let opened = foldback::kv::open(dir.path(), engine, Mode::ReadOnly);
        drop(opened.err().expect("there is no store").to_string());
    }
}

/// The number of a record of the sound store, then its value: the first and the last of each kind.
pub fn records() -> Vec<Vec<u8>> {
    let numbered: Vec<_> = sound_store().records.iter().zip(0_u16..).collect();
    let kinds = numbered.chunk_by(|a, b| a.0.0.space == b.0.0.space);
    let ends = kinds.flat_map(|kind| [kind.first(), kind.last()]).flatten();
    ends.map(|((_, value), n)| [&n.to_le_bytes(), &value[..]].concat()).collect()
}

/// Reads a store in which one record has other bytes: what is read of other records stays the same.
pub fn record(bytes: &[u8]) {
    let store = sound_store();
    let Some((n, value)) = bytes.split_first_chunk::<2>() else { return };
    let Some((key, _)) = store.records.get(usize::from(u16::from_le_bytes(*n))) else { return };
    let kv = store.kv(&[(*key, Some(value.to_vec()))]);
    if let Ok(memory) = SoundStore::open_kv(kv, store.dir.path()) {
        let _ = Readings::of(&memory);
        drop(memory.maintenance().doctor().map_err(|error| error.to_string()));
    }
}

/// A copy of the sound store's files, of which one at a time is another one.
struct Copy {
    dir: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Copy {
    fn of(folder: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let from = sound_store().dir.path();
        let mut found = Vec::new();
        for path in files(from) {
            let below = path.strip_prefix(from).expect("a file of the store");
            let (to, bytes) = (dir.path().join(below), fs::read(&path).expect("a file"));
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::write(&to, &bytes).expect("the copy");
            let is_lock = below.to_string_lossy().ends_with("lock");
            if below.starts_with(folder) && !is_lock {
                found.push((to, bytes));
            }
        }
        Self { dir, files: found }
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let files = self.files.iter().zip(0_u8..);
        files.map(|((_, bytes), n)| [&[n], &bytes[..]].concat()).collect()
    }

    /// Does something while a file has other bytes. Files are replaced, never written: they may be mapped.
    fn with(&self, bytes: &[u8], work: impl FnOnce(&Path)) {
        let Some((n, new)) = bytes.split_first() else { return };
        let Some((path, old)) = self.files.get(usize::from(*n)) else { return };
        let replace = |bytes: &[u8]| {
            let beside = self.dir.path().join("new");
            fs::write(&beside, bytes).expect("the new file");
            fs::rename(&beside, path).expect("in place of the old one");
        };
        replace(new);
        work(self.dir.path());
        replace(old);
    }
}

fn indexes() -> &'static Mutex<Copy> {
    static COPY: OnceLock<Mutex<Copy>> = OnceLock::new();
    COPY.get_or_init(|| Mutex::new(Copy::of("index")))
}

fn payloads() -> &'static Mutex<Copy> {
    static COPY: OnceLock<Mutex<Copy>> = OnceLock::new();
    COPY.get_or_init(|| Mutex::new(Copy::of("payloads")))
}

/// The number of a file of an index, then its bytes.
pub fn index_files() -> Vec<Vec<u8>> {
    indexes().lock().expect("no target has failed").seeds()
}

/// Reads a store of which a file of an index has other bytes: that changes no answer.
pub fn index(bytes: &[u8]) {
    let store = sound_store();
    indexes().lock().expect("no target has failed").with(bytes, |dir| {
        let memory = store.open(&[], dir);
        let read = Readings::of(&memory);
        drop(memory.maintenance().doctor().expect("damage is a finding"));
        assert_eq!(read, store.readings);
    });
}

/// The number of a payload's file, then its bytes.
pub fn payload_files() -> Vec<Vec<u8>> {
    payloads().lock().expect("no target has failed").seeds()
}

/// Reads the payloads of a store of which one's file has other bytes: each is right, or an error.
pub fn payload_file(bytes: &[u8]) {
    let store = sound_store();
    payloads().lock().expect("no target has failed").with(bytes, |dir| {
        let kv = store.kv(&[]);
        let todos = foldback::kv::Registry::new(kv.clone()).list(0, 9).expect("the todos");
        let payloads = BackendStore::open(kv, Some(dir.join("payloads")), BackendConfig::default());
        let payloads = payloads.expect("a folder of payloads");
        for todo in &todos {
            for meta in payloads.metas(todo, 0, 100).expect("the records are sound") {
                let key = format!("{} payload {}", todo.id(), meta.n);
                if let Ok(bytes) = payloads.get(todo, meta.n) {
                    assert_eq!(String::from_utf8_lossy(&bytes), store.readings.exact[&key]);
                }
                let sound = &store.readings.exact[&key];
                let end = (sound.len() as u64).min(900);
                if let Ok(part) = payloads.read_range(todo, meta.n, 100..end) {
                    assert_eq!(String::from_utf8_lossy(&part), sound[100..end as usize]);
                }
                drop(payloads.lines(todo, meta.n, 2, 9, 2_000).map_err(|error| error.to_string()));
                drop(
                    payloads
                        .matching(todo, meta.n, "quay", 1, 2_000, 1)
                        .map_err(|error| error.to_string()),
                );
            }
            drop(payloads.verify(todo).map_err(|error| error.to_string()));
        }
    });
}
