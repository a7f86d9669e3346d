//! A disk that fails one call at a time, by strace.

use crate::folder::engines;
use crate::golden::copy;
use crate::unwritten::paths;
use foldback_kv::{Batch, Engine, Expect, Key, Kv, Mode, Space, open};
use foldback_testkit::alone;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROLE: &str = "FOLDBACK_KV_TEST_DISK_ROLE";
const ENGINE: &str = "FOLDBACK_KV_TEST_ENGINE";
const STORE: &str = "FOLDBACK_KV_TEST_STORE";

/// How many records a store of these tests has: several of sled's segments.
const RECORDS: u64 = 80;

fn value(n: u64) -> Vec<u8> {
    (0..20_000_u64).map(|i| (i * 7 + n * 31) as u8).collect()
}

fn put(kv: &dyn Kv, n: u64) -> Result<(), foldback_kv::Error> {
    let put = vec![(Key { space: Space::Message, todo: 1, n }, value(n))];
    kv.commit(Batch {
        expect: Some(Expect { todo: 1, head: n, next: n + 1 }),
        put,
        ..Batch::default()
    })
}

/// Plays a child's role; returns whether this process is a child.
fn plays_a_role() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let engine: Engine = std::env::var(ENGINE).unwrap().parse().unwrap();
    let store = std::env::var(STORE).unwrap();
    let store = Path::new(&store);
    // The harness writes its own words before ours on the line.
    println!();
    let done = match role.as_str() {
        "read" => open(store, engine, Mode::ReadOnly).and_then(|kv| {
            let found = kv.scan(Space::Message, 1, 0..Key::N_END, usize::MAX)?;
            assert!(found.iter().all(|(n, found)| *found == value(*n)), "a wrong value");
            Ok((found.len() as u64, kv.head(1)?))
        }),
        "write" => open(store, engine, Mode::ReadWrite).and_then(|kv| {
            // After a failed write, sled may wait forever.
            std::thread::spawn(|| {
                std::thread::sleep(std::time::Duration::from_secs(20));
                println!(">refused: it hangs");
                std::process::exit(0);
            });
            let first = kv.head(1)?;
            for n in first..first + 6 {
                put(&*kv, n)?;
                println!(">acknowledged {n}");
            }
            Ok((first + 6, first + 6))
        }),
        other => panic!("{other:?} is no role"),
    };
    match done {
        Ok((records, head)) => println!(">done {records} {head}"),
        Err(error) => println!(">refused: {error}"),
    }
    true
}

/// The output of a child whose `n`th call of each thread fails, without the `>`; `None` if no thread makes
/// that many calls, or processes cannot be traced.
fn failing(call: &str, n: usize, role: &str, engine: Engine, store: &Path) -> Option<Vec<String>> {
    let trace = store.with_file_name("trace");
    // Their names alone: sled may still remove one of its files after it was closed.
    let mut names = paths(store);
    names.extend(["store.sqlite-wal", "store.sqlite-shm"].map(|name| store.join(name)));
    let child = alone("disk_errors::r3_a_failed_read_of_a_reader_costs_nothing");
    let output = Command::new("strace")
        .args(["-f", "-qq", "-e", "signal=none", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={call}:error=EIO:when={n}"))
        .args(names.iter().flat_map(|name| [Path::new("-P"), name]))
        .arg("-o")
        .arg(&trace)
        .arg(child.get_program())
        .args(child.get_args())
        .env(ROLE, role)
        .env(ENGINE, engine.name())
        .env(STORE, store)
        .output()
        .ok()?;
    let injected = fs::read_to_string(trace).ok()?.contains("(INJECTED)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let what = format!("{engine}, {call} {n}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!injected || output.status.success(), "{what}");
    let said = text.lines().filter_map(|line| line.strip_prefix('>')).map(str::to_owned);
    injected.then(|| said.collect())
}

/// Returns whether calls can be made to fail here, and prints a note if they cannot.
fn can_fail() -> bool {
    let can = Command::new("strace").arg("-V").output().is_ok();
    if !can {
        println!("SKIPPED: strace is not here");
    }
    can
}

fn whole(engine: Engine, dir: &Path) -> PathBuf {
    let store = dir.join("whole");
    let kv = open(&store, engine, Mode::ReadWrite).unwrap();
    (0..RECORDS).for_each(|n| put(&*kv, n).unwrap());
    store
}

/// The head of a store that holds all that its head says, and nothing damaged.
#[track_caller]
fn sound(store: &Path, engine: Engine, mode: Mode, what: &str) -> u64 {
    let kv = open(store, engine, mode).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (head, found) =
        (kv.head(1).unwrap(), kv.scan(Space::Message, 1, 0..Key::N_END, usize::MAX).unwrap());
    assert_eq!(found.len() as u64, head, "{what}");
    assert!(found.iter().all(|(n, found)| *found == value(*n)), "{what}");
    assert_eq!(kv.check().unwrap(), [], "{what}");
    head
}

/// R3: a reader whose disk fails once says so or reads everything, and leaves the store as it was.
#[test]
fn r3_a_failed_read_of_a_reader_costs_nothing() {
    if plays_a_role() || !can_fail() {
        return;
    }
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let store = whole(engine, dir.path());
        let mut failed = 0;
        for n in 1..40 {
            let reads = "pread64,read,copy_file_range";
            let Some(said) = failing(reads, n, "read", engine, &store) else { break };
            let what = format!("{engine}, read {n}: {said:?}");
            let whole = format!("done {RECORDS} {RECORDS}");
            assert!(
                said.len() == 1 && (said[0] == whole || said[0].starts_with("refused")),
                "{what}"
            );
            failed += usize::from(said[0] != whole);
            assert_eq!(sound(&store, engine, Mode::ReadOnly, &what), RECORDS, "{what}");
        }
        eprintln!("{engine}: {failed} reads were refused");
        assert!(failed > 0, "{engine}: no call was made to fail");
        assert_eq!(sound(&store, engine, Mode::ReadWrite, "at the end"), RECORDS);
    }
}

/// R3: whichever call of a writer fails, everything that it had acknowledged is there afterwards, and so is
/// everything from before.
#[test]
fn r3_a_failed_call_of_a_writer_costs_nothing() {
    if !can_fail() {
        return;
    }
    let calls = ["pread64,read,copy_file_range", "pwrite64,write", "fsync,fdatasync", "ftruncate"];
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let whole = whole(engine, dir.path());
        let mut failed = 0;
        for call in calls {
            for n in (1..8).chain((8..40).step_by(5)) {
                let store = dir.path().join("store");
                copy(&whole, &store);
                let said = failing(call, n, "write", engine, &store);
                let what = format!("{engine}, {call} {n}: {said:?}");
                let said = said.unwrap_or_default();
                let acknowledged = said.iter().filter(|line| line.starts_with("ack")).count();
                failed += usize::from(said.iter().any(|line| line.starts_with("refused")));
                for mode in [Mode::ReadOnly, Mode::ReadWrite] {
                    let head = sound(&store, engine, mode, &what);
                    assert!(head >= RECORDS + acknowledged as u64, "{what}: the head {head}");
                }
                fs::remove_dir_all(&store).unwrap();
                if said.is_empty() {
                    break;
                }
            }
        }
        eprintln!("{engine}: {failed} writers were refused");
        assert!(failed > 0, "{engine}: no call was made to fail");
    }
}
