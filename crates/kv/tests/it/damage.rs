//! Flipped bytes: never a wrong value, and what is lost is reported.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use foldback_kv::{Batch, Engine, Error, Expect, Finding, Key, Kv, Mode, Space, open};

/// Numbers that are the same on every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

type Records = BTreeMap<Key, Vec<u8>>;

/// A store of a few pages a table, with freed pages among them.
fn build(dir: &Path, engine: Engine) -> Records {
    let kv = open(dir, engine, Mode::ReadWrite).unwrap();
    let mut records = Records::new();
    for n in 0..60_u64 {
        let mut put = Vec::new();
        for space in [Space::Message, Space::Block, Space::Vector] {
            for todo in [1, 2] {
                let size = (n as usize * 37) % 700;
                let value = format!("{space} {todo} {n} {}", "折".repeat(size / 3)).into_bytes();
                put.push((Key { space, todo, n }, value));
            }
        }
        records.extend(put.clone());
        kv.commit(Batch {
            expect: Some(Expect { todo: 1, head: n, next: n + 1 }),
            put,
            delete: vec![],
        })
        .unwrap();
    }
    records
}

/// Reads everything in every way. Panics on a wrong value, and on a head other than the last one
/// and those that `lost` allows; returns whether anything was refused or missing.
fn read_all(kv: &dyn Kv, records: &Records, what: &str, lost: RangeInclusive<u64>) -> bool {
    let mut short = false;
    let typed = |error: &Error| {
        assert!(
            matches!(
                error,
                Error::Corrupt { .. }
                    | Error::CorruptHead { .. }
                    | Error::Damaged { .. }
                    | Error::Engine { .. }
            ),
            "{what}: {error:?}"
        );
    };
    for (key, value) in records {
        match kv.get(*key) {
            Ok(Some(found)) => assert_eq!(found, *value, "{what}: a wrong value at {key}"),
            Ok(None) => short = true,
            Err(error) => {
                typed(&error);
                short = true;
            }
        }
    }
    for space in [Space::Message, Space::Block, Space::Vector] {
        for todo in [1, 2] {
            match kv.scan(space, todo, 0..Key::N_END, 1000) {
                Ok(found) => {
                    short |= found.len() != 60;
                    for (n, value) in found {
                        let key = Key { space, todo, n };
                        assert_eq!(Some(&value), records.get(&key), "{what}: scanned {key}");
                    }
                }
                Err(error) => {
                    typed(&error);
                    short = true;
                }
            }
        }
    }
    match kv.head(1) {
        Ok(60) => {}
        Ok(head) => {
            assert!(lost.contains(&head), "{what}: the head {head}");
            short = true;
        }
        Err(error) => {
            typed(&error);
            short = true;
        }
    }
    short
}

#[test]
fn r4_a_flipped_bit_in_the_file_is_never_a_wrong_value() {
    flip_bits(Engine::Sqlite);
}

#[cfg(feature = "redb")]
#[test]
fn r4_a_flipped_bit_in_the_file_of_redb_is_never_a_wrong_value() {
    flip_bits(Engine::Redb);
}

fn flip_bits(engine: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let records = build(&whole, engine);
    let name = format!("store.{engine}");
    let bytes = fs::read(whole.join(&name)).unwrap();
    let filled: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let (mut refused, mut short) = (0, 0);
    let mut dice = Dice(7);
    for trial in 0..=200 {
        // Half of them anywhere, half of them where something is written.
        let at =
            if trial % 2 == 0 { dice.below(bytes.len()) } else { filled[dice.below(filled.len())] };
        let bit = dice.below(8);
        let copy = dir.path().join("copy");
        fs::create_dir(&copy).unwrap();
        for name in ["FORMAT", "WITNESS"] {
            fs::copy(whole.join(name), copy.join(name)).unwrap();
        }
        let mut bad = bytes.clone();
        // The last copy is whole: without it, what the others lose would prove nothing.
        let whole = trial == 200;
        bad[at] ^= if whole { 0 } else { 1 << bit };
        fs::write(copy.join(&name), bad).unwrap();
        let what = format!("byte {at}, bit {bit}");
        match open(&copy, engine, Mode::ReadWrite) {
            Ok(kv) => {
                if read_all(&*kv, &records, &what, 0..=0) {
                    assert!(!whole, "a whole copy is short");
                    short += 1;
                    let findings = kv.check();
                    assert!(
                        !matches!(&findings, Ok(none) if none.is_empty()),
                        "{what}: something is missing and nothing was found"
                    );
                }
            }
            Err(error) => {
                assert!(!whole, "a whole copy was refused: {error}");
                refused += 1;
            }
        }
        fs::remove_dir_all(&copy).unwrap();
    }
    eprintln!(
        "200 flips of {engine}: {refused} stores refused, {short} with something refused or missing"
    );
    assert!(short > 20, "the flips hit too little to prove anything");
    assert!(refused <= 20, "{refused} of 200 flips cost the whole store");
}

/// A backup that meets a bad page reports it for the store, not for the copy.
#[cfg(feature = "redb")]
#[test]
fn r4_a_backup_names_the_file_with_the_bad_page() {
    /// Where the blocks of the file begin, and what each takes.
    const BLOCKS: (usize, usize) = (4 * 4096, 4096 + 8);
    let (store, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    build(store.path(), Engine::Redb);
    let file = store.path().join("store.redb");
    let sound = fs::read(&file).unwrap();
    let mut named = 0;
    for at in (BLOCKS.0..sound.len()).step_by(BLOCKS.1) {
        let mut bad = sound.clone();
        bad[at + 100] ^= 4;
        fs::write(&file, bad).unwrap();
        let Ok(kv) = open(store.path(), Engine::Redb, Mode::ReadOnly) else { continue };
        let copy = target.path().join(at.to_string());
        match kv.backup(&copy) {
            Ok(()) => {}
            Err(Error::Damaged { path, detail }) => {
                assert_eq!(path, file, "{detail}");
                named += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(named > 5, "{named}");
}

#[test]
fn the_rest_stays_readable_around_a_bad_record() {
    let dir = tempfile::tempdir().unwrap();
    let records = build(dir.path(), Engine::Sqlite);
    let file = dir.path().join("store.sqlite");
    let mut bytes = fs::read(&file).unwrap();
    let bad = Key { space: Space::Message, todo: 2, n: 33 };
    let value = &records[&bad];
    let at = bytes.windows(value.len()).position(|window| window == value).unwrap();
    bytes[at + 3] ^= 1;
    fs::write(&file, bytes).unwrap();

    let kv = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    assert!(matches!(kv.get(bad), Err(Error::Corrupt { key, .. }) if key == bad));
    let Err(Error::Corrupt { key, .. }) = kv.scan(bad.space, 2, 0..100, 100) else {
        panic!("the scan went over a bad record")
    };
    assert_eq!(key, bad);
    // A scan whose limit stops before it is not affected, and scans can skip it.
    assert_eq!(kv.scan(bad.space, 2, 0..100, 33).unwrap().len(), 33);
    assert_eq!(kv.scan(bad.space, 2, 34..100, 100).unwrap().len(), 26);
    assert_eq!(kv.scan(bad.space, 1, 0..100, 100).unwrap().len(), 60);
    let findings = kv.check().unwrap();
    assert!(matches!(findings[..], [Finding::Record { key, .. }] if key == bad), "{findings:?}");
    // Writing it again repairs it.
    kv.commit(Batch { put: vec![(bad, value.clone())], ..Batch::default() }).unwrap();
    assert_eq!(kv.check().unwrap(), []);
    assert!(!read_all(&*kv, &records, "mended", 0..=0));
}

/// A flipped byte makes sled drop the commits after it. (A store of one segment, as here, loses its end on most
/// flips; a larger one mostly refuses to open.) The witness shows it, and sled still returns everything that an
/// earlier commit left, never a part of it.
#[cfg(feature = "sled")]
#[test]
fn r4_sled_goes_back_not_without_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let records = build(&whole, Engine::Sled);
    let bytes = fs::read(whole.join("store.sled/db")).unwrap();
    let filled: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let mut dice = Dice(11);
    let (mut refused, mut short) = (0, 0);
    for trial in 0..31 {
        let copy = dir.path().join("copy");
        run("cp", &["-r", whole.to_str().unwrap(), copy.to_str().unwrap()]);
        let at = filled[dice.below(filled.len())];
        let mut bad = bytes.clone();
        // The first copy is whole: without it, what the others lose would prove nothing.
        let whole = trial == 0;
        bad[at] ^= if whole { 0 } else { 1 << dice.below(8) };
        fs::write(copy.join("store.sled/db"), &bad).unwrap();
        match open(&copy, Engine::Sled, Mode::ReadWrite) {
            Ok(kv) if whole => {
                assert!(!read_all(&*kv, &records, "whole", 0..=59), "a whole copy is short");
            }
            Ok(kv) => {
                if read_all(&*kv, &records, &format!("byte {at}"), 0..=59) {
                    let head = kv.head(1).unwrap();
                    for space in [Space::Message, Space::Block, Space::Vector] {
                        let all = kv.scan(space, 2, 0..Key::N_END, 1000).unwrap();
                        assert_eq!(all.len() as u64, head, "byte {at}: a part of a commit");
                    }
                    short += 1;
                    let lost = foldback_kv::Lost { acknowledged: 60, held: head };
                    assert_eq!(kv.lost().unwrap(), Some(lost), "byte {at}");
                    assert!(kv.check().unwrap().contains(&Finding::Lost(lost)), "byte {at}");
                    let unchanged = fs::read(copy.join("store.sled/db")).unwrap() == bad;
                    assert!(unchanged, "byte {at}: it wrote over what remains");
                }
            }
            Err(_) => refused += 1,
        }
        fs::remove_dir_all(&copy).unwrap();
    }
    eprintln!("30 flips: {refused} sled stores refused, {short} short and noticed");
    assert!(short > 5, "the flips hit too little to prove anything");
}

/// R1: a process that dies while sled writes its snapshot leaves it unfinished.
#[cfg(feature = "sled")]
#[test]
fn r1_an_unfinished_snapshot_of_sled_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let records = build(dir.path(), Engine::Sled);
    for rest in [&b""[..], b"0123456789abcdef"] {
        // The newest by its name, as the one of the next opening would be.
        let unfinished = dir.path().join("store.sled/snap.00FFFFFFFFFFFFFF.generating");
        fs::write(&unfinished, rest).unwrap();
        let kv = open(dir.path(), Engine::Sled, Mode::ReadWrite).unwrap();
        assert!(!read_all(&*kv, &records, "unfinished", 0..=59), "something is missing");
        assert_eq!(kv.check().unwrap(), []);
        assert!(!unfinished.exists());
    }
}

fn run(program: &str, arguments: &[&str]) {
    assert!(Command::new(program).args(arguments).status().unwrap().success());
}

/// A copy of a store that is in use, as a crash would leave it: made by another process, because
/// closing a handle of the file in this one would drop the store's locks.
fn crashed(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in ["FORMAT", "store.sqlite", "store.sqlite-wal"] {
        run("cp", &[from.join(name).to_str().unwrap(), to.join(name).to_str().unwrap()]);
    }
}

fn append(kv: &dyn Kv, n: u64) {
    let put = vec![(Key { space: Space::Message, todo: 1, n }, format!("record {n}").into_bytes())];
    kv.commit(Batch {
        expect: Some(Expect { todo: 1, head: n, next: n + 1 }),
        put,
        delete: vec![],
    })
    .unwrap();
}

fn log_findings(kv: &Arc<dyn Kv>) -> usize {
    let findings = kv.check().unwrap();
    assert!(findings.iter().all(|finding| matches!(finding, Finding::Log { .. })), "{findings:?}");
    findings.len()
}

#[test]
fn a_damaged_log_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let kv = open(&live, Engine::Sqlite, Mode::ReadWrite).unwrap();
    (0..20).for_each(|n| append(&*kv, n));
    let image = dir.path().join("image");
    crashed(&live, &image);
    drop(kv);
    let log = fs::read(image.join("store.sqlite-wal")).unwrap();
    let reopen = |log: &[u8]| {
        let copy = tempfile::tempdir().unwrap();
        for name in ["FORMAT", "store.sqlite"] {
            fs::copy(image.join(name), copy.path().join(name)).unwrap();
        }
        fs::write(copy.path().join("store.sqlite-wal"), log).unwrap();
        let kv = open(copy.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
        (copy, kv)
    };

    // Whole: everything is there. Torn in its last frame: the last commit is missing, as after a
    // crash before the acknowledgement.
    let (_copy, kv) = reopen(&log);
    assert_eq!((kv.head(1).unwrap(), log_findings(&kv)), (20, 0));
    let (_copy, kv) = reopen(&log[..log.len() - 100]);
    assert_eq!((kv.head(1).unwrap(), log_findings(&kv)), (19, 0));

    // Flipped before the last commit: SQLite silently drops acknowledged commits.
    let frame = 24 + 4096;
    let last_commit = log.len() - 2 * frame;
    let mut dice = Dice(3);
    for trial in 0..100 {
        let at = if trial < 32 { trial } else { dice.below(last_commit) };
        let mut bad = log.clone();
        bad[at] ^= 1 << dice.below(8);
        let (_copy, kv) = reopen(&bad);
        assert_eq!(log_findings(&kv), 1, "byte {at}");
        let head = kv.head(1).unwrap();
        assert!(head < 20, "byte {at} cost nothing");
        // It is still reported after new commits have overwritten it.
        append(&*kv, head);
        assert_eq!(log_findings(&kv), 1, "byte {at}, after a commit");
    }
}
