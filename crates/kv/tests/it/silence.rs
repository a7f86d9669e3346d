//! Whether damage to a store is reported, engine by engine.
//!
//! The figures of `ARCHITECTURE.md`: `FOLDBACK_WHOLE_TESTS=1 cargo test -p foldback-kv --test it r4_no_damage -- --nocapture`.

use crate::damage::Dice;
use crate::folder::engines;
use crate::golden::copy;
use crate::unwritten::files;
use foldback_kv::{Batch, Engine, Expect, Key, Kv, Mode, Space, open};
use foldback_testkit::effort;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MESSAGES: u64 = 300;

/// The result of reading a damaged store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// All of it.
    Whole,
    /// An error, or a part and the information that there was more.
    Noticed,
    /// A part, and only a check of everything reports it.
    FoundByCheck,
    /// A part.
    Silent,
}

#[derive(Debug, Default)]
struct Figures {
    whole: usize,
    noticed: usize,
    found_by_check: usize,
    silent: usize,
}

impl Figures {
    fn count(&mut self, answer: Answer) {
        *match answer {
            Answer::Whole => &mut self.whole,
            Answer::Noticed => &mut self.noticed,
            Answer::FoundByCheck => &mut self.found_by_check,
            Answer::Silent => &mut self.silent,
        } += 1;
    }
}

fn value(n: u64) -> Vec<u8> {
    format!("message {n} {}", "折".repeat(n as usize * 37 % 200)).into_bytes()
}

/// A store that its writer closed, and one whose writer was killed after its last commit.
fn build(engine: Engine, dir: &Path) -> [PathBuf; 2] {
    let (closed, killed) = (dir.join("closed"), dir.join("killed"));
    let kv = open(&closed, engine, Mode::ReadWrite).unwrap();
    for n in 0..MESSAGES {
        let put = vec![(Key { space: Space::Message, todo: 1, n }, value(n))];
        let expect = Some(Expect { todo: 1, head: n, next: n + 1 });
        kv.commit(Batch { expect, put, delete: vec![] }).unwrap();
    }
    // By another process: closing a handle in this one would drop the store's locks.
    let copied = Command::new("cp").arg("-r").args([&closed, &killed]).status().unwrap();
    assert!(copied.success());
    drop(kv);
    [closed, killed]
}

/// Reads a store as an export does. Panics on a wrong value.
fn read(store: &Path, engine: Engine, what: &str) -> Answer {
    let Ok(kv) = open(store, engine, Mode::ReadOnly) else { return Answer::Noticed };
    let Ok(found) = kv.scan(Space::Message, 1, 0..Key::N_END, usize::MAX) else {
        return Answer::Noticed;
    };
    for (n, found) in &found {
        assert_eq!(*found, value(*n), "{what}: a wrong value");
    }
    let held = found.len() as u64;
    if held == MESSAGES {
        return Answer::Whole;
    }
    let says_so =
        |kv: &dyn Kv| !matches!((kv.head(1), kv.lost()), (Ok(head), Ok(None)) if head == held);
    if says_so(&*kv) {
        Answer::Noticed
    } else if !kv.check().is_ok_and(|findings| findings.is_empty()) {
        Answer::FoundByCheck
    } else {
        Answer::Silent
    }
}

/// One of the files that are not empty: each as often as the others, or by its length.
fn pick<'a>(
    files: &'a [(PathBuf, Vec<u8>)],
    dice: &mut Dice,
    by_length: bool,
) -> &'a (PathBuf, Vec<u8>) {
    let weight = |bytes: &[u8]| if by_length { bytes.len() } else { bytes.len().min(1) };
    let mut at = dice.below(files.iter().map(|(_, bytes)| weight(bytes)).sum());
    let here = files.iter().find(|(_, bytes)| match at.checked_sub(weight(bytes)) {
        Some(rest) => {
            at = rest;
            false
        }
        None => true,
    });
    here.unwrap()
}

/// R4: whatever is flipped in a database or cut off from it, and however its writer ended, what is missing is reported.
#[test]
fn r4_no_damage_is_silent() {
    let is_database = |path: &PathBuf| {
        path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("store."))
            && !path.to_string_lossy().ends_with("-shm")
    };
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        for (whole, how) in build(engine, dir.path()).iter().zip(["closed", "killed"]) {
            // Without it, what the damaged copies lose would prove nothing.
            let store = dir.path().join("damaged");
            copy(whole, &store);
            assert_eq!(read(&store, engine, "whole"), Answer::Whole, "{engine}, {how}");
            fs::remove_dir_all(&store).unwrap();
            let held: Vec<_> =
                files(whole).into_iter().filter(|(path, _)| is_database(path)).collect();
            let mut dice = Dice(5);
            let (mut flips, mut cuts) = (Figures::default(), Figures::default());
            let (flipped, cut) = (effort(300), effort(100));
            for trial in 0..flipped + cut {
                let (path, bytes) = pick(&held, &mut dice, trial % 2 == 0);
                let at = dice.below(bytes.len());
                copy(whole, &store);
                let place = store.join(path.strip_prefix(whole).unwrap());
                let mut bad = bytes.clone();
                if trial < flipped {
                    bad[at] ^= 1 << dice.below(8);
                } else {
                    bad.truncate(at);
                }
                fs::write(place, bad).unwrap();
                let what =
                    format!("{engine}, {how}, trial {trial}: byte {at} of {}", path.display());
                let answer = read(&store, engine, &what);
                assert_ne!(answer, Answer::Silent, "{what}");
                if trial < flipped { &mut flips } else { &mut cuts }.count(answer);
                fs::remove_dir_all(&store).unwrap();
            }
            eprintln!("{engine}, {how}, {flipped} flips: {flips:?}");
            eprintln!("{engine}, {how}, {cut} truncations: {cuts:?}");
            assert!(
                cuts.noticed > 0,
                "{engine}, {how}: the damage hit too little to prove anything"
            );
        }
    }
}
