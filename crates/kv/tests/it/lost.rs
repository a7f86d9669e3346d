//! Acknowledged commits that are gone are noticed, and nothing is acknowledged that nobody will find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use foldback_kv::{Batch, Engine, Error, Expect, Finding, Key, Kv, Lost, Mode, Space, open};

use crate::folder::{engines, exclusive};
use crate::golden::copy;
use crate::unwritten::files;

fn record(n: u64) -> Batch {
    let put = vec![(Key { space: Space::Message, todo: 1, n }, format!("记录 {n}").into_bytes())];
    Batch { expect: Some(Expect { todo: 1, head: n, next: n + 1 }), put, delete: vec![] }
}

fn writing(dir: &Path) -> Arc<dyn Kv> {
    writing_on(Engine::Sqlite, dir)
}

fn writing_on(engine: Engine, dir: &Path) -> Arc<dyn Kv> {
    open(dir, engine, Mode::ReadWrite).unwrap()
}

/// How many commits the stores below have.
const COMMITS: u64 = 20;

/// The files that a process leaves when it is killed after its last commit: nothing is in the file, everything is in
/// the log. Another process copies them, because closing a handle of the file in this one would drop the store's locks.
fn killed(dir: &Path) {
    let live = dir.join("live");
    let kv = writing(&live);
    (0..COMMITS).for_each(|n| kv.commit(record(n)).unwrap());
    let copied = Command::new("cp").arg("-r").args([&live, &dir.join("image")]).status().unwrap();
    assert!(copied.success());
    drop(kv);
}

/// A copy of the image with another log; `None` for none.
fn with_log(image: &Path, log: Option<&[u8]>) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["FORMAT", "WITNESS", "store.sqlite"] {
        fs::copy(image.join(name), copy.path().join(name)).unwrap();
    }
    if let Some(log) = log {
        fs::write(copy.path().join("store.sqlite-wal"), log).unwrap();
    }
    copy
}

/// Whatever happened to the database: either everything is there, or every opening says what is gone, and nothing is
/// written after it until that is accepted.
#[track_caller]
fn check_noticed(engine: Engine, dir: &Path, what: &str) -> u64 {
    let reader = open(dir, engine, Mode::ReadOnly).unwrap();
    let head = reader.head(1).unwrap();
    let gone = (head < COMMITS).then_some(Lost { acknowledged: COMMITS, held: head });
    assert_eq!(reader.lost().unwrap(), gone, "{what}");
    drop(reader);
    let Some(lost) = gone else {
        writing_on(engine, dir).commit(record(head)).unwrap();
        return head;
    };
    for _ in 0..2 {
        let kv = writing_on(engine, dir);
        assert_eq!(kv.lost().unwrap(), Some(lost), "{what}");
        assert!(kv.check().unwrap().contains(&Finding::Lost(lost)), "{what}");
        for refused in [kv.commit(record(head)), kv.compact()] {
            assert!(
                matches!(refused, Err(Error::Lost { lost: l, .. }) if l == lost),
                "{refused:?}"
            );
        }
        assert_eq!(kv.head(1).unwrap(), head, "{what}");
        assert_eq!(kv.scan(Space::Message, 1, 0..99, 99).unwrap().len() as u64, head, "{what}");
    }
    writing_on(engine, dir).accept_loss().unwrap();
    let kv = writing_on(engine, dir);
    assert_eq!(kv.lost().unwrap(), None, "{what}");
    kv.commit(record(head)).unwrap();
    assert!(!kv.check().unwrap().iter().any(|found| matches!(found, Finding::Lost(_))), "{what}");
    head
}

/// The part of a store that belongs to the engine: a file or a folder.
fn database(engine: Engine, dir: &Path) -> PathBuf {
    dir.join(format!("store.{engine}"))
}

/// R4: an earlier database of the same store, complete in itself.
#[test]
fn r4_a_database_that_went_back_is_noticed() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let (early, late) = (dir.path().join("early"), dir.path().join("late"));
        let kv = writing_on(engine, &late);
        (0..7).for_each(|n| kv.commit(record(n)).unwrap());
        drop(kv);
        copy(&late, &early);
        let kv = writing_on(engine, &late);
        (7..COMMITS).for_each(|n| kv.commit(record(n)).unwrap());
        drop(kv);
        copy(&late, &dir.path().join("copy"));
        assert_eq!(check_noticed(engine, &dir.path().join("copy"), "whole"), COMMITS, "{engine}");
        fs::copy(late.join("WITNESS"), early.join("WITNESS")).unwrap();
        assert_eq!(check_noticed(engine, &early, engine.name()), 7);

        // A separate store with the same number of commits is another one.
        let other = dir.path().join("other");
        let kv = writing_on(engine, &other);
        let put = |n| vec![(Key { space: Space::Message, todo: 2, n }, vec![])];
        (0..COMMITS).for_each(|n| kv.commit(Batch { put: put(n), ..Batch::default() }).unwrap());
        drop(kv);
        fs::copy(late.join("WITNESS"), other.join("WITNESS")).unwrap();
        let same = Some(Lost { acknowledged: COMMITS, held: COMMITS });
        let kv = open(&other, engine, Mode::ReadOnly).unwrap();
        assert_eq!(kv.lost().unwrap(), same, "{engine}");
    }
}

/// R4: after a loss is accepted, the store is used as it is.
#[test]
fn r4_an_accepted_loss_lets_the_same_writer_go_on() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let (early, late) = (dir.path().join("early"), dir.path().join("late"));
        let kv = writing_on(engine, &late);
        kv.commit(record(0)).unwrap();
        drop(kv);
        copy(&late, &early);
        writing_on(engine, &late).commit(record(1)).unwrap();
        fs::copy(late.join("WITNESS"), early.join("WITNESS")).unwrap();
        let before = files(&early);
        let kv = writing_on(engine, &early);
        assert!(matches!(kv.commit(record(1)), Err(Error::Lost { .. })), "{engine}");
        if engine == Engine::Sled {
            assert!(files(&early) == before, "sled wrote over what remains of a lost commit");
        }
        kv.accept_loss().unwrap();
        assert_eq!((kv.lost().unwrap(), kv.check().unwrap()), (None, vec![]), "{engine}");
        kv.commit(record(1)).unwrap();
        kv.compact().unwrap();
        kv.commit(record(2)).unwrap();
        drop(kv);
        let kv = writing_on(engine, &early);
        assert_eq!((kv.head(1).unwrap(), kv.lost().unwrap()), (3, None), "{engine}");
    }
}

/// R4: a log that is cut short or deleted after a kill.
#[test]
fn r4_a_log_that_was_cut_short_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path());
    let image = dir.path().join("image");
    let log = fs::read(image.join("store.sqlite-wal")).unwrap();
    assert_eq!(
        check_noticed(Engine::Sqlite, with_log(&image, Some(&log)).path(), "whole"),
        COMMITS
    );
    assert_eq!(check_noticed(Engine::Sqlite, with_log(&image, None).path(), "deleted"), 0);
    let mut heads = std::collections::BTreeSet::new();
    for part in 0..64 {
        let length = log.len() * part / 64;
        let copy = with_log(&image, Some(&log[..length]));
        heads.insert(check_noticed(Engine::Sqlite, copy.path(), &format!("cut to {length} bytes")));
    }
    assert!(heads.len() > 15, "the cuts hit too little to prove anything: {heads:?}");
}

/// R4: a flipped byte of the log drops the commits after it, and they are not overwritten unnoticed.
#[test]
fn r4_a_flipped_byte_of_the_log_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path());
    let image = dir.path().join("image");
    let log = fs::read(image.join("store.sqlite-wal")).unwrap();
    for trial in 0..100_usize {
        let at = trial * 7_919 % (log.len() - 8_240);
        let mut bad = log.clone();
        bad[at] ^= 1 << (trial % 8);
        let copy = with_log(&image, Some(&bad));
        assert!(
            check_noticed(Engine::Sqlite, copy.path(), &format!("byte {at}")) < COMMITS,
            "byte {at}"
        );
    }
}

/// R4: a damaged number of the last commit is found, and the next commit repairs it. (redb's is under the checksum of
/// its page.)
#[test]
fn r4_a_damaged_number_of_the_last_commit_stops_nothing() {
    for engine in engines().into_iter().filter(|engine| *engine != Engine::Redb) {
        let dir = tempfile::tempdir().unwrap();
        let kv = writing_on(engine, dir.path());
        (0..COMMITS).for_each(|n| kv.commit(record(n)).unwrap());
        drop(kv);
        let place = database(engine, dir.path());
        if engine == Engine::Sqlite {
            let damaged = rusqlite::Connection::open(&place).unwrap();
            let sql = "UPDATE heads SET record = zeroblob(25) WHERE id = -1";
            assert_eq!(damaged.execute(sql, ()).unwrap(), 1);
        }
        #[cfg(feature = "sled")]
        if engine == Engine::Sled {
            // A program that another test is starting may hold the lock for a moment.
            let opened = || {
                std::thread::sleep(std::time::Duration::from_millis(10));
                sled::open(&place)
            };
            let damaged = (0..500).find_map(|_| opened().ok()).unwrap();
            assert!(damaged.insert([254, 0, 0, 0, 0, 0, 0, 0, 0], &[0; 25]).unwrap().is_some());
        }
        let kv = writing_on(engine, dir.path());
        assert_eq!(kv.lost().unwrap(), None);
        assert!(matches!(&kv.check().unwrap()[..], [Finding::Engine { .. }]), "{engine}");
        kv.commit(record(COMMITS)).unwrap();
        assert_eq!((kv.lost().unwrap(), kv.check().unwrap()), (None, vec![]), "{engine}");
    }
}

/// R10: concurrent writers never see a loss where there is none.
#[test]
fn r10_writers_beside_each_other_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    drop(writing(dir.path()));
    std::thread::scope(|scope| {
        for todo in 1..5 {
            let dir = dir.path();
            scope.spawn(move || {
                let kv = writing(dir);
                for n in 0..100 {
                    let key = Key { space: Space::Message, todo, n };
                    kv.commit(Batch { put: vec![(key, vec![7])], ..Batch::default() }).unwrap();
                    assert_eq!(kv.lost().unwrap(), None);
                }
            });
        }
    });
    let kv = writing(dir.path());
    assert_eq!((kv.lost().unwrap(), kv.check().unwrap()), (None, vec![]));
}

/// R3: what is written into a store that was deleted, moved or replaced is not acknowledged.
#[test]
fn r3_a_store_that_is_gone_acknowledges_nothing() {
    type Loses = fn(Engine, &Path);
    let cases: [(&str, Loses); 4] = [
        ("deleted", |_, dir| fs::remove_dir_all(dir).unwrap()),
        ("moved", |_, dir| fs::rename(dir, dir.with_file_name("elsewhere")).unwrap()),
        ("replaced", |engine, dir| {
            fs::rename(dir, dir.with_file_name("elsewhere")).unwrap();
            drop(writing_on(engine, dir));
        }),
        ("without its database", |engine, dir| {
            let place = database(engine, dir);
            if place.is_dir() { fs::remove_dir_all(place) } else { fs::remove_file(place) }
                .unwrap();
        }),
    ];
    for engine in engines() {
        for (what, lose) in cases {
            let dir = tempfile::tempdir().unwrap();
            let store = dir.path().join("store");
            let kv = writing_on(engine, &store);
            kv.commit(record(0)).unwrap();
            lose(engine, &store);
            let refused = kv.commit(record(1));
            assert!(matches!(refused, Err(Error::Gone { .. })), "{engine}, {what}: {refused:?}");
            let refused = kv.commit(record(2));
            assert!(
                matches!(refused, Err(Error::Poisoned { .. })),
                "{engine}, {what}: {refused:?}"
            );
            assert!(kv.compact().is_err(), "{engine}, {what}");
            drop(kv);
            if what == "replaced" {
                let other = writing_on(engine, &store);
                assert_eq!(
                    (other.head(1).unwrap(), other.check().unwrap()),
                    (0, vec![]),
                    "{engine}"
                );
            }
        }
    }
}

/// R3: compacting puts nothing in the place of another's database.
#[test]
fn r3_a_store_that_is_gone_is_not_compacted_into_another() {
    for engine in exclusive() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let kv = writing_on(engine, &store);
        kv.commit(record(0)).unwrap();
        fs::rename(&store, dir.path().join("elsewhere")).unwrap();
        drop(writing_on(engine, &store));
        assert!(matches!(kv.compact(), Err(Error::Gone { .. })), "{engine}");
        drop(kv);
        assert_eq!(writing_on(engine, &store).head(1).unwrap(), 0, "{engine}");
        assert_eq!(writing_on(engine, &dir.path().join("elsewhere")).head(1).unwrap(), 1);
    }
}

/// R3: a log that was deleted under a writer is copied into the file: everything acknowledged is there.
#[test]
fn r3_a_log_that_is_gone_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let kv = writing(dir.path());
    (0..COMMITS).for_each(|n| kv.commit(record(n)).unwrap());
    fs::remove_file(dir.path().join("store.sqlite-wal")).unwrap();
    assert!(matches!(kv.commit(record(COMMITS)), Err(Error::Gone { .. })));
    // As if the process were killed: closing writes nothing.
    std::mem::forget(kv);
    let kv = writing(dir.path());
    assert!(kv.head(1).unwrap() >= COMMITS, "{}", kv.head(1).unwrap());
    assert_eq!((kv.lost().unwrap(), kv.check().unwrap()), (None, vec![]));
}
