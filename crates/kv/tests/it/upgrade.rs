//! R9: a store of an earlier format is brought up to the present one, and a half-finished upgrade
//! loses nothing.

use std::fs;
use std::path::Path;

use foldback_kv::{Batch, Engine, Error, FORMAT_VERSION, Key, Mode, Space, open};

use crate::folder::engines;
use crate::golden::{HELD, READ, copy, golden, since};
use foldback_testkit::engine::check;

const NEW: Key = Key { space: Space::Grant, todo: 1, n: 7 };

fn put(key: Key, value: &str) -> Batch {
    Batch { put: vec![(key, value.into())], ..Batch::default() }
}

fn format_of(dir: &Path) -> String {
    fs::read_to_string(dir.join("FORMAT")).unwrap()
}

/// Wherever an upgrade is interrupted, the store opens, holds what it held, and accepts records of
/// the new spaces.
#[track_caller]
fn check_opens(dir: &Path, engine: Engine, what: &str) {
    let reader = open(dir, engine, Mode::ReadOnly).unwrap_or_else(|e| panic!("{what}: {e}"));
    check(&*reader, READ, HELD);
    assert_eq!(reader.get(NEW).unwrap(), None, "{what}");
    assert_eq!(reader.scan(NEW.space, 1, 0..9, 9).unwrap(), [], "{what}");
    assert_eq!(reader.last(NEW.space, 1).unwrap(), None, "{what}");
    assert_eq!(reader.check().unwrap(), [], "{what}");
    drop(reader);
    for round in 0..2 {
        let kv = open(dir, engine, Mode::ReadWrite).unwrap_or_else(|e| panic!("{what}: {e}"));
        check(&*kv, READ, HELD);
        assert_eq!(
            format_of(dir),
            format!("foldback store\nversion {FORMAT_VERSION}\nengine {engine}\n")
        );
        kv.commit(put(NEW, "granted")).unwrap();
        assert_eq!(kv.get(NEW).unwrap().unwrap(), b"granted", "{what}, round {round}");
        assert_eq!(kv.check().unwrap(), [], "{what}");
    }
}

/// R9: killed after each step of the upgrade.
#[test]
fn r9_an_upgrade_that_was_cut_short_is_done_again() {
    for engine in engines().into_iter().filter(|engine| since(*engine) == 1) {
        let first = || {
            let dir = tempfile::tempdir().unwrap();
            copy(&golden(1, engine), dir.path());
            dir
        };
        let dir = first();
        check_opens(dir.path(), engine, "before the first step");

        // The tables are there, and the format file does not say so yet.
        let dir = first();
        let text = format_of(dir.path());
        drop(open(dir.path(), engine, Mode::ReadWrite).unwrap());
        fs::write(dir.path().join("FORMAT"), &text).unwrap();
        check_opens(dir.path(), engine, "before the format file");

        // The new format file was begun or written, but not renamed.
        for part in ["", "foldback sto", "foldback store\nversion 3\nengine "] {
            let dir = first();
            fs::write(dir.path().join("FORMAT.new"), part).unwrap();
            check_opens(dir.path(), engine, "in the format file");
            let dir = first();
            drop(open(dir.path(), engine, Mode::ReadWrite).unwrap());
            fs::write(dir.path().join("FORMAT"), &text).unwrap();
            fs::write(dir.path().join("FORMAT.new"), part).unwrap();
            check_opens(dir.path(), engine, "in the format file, after the tables");
        }

        // An interrupted creation by the earlier version starts over.
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("FORMAT"), format!("{text}unfinished\n")).unwrap();
        assert!(matches!(open(dir.path(), engine, Mode::ReadOnly), Err(Error::Format { .. })));
        let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        kv.commit(put(NEW, "granted")).unwrap();
    }
}

/// R9: reading changes nothing in a store of an earlier format, and its copy is of the present format.
#[test]
fn r9_reading_does_not_upgrade() {
    for engine in engines().into_iter().filter(|engine| since(*engine) == 1) {
        let dir = tempfile::tempdir().unwrap();
        copy(&golden(1, engine), dir.path());
        let before = format_of(dir.path());
        let reader = open(dir.path(), engine, Mode::ReadOnly).unwrap();
        assert!(matches!(reader.commit(put(NEW, "x")), Err(Error::ReadOnly { .. })));
        assert_eq!(format_of(dir.path()), before);
        let backup = dir.path().join("copy");
        reader.backup(&backup).unwrap();
        drop(reader);
        let kv = open(&backup, engine, Mode::ReadWrite).unwrap();
        check(&*kv, READ, HELD);
        kv.commit(put(NEW, "granted")).unwrap();
        assert_eq!(kv.get(NEW).unwrap().unwrap(), b"granted");
    }
}

/// R9: several processes that upgrade at once do it once; here, threads with stores of their own.
#[test]
fn r9_openers_at_once_upgrade_together() {
    let dir = tempfile::tempdir().unwrap();
    copy(&golden(1, Engine::Sqlite), dir.path());
    std::thread::scope(|scope| {
        for n in 0..6 {
            let dir = dir.path();
            scope.spawn(move || {
                let kv = open(dir, Engine::Sqlite, Mode::ReadWrite).unwrap();
                kv.commit(put(Key { n, ..NEW }, "granted")).unwrap();
            });
        }
    });
    let kv = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    assert_eq!(kv.scan(NEW.space, 1, 0..9, 9).unwrap().len(), 6);
    check(&*kv, READ, HELD);
}

/// R9: a store of a future version is refused, and nothing in it is touched.
#[test]
fn r9_a_future_version_is_refused() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        copy(&golden(FORMAT_VERSION, engine), dir.path());
        let future = format!("foldback store\nversion {}\nengine {engine}\n", FORMAT_VERSION + 1);
        fs::write(dir.path().join("FORMAT"), &future).unwrap();
        for mode in [Mode::ReadOnly, Mode::ReadWrite] {
            let error = open(dir.path(), engine, mode).err().unwrap();
            let found = FORMAT_VERSION + 1;
            assert!(
                matches!(error, Error::FormatVersion { found: f, .. } if f == found),
                "{error}"
            );
        }
        assert_eq!(format_of(dir.path()), future);
    }
}
