//! Deleted is gone, and its space comes back.

use std::fs;
use std::path::Path;
use std::process::Command;

use foldback_kv::{Batch, Delete, Engine, Key, Mode, Space, open};

use crate::folder::engines;

fn files(dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

/// Counts the canaries that are in any file of the store. The files are copied by another process
/// first, because closing a handle of a database in this one would drop the locks of an open store.
fn hits(dir: &Path, canaries: &[Vec<u8>]) -> usize {
    let copy = tempfile::tempdir().unwrap();
    let status = Command::new("cp").arg("-r").args([dir, copy.path()]).status().unwrap();
    assert!(status.success());
    let mut all = Vec::new();
    files(copy.path(), &mut all);
    canaries
        .iter()
        .filter(|canary| {
            all.iter().any(|(_, bytes)| bytes.windows(canary.len()).any(|w| w == canary.as_slice()))
        })
        .count()
}

fn bytes_on_disk(dir: &Path) -> u64 {
    let mut all = Vec::new();
    files(dir, &mut all);
    all.iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

#[test]
fn s9_forgotten_bytes_are_in_no_file_after_compacting() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        let canaries: Vec<Vec<u8>> = (0..40)
            .map(|i| format!("canary-{:016x}-金丝雀", i * 0x9e37_79b9_7f4a_7c15_u128))
            .map(String::into_bytes)
            .collect();
        for (i, canary) in canaries.iter().enumerate() {
            // Alone, inside a long value, and between records that stay.
            let long = [vec![b'x'; 9_000], canary.clone(), vec![b'y'; 9_000]].concat();
            let n = i as u64;
            let put = vec![
                (Key { space: Space::Message, todo: 1, n: 2 * n }, canary.clone()),
                (Key { space: Space::Message, todo: 1, n: 2 * n + 1 }, b"stays".to_vec()),
                (Key { space: Space::PayloadBytes, todo: 2, n }, long),
                (Key { space: Space::Session, todo: 1, n: 0 }, canary.clone()),
            ];
            kv.commit(Batch { put, ..Batch::default() }).unwrap();
        }
        let delete = (0..40)
            .map(|n| Delete::one(Key { space: Space::Message, todo: 1, n: 2 * n }))
            .chain([Delete::todo(Space::PayloadBytes, 2)])
            .collect();
        // The last session record is overwritten rather than deleted.
        let put = vec![(Key { space: Space::Session, todo: 1, n: 0 }, b"new".to_vec())];
        kv.commit(Batch { delete, put, ..Batch::default() }).unwrap();
        assert!(hits(dir.path(), &canaries) > 0, "{engine}: the test would see nothing anyway");
        kv.compact().unwrap();
        assert_eq!(hits(dir.path(), &canaries), 0, "{engine}, open");
        assert_eq!(kv.scan(Space::Message, 1, 0..100, 100).unwrap().len(), 40);
        drop(kv);
        assert_eq!(hits(dir.path(), &canaries), 0, "{engine}, closed");
    }
}

/// Even without compacting, SQLite's pages must hold nothing of what was deleted: emptying the log
/// and closing the store are enough.
#[cfg(feature = "sqlite")]
#[test]
fn s9_sqlite_overwrites_what_it_deletes() {
    let dir = tempfile::tempdir().unwrap();
    let canaries: Vec<Vec<u8>> = (0..40).map(|i| format!("canary {i:020}").into_bytes()).collect();
    let key = |n: usize| Key { space: Space::Message, todo: 1, n: n as u64 };
    let kv = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let put = canaries.iter().enumerate().map(|(n, canary)| (key(n), canary.clone())).collect();
    kv.commit(Batch { put, ..Batch::default() }).unwrap();
    drop(kv);
    assert_eq!(hits(dir.path(), &canaries), 40, "the test would see nothing anyway");
    let kv = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    // Every other one, so that the page stays in use.
    let delete = (0..40).step_by(2).map(|n| Delete::one(key(n))).collect();
    kv.commit(Batch { delete, ..Batch::default() }).unwrap();
    drop(kv);
    assert_eq!(hits(dir.path(), &canaries), 20);
}

#[test]
fn r7_space_comes_back() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        let (records, bytes) = (4_000_u64, 2_000);
        for round in 0..2 {
            for first in (0..records).step_by(500) {
                let put = (first..first + 500)
                    .map(|n| {
                        let value = (0..bytes).map(|i| (i * n + round) as u8).collect();
                        (Key { space: Space::Message, todo: 1, n }, value)
                    })
                    .collect();
                kv.commit(Batch { put, ..Batch::default() }).unwrap();
            }
        }
        let delete = vec![Delete { space: Space::Message, todo: 1, range: 0..records * 9 / 10 }];
        kv.commit(Batch { delete, ..Batch::default() }).unwrap();
        let live = (records / 10 * bytes) as f64;
        let before = bytes_on_disk(dir.path()) as f64 / live;
        kv.compact().unwrap();
        drop(kv);
        let ratio = bytes_on_disk(dir.path()) as f64 / live;
        eprintln!("{engine}: {before:.2} of the live bytes on disk, {ratio:.2} after compacting");
        let most = if engine == Engine::Sqlite { 1.5 } else { 4.0 };
        assert!(ratio <= most, "{engine}: {ratio:.2} of the live bytes");
    }
}
