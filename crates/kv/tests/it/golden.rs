//! Stores of every released format, kept and opened.
//!
//! A format version leaves a small store behind in `tests/golden`. To make the one of the present
//! version, once: `cargo test -p foldback-kv make_the_golden_store -- --ignored`.

use std::fs;
use std::path::{Path, PathBuf};

use foldback_kv::{Engine, FORMAT_VERSION, Mode, open};

use crate::folder::engines;
use foldback_testkit::engine::check;

const WRITE: &str = "
    put meta 0/0 golden
    put message 1/0 hello
    put message 1/1 你好，折叠
    put block 1/1 two
    put file 2147483647/4294967295 the last key
    expect 1 0->2
    commit";
pub(crate) const READ: &str = "
    get meta 0/0
    scan message 1/0..4294967296
    last block 1
    get file 2147483647/4294967295
    head 1
    head 2";
pub(crate) const HELD: &str = "
    golden
    0=hello 1=你好，折叠
    1=two
    the last key
    2
    0";

pub(crate) fn golden(version: u64, engine: Engine) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{version}/{engine}"))
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The first format version whose stores may be of the engine.
pub(crate) fn since(engine: Engine) -> u64 {
    if engine == Engine::Redb { 4 } else { 1 }
}

#[test]
fn r9_golden_stores_open() {
    for engine in engines() {
        for version in since(engine)..=FORMAT_VERSION {
            let dir = tempfile::tempdir().unwrap();
            copy(&golden(version, engine), dir.path());
            for mode in [Mode::ReadOnly, Mode::ReadWrite] {
                let kv = open(dir.path(), engine, mode).unwrap();
                check(&*kv, READ, HELD);
                assert_eq!(kv.check().unwrap(), [], "{engine} of version {version}");
            }
            let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
            check(&*kv, "expect 1 2->3\nput message 1/2 new\ncommit\nhead 1", "ok\n3");
        }
    }
}

#[test]
#[ignore = "makes the fixture of a new format version"]
fn make_the_golden_store() {
    for engine in engines() {
        let to = golden(FORMAT_VERSION, engine);
        if to.exists() {
            eprintln!("{} is already there; a released fixture stays", to.display());
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        check(&*kv, WRITE, "ok");
        drop(kv);
        fs::remove_file(dir.path().join("LOCK")).unwrap();
        copy(dir.path(), &to);
    }
}
