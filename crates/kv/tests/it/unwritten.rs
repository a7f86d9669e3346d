//! Reading changes nothing, whatever the last writer left.

use crate::folder::engines;
use crate::processes::churned_and_killed;
use foldback_kv::{Batch, Engine, Error, Key, Mode, Space, open};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file below a folder.
pub(crate) fn paths(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(paths(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Every file below a folder, with its bytes.
pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    paths(dir).into_iter().map(read).collect()
}

/// R11: neither after a writer that closed its store nor after one that was killed. (SQLite's readers keep an
/// index of the log beside it.)
#[test]
fn r11_reading_changes_no_byte_of_a_store() {
    for engine in engines().into_iter().filter(|engine| *engine != Engine::Sqlite) {
        for is_killed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let store = dir.path().join("store");
            let held = churned_and_killed(engine, &store);
            if !is_killed {
                drop(open(&store, engine, Mode::ReadWrite).unwrap());
            }
            let before = files(&store);
            for _ in 0..2 {
                let kv = open(&store, engine, Mode::ReadOnly).unwrap();
                assert!(kv.head(1).unwrap() >= held, "{engine}");
                let all = kv.scan(Space::Message, 1, 0..Key::N_END, usize::MAX).unwrap();
                assert_eq!(all.len() as u64, kv.head(1).unwrap(), "{engine}");
                assert_eq!(kv.check().unwrap(), [], "{engine}");
                let key = Key { space: Space::Message, todo: 1, n: 0 };
                let refused = kv.commit(Batch { put: vec![(key, vec![])], ..Batch::default() });
                assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{engine}: {refused:?}");
                drop(kv);
                assert!(files(&store) == before, "{engine}, killed: {is_killed}");
            }
        }
    }
}

/// R1: the remains of a spare that a killed writer of sled could not remove are not a database.
#[test]
fn r1_remains_of_a_spare_are_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let held = churned_and_killed(Engine::Sled, dir.path());
    drop(open(dir.path(), Engine::Sled, Mode::ReadWrite).unwrap());
    let names = || fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names().any(|name| name == "store.sled.spare" || name == "store.sled.new"));
    let remains = dir.path().join("store.sled.new");
    fs::create_dir(&remains).unwrap();
    fs::copy(dir.path().join("store.sled/conf"), remains.join("conf")).unwrap();
    for mode in [Mode::ReadOnly, Mode::ReadWrite] {
        let kv = open(dir.path(), Engine::Sled, mode).unwrap();
        assert!(kv.head(1).unwrap() >= held, "{mode:?}");
        assert_eq!(kv.check().unwrap(), [], "{mode:?}");
    }
    assert!(!remains.exists());
}
