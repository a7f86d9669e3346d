//! A store as a folder: creating, opening again, opening what is something else, copying.

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use foldback_kv::{
    Batch, Engine, Error, Expect, FORMAT_VERSION, Key, Mode, Space, open, repair_format,
};

use foldback_testkit::engine::check;

/// The engines of this build that store anything on disk.
pub(crate) fn engines() -> Vec<Engine> {
    let mut engines = Vec::new();
    if cfg!(feature = "sqlite") {
        engines.push(Engine::Sqlite);
    }
    engines.extend(exclusive());
    engines
}

/// Those of them whose store belongs to the process that writes it.
pub(crate) fn exclusive() -> Vec<Engine> {
    let mut engines = Vec::new();
    if cfg!(feature = "redb") {
        engines.push(Engine::Redb);
    }
    if cfg!(feature = "sled") {
        engines.push(Engine::Sled);
    }
    engines
}

#[test]
fn reopening_keeps_everything() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("a folder #1 ?é 库/deep");
        let kv = open(&dir, engine, Mode::ReadWrite).unwrap();
        check(&*kv, "put message 7/0 你好\nput file 0/9 f\nexpect 7 0->1\ncommit", "ok");
        drop(kv);
        for mode in [Mode::ReadOnly, Mode::ReadWrite, Mode::ReadOnly] {
            let kv = open(&dir, engine, mode).unwrap();
            check(&*kv, "get message 7/0\nget file 0/9\nhead 7", "你好\nf\n1");
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_closed_sqlite_store_has_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let kv = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    check(&*kv, "put message 7/0 a\ncommit", "ok");
    let log = dir.path().join("store.sqlite-wal");
    assert!(fs::metadata(&log).unwrap().len() > 0);
    drop(kv);
    assert!(!log.exists());
}

#[cfg(feature = "sqlite")]
#[test]
fn an_idle_sqlite_store_empties_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let kv = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    check(&*kv, "put message 7/0 a\ncommit", "ok");
    let log = dir.path().join("store.sqlite-wal");
    let begin = Instant::now();
    while fs::metadata(&log).unwrap().len() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "the log stayed");
        std::thread::sleep(Duration::from_millis(50));
    }
    check(&*kv, "get message 7/0\nput message 7/1 b\ncommit\nget message 7/1", "a\nok\nb");
}

#[test]
fn another_version_or_engine_is_named() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path(), engine, Mode::ReadWrite).unwrap());
        let format = dir.path().join("FORMAT");
        let text = fs::read_to_string(&format).unwrap();
        assert_eq!(text, format!("foldback store\nversion 4\nengine {engine}\n"));
        for mode in [Mode::ReadWrite, Mode::ReadOnly] {
            let refused = |text: &str| {
                fs::write(&format, text).unwrap();
                open(dir.path(), engine, mode).err().unwrap()
            };
            assert!(matches!(
                refused("foldback store\nversion 99\nwhatever comes\n"),
                Error::FormatVersion { found: 99, expected: FORMAT_VERSION, .. }
            ));
            let error = refused("foldback store\nversion 1\nengine papyrus\n");
            assert!(matches!(error, Error::Format { .. }), "{error}");
            assert!(error.to_string().contains("papyrus"), "{error}");
            let other = if engine == Engine::Sled { Engine::Sqlite } else { Engine::Sled };
            let error = refused(&format!("foldback store\nversion 1\nengine {other}\n"));
            assert!(matches!(
                error,
                Error::FormatEngine { ref found, expected, .. }
                    if found == other.name() && expected == engine
            ));
            for text in ["", "\0\0\0", "foldback store\n", "foldback store\nversion 1\n", "x\n"] {
                let error = refused(text);
                assert!(matches!(error, Error::Format { .. }), "{text:?}: {error}");
            }
        }
        fs::write(&format, text).unwrap();
        assert!(open(dir.path(), engine, Mode::ReadWrite).is_ok());
    }
}

#[test]
fn a_store_that_lost_its_database_is_not_made_anew() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path(), engine, Mode::ReadWrite).unwrap());
        let place = dir.path().join(format!("store.{engine}"));
        let aside = dir.path().join("aside");
        fs::rename(&place, &aside).unwrap();
        for mode in [Mode::ReadWrite, Mode::ReadOnly] {
            let error = open(dir.path(), engine, mode).err().unwrap();
            assert!(matches!(error, Error::Format { .. }), "{error}");
            assert!(error.to_string().contains("restore BACKUP"), "{error}");
        }
        // And a database without a format file is not taken for a new folder.
        fs::rename(&aside, &place).unwrap();
        fs::remove_file(dir.path().join("FORMAT")).unwrap();
        let error = open(dir.path(), engine, Mode::ReadWrite).err().unwrap();
        assert!(matches!(error, Error::Format { .. }), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_to_nothing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("store");
    std::os::unix::fs::symlink(dir.path().join("none"), &link).unwrap();
    let error = open(&link, Engine::Sqlite, Mode::ReadWrite).err().unwrap();
    assert!(error.to_string().contains("a link that leads to nothing"), "{error}");
}

/// R4: an emptied database is damage, and no failure of the engine.
#[cfg(feature = "sqlite")]
#[test]
fn r4_a_database_without_tables_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap());
    fs::write(dir.path().join("store.sqlite"), "").unwrap();
    for mode in [Mode::ReadWrite, Mode::ReadOnly] {
        let kv = open(dir.path(), Engine::Sqlite, mode).unwrap();
        let error = kv.head(1).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
}

#[test]
fn a_store_to_read_must_exist() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        for dir in [dir.path().to_owned(), dir.path().join("none")] {
            let error = open(&dir, engine, Mode::ReadOnly).err().unwrap();
            assert!(matches!(error, Error::NotFound { .. }), "{error}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "reading made something");
    }
}

#[test]
fn a_store_for_reading_refuses_writes() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        check(&*kv, "put message 7/0 a\ncommit", "ok");
        drop(kv);
        let kv = open(dir.path(), engine, Mode::ReadOnly).unwrap();
        let key = Key { space: Space::Message, todo: 7, n: 1 };
        let refused = kv.commit(Batch { put: vec![(key, vec![])], ..Batch::default() });
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
        assert!(matches!(kv.compact(), Err(Error::ReadOnly { .. })));
        check(&*kv, "scan message 7/0..9", "0=a");
    }
}

#[cfg(unix)]
#[test]
fn the_folder_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let kv = open(&store, engine, Mode::ReadWrite).unwrap();
        let copy = dir.path().join("copy");
        kv.backup(&copy).unwrap();
        for dir in [store, copy] {
            assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn eight_threads_create_one_store() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for todo in 0..8 {
                let (dir, barrier) = (dir.path().join("store"), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let kv = open(&dir, Engine::Sqlite, Mode::ReadWrite).unwrap();
                    check(&*kv, &format!("put todo {todo}/0 x\ncommit"), "ok");
                });
            }
        });
        let kv = open(&dir.path().join("store"), Engine::Sqlite, Mode::ReadOnly).unwrap();
        assert!((0..8).all(|todo| kv.last(Space::Todo, todo).unwrap().is_some()));
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn one_handle_sees_at_once_what_another_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let one = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let two = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let reader = open(dir.path(), Engine::Sqlite, Mode::ReadOnly).unwrap();
    let mut before = [one.changed().unwrap(), two.changed().unwrap(), reader.changed().unwrap()];
    for n in 0..20_u64 {
        let writer = if n % 3 == 0 { &two } else { &one };
        let put = vec![(Key { space: Space::Message, todo: 7, n }, n.to_be_bytes().to_vec())];
        let expect = Some(Expect { todo: 7, head: n, next: n + 1 });
        writer.commit(Batch { expect, put, delete: vec![] }).unwrap();
        let after = [one.changed().unwrap(), two.changed().unwrap(), reader.changed().unwrap()];
        assert!(before.iter().zip(after).all(|(before, after)| *before != after), "at {n}");
        before = after;
        for kv in [&one, &two, &reader] {
            let expected = Some((n, n.to_be_bytes().to_vec()));
            assert_eq!(kv.last(Space::Message, 7).unwrap(), expected);
            assert_eq!(kv.head(7).unwrap(), n + 1);
        }
    }
    let stale = two
        .commit(Batch { expect: Some(Expect { todo: 7, head: 19, next: 20 }), ..Batch::default() });
    assert!(matches!(stale, Err(Error::Conflict { expected: 19, found: 20, .. })));
}

#[test]
fn r10_a_second_opener_of_an_exclusive_store_hears_so_within_a_second() {
    for engine in exclusive() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        for mode in [Mode::ReadWrite, Mode::ReadOnly] {
            let begin = Instant::now();
            let second = open(dir.path(), engine, mode).err().unwrap();
            assert!(matches!(second, Error::Locked { .. }), "{engine}: {second}");
            // Within a second on a machine that is not busy.
            assert!(begin.elapsed() < Duration::from_secs(10), "it took {:?}", begin.elapsed());
        }
        drop(first);
        let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        check(&*kv, "put message 7/0 a\ncommit", "ok");
    }
}

/// R10: readers share an exclusive store, and keep a writer out.
#[test]
fn r10_readers_share_an_exclusive_store() {
    for engine in exclusive() {
        let dir = tempfile::tempdir().unwrap();
        let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        check(&*kv, "put message 7/0 a\ncommit", "ok");
        drop(kv);
        let readers = [(); 3].map(|()| open(dir.path(), engine, Mode::ReadOnly).unwrap());
        for reader in &readers {
            check(&**reader, "get message 7/0", "a");
        }
        let writer = open(dir.path(), engine, Mode::ReadWrite).err().unwrap();
        assert!(matches!(writer, Error::Locked { .. }), "{engine}: {writer}");
        drop(readers);
        assert!(open(dir.path(), engine, Mode::ReadWrite).is_ok());
    }
}

#[cfg(feature = "sled")]
#[test]
fn a_sled_compaction_that_was_cut_short_is_undone_or_finished() {
    #[track_caller]
    fn cut(at: &str, prepare: fn(&Path)) {
        let dir = tempfile::tempdir().unwrap();
        let kv = open(dir.path(), Engine::Sled, Mode::ReadWrite).unwrap();
        check(&*kv, "put message 7/0 a\ncommit", "ok");
        drop(kv);
        prepare(dir.path());
        let kv = open(dir.path(), Engine::Sled, Mode::ReadWrite).unwrap();
        check(&*kv, "get message 7/0", "a");
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["FORMAT", "LOCK", "WITNESS", "store.sled"], "{at}");
    }
    cut("while copying", |dir| fs::create_dir(dir.join("store.sled.new")).unwrap());
    cut("between the two renames", |dir| {
        fs::rename(dir.join("store.sled"), dir.join("store.sled.old")).unwrap();
        fs::create_dir(dir.join("store.sled.new")).unwrap();
    });
    cut("before the old one was removed", |dir| {
        fs::create_dir(dir.join("store.sled.old")).unwrap();
    });
}

#[test]
fn a_backup_is_a_store_of_one_moment() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let kv = open(&dir.path().join("store"), engine, Mode::ReadWrite).unwrap();
        // Two records that always change together, and a head.
        let round = |n: u64| Batch {
            expect: Some(Expect { todo: 1, head: n, next: n + 1 }),
            put: [0, 4_000_000_000]
                .map(|at| (Key { space: Space::Meta, todo: 1, n: at }, n.to_le_bytes().to_vec()))
                .into(),
            delete: vec![],
        };
        kv.commit(round(0)).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (1..60).for_each(|n| kv.commit(round(n)).unwrap()));
            for copy in 0..3 {
                let to = dir.path().join(format!("copy {copy}"));
                kv.backup(&to).unwrap();
                let copy = open(&to, engine, Mode::ReadWrite).unwrap();
                let head = copy.head(1).unwrap();
                let both = copy.scan(Space::Meta, 1, 0..Key::N_END, 9).unwrap();
                assert_eq!(both.len(), 2);
                for (_, value) in both {
                    assert_eq!(value, (head - 1).to_le_bytes(), "{engine}");
                }
                assert_eq!(copy.check().unwrap(), []);
            }
            writer.join().unwrap();
        });
        let again = kv.backup(&dir.path().join("copy 0"));
        assert!(matches!(again, Err(Error::NotEmpty { .. })), "{again:?}");
        let onto_itself = kv.backup(&dir.path().join("store"));
        assert!(matches!(onto_itself, Err(Error::NotEmpty { .. })));
        assert_eq!(kv.head(1).unwrap(), 60);
    }
}

#[test]
fn names_of_engines_go_both_ways() {
    for engine in Engine::ALL {
        assert_eq!(engine.to_string().parse::<Engine>().unwrap(), engine);
    }
    let error = "SQLite".parse::<Engine>().unwrap_err().to_string();
    assert_eq!(
        error,
        r#""SQLite" is not an engine; expected sqlite, redb, sled, postgres or memory"#
    );
}

#[test]
fn r4_no_flipped_bit_of_the_format_file_opens_anything_else() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        // The last of the spaces came with the last version.
        let keys = [Space::Message, Space::ALL[Space::ALL.len() - 1]];
        let keys = keys.map(|space| Key { space, todo: 1, n: 0 });
        let kv = open(dir, engine, Mode::ReadWrite).unwrap();
        let put = keys.map(|key| (key, b"here".to_vec())).to_vec();
        kv.commit(Batch { put, ..Batch::default() }).unwrap();
        drop(kv);
        let format = dir.join("FORMAT");
        let whole = fs::read(&format).unwrap();
        let (mut opened, mut refused, mut repaired) = (0, 0, 0);
        let others = engines();
        for bit in 0..whole.len() * 8 {
            for (mode, asked) in [Mode::ReadOnly, Mode::ReadWrite]
                .into_iter()
                .flat_map(|mode| [engine, others[bit % others.len()]].map(|asked| (mode, asked)))
            {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                fs::write(&format, flipped).unwrap();
                match open(dir, asked, mode) {
                    Ok(kv) => {
                        assert_eq!(asked, engine, "bit {bit}");
                        for key in keys {
                            assert_eq!(kv.get(key).unwrap(), Some(b"here".to_vec()), "bit {bit}");
                        }
                        opened += 1;
                        continue;
                    }
                    Err(_) => refused += 1,
                }
                if repair_format(dir).unwrap().is_some() {
                    assert_eq!(fs::read(&format).unwrap(), whole, "bit {bit}");
                    repaired += 1;
                }
            }
        }
        eprintln!("{engine}: {opened} opened, {refused} refused, {repaired} repaired");
        fs::write(&format, &whole).unwrap();
        let kv = open(dir, engine, Mode::ReadOnly).unwrap();
        assert_eq!(kv.get(keys[1]).unwrap(), Some(b"here".to_vec()));
        assert!(
            !dir.join(if engine == Engine::Sled { "store.sqlite" } else { "store.sled" }).exists()
        );
        assert!(repaired * 100 > refused * 45, "{engine}: {repaired} of {refused}");
    }
}
