//! Flips bits: in the database, in payload files, indexes, and every other file of a store.

use crate::place::folder;
use crate::work::{Setup, Work, own_name};
use crate::{Error, Report, doing};
use foldback::core::Message;
use foldback::{Memory, Mode};
use foldback_testkit::Random;
use std::io;
use std::path::{Path, PathBuf};

/// The minimum number of hits for each kind of file.
const OF_EACH: usize = 3;

/// Flips `flips` bits, one at a time, in copies of one store.
///
/// # Errors
/// When the store to be broken cannot be created.
pub fn bytes(seed: u64, flips: u64) -> Result<Report, Error> {
    let dir = folder()?;
    let whole = dir.path().join("whole");
    let setup = Setup::of(seed);
    Work { writer: 0, seed, steps: 30, shared: 0, setup }.run(&whole, &mut io::sink())?;
    let memory = Memory::open(&whole, setup.options()?)?;
    memory.maintenance().index()?;
    drop(memory);
    let expected = read(&whole, setup)?;
    let files = files(&whole).map_err(doing("list a store"))?;

    let mut report = Report::default();
    report.counts.insert("messages in the store".to_owned(), expected.len() as u64);
    let mut dice = Random::new(seed);
    let mut one_of_each: Vec<&PathBuf> = files.iter().collect();
    one_of_each.sort_by_key(|file| kind(file));
    one_of_each.dedup_by_key(|file| kind(file));
    // Each kind of file is hit a few times, whatever the random numbers are.
    let first = one_of_each.iter().copied().cycle().take(one_of_each.len() * OF_EACH);
    let first: Vec<&PathBuf> = first.collect();
    for flip_number in 0..flips as usize {
        let file = match first.get(flip_number) {
            Some(file) => file,
            None => &files[dice.below(files.len())],
        };
        let copy = dir.path().join("copy");
        copy_folder(&whole, &copy).map_err(doing("copy a store"))?;
        let (at, bit) = flip(&copy.join(file), &mut dice).map_err(doing("flip a bit"))?;
        let trial = format!("bit {bit} of byte {at} of {}", file.display());
        let (outcome, findings) = check(&copy, setup, &expected);
        report.count(&format!("{}: {outcome}", kind(file)));
        report.found(seed, &trial, findings);
        report.trials += 1;
        std::fs::remove_dir_all(&copy).map_err(doing("remove a copy"))?;
    }
    Ok(report)
}

/// Returns the messages that a store of these trials holds.
fn read(store: &Path, setup: Setup<'_>) -> Result<Vec<Message>, foldback::Error> {
    setup.messages(&open(store, setup, Mode::ReadOnly)?, &own_name(0))
}

fn open(store: &Path, setup: Setup<'_>, mode: Mode) -> Result<Memory, foldback::Error> {
    Memory::open(store, setup.options()?.with_mode(mode))
}

/// Returns the outcome for a damaged store, and what breaks a promise: a different or missing message that neither
/// reading nor `doctor` notices, or a repair that makes things worse.
fn check(store: &Path, setup: Setup<'_>, expected: &[Message]) -> (&'static str, Vec<String>) {
    let mut findings = Vec::new();
    let found = read(store, setup);
    let is_same = found.as_ref().is_ok_and(|found| found == expected);
    let memory = match open(store, setup, Mode::ReadOnly) {
        Ok(memory) => memory,
        Err(_) => return ("refused", findings),
    };
    let is_noticed = found.is_err()
        || !matches!(memory.maintenance().lost(), Ok(None))
        || memory.maintenance().doctor().map_or(true, |checkup| !checkup.is_clean());
    let is_sound = memory.maintenance().is_sound().unwrap_or(false);
    drop(memory);
    if !is_same && !is_noticed {
        findings
            .push("what is read differs from what was recorded, and nothing reports it".to_owned());
    }
    let outcome = match (is_same, is_noticed) {
        (true, false) => "nothing lost, nothing found",
        (true, true) => "nothing lost, found",
        (false, _) => "something lost, noticed",
    };
    // A repair need not restore anything, but it must not lose more. Like the command, it begins with a check.
    if is_same
        && is_noticed
        && is_sound
        && let Ok(memory) = open(store, setup, Mode::ReadWrite)
    {
        let _ = memory.maintenance().repair();
        let _ = memory.maintenance().index();
        drop(memory);
        let after = read(store, setup);
        if !after.is_ok_and(|after| after == expected) {
            findings.push("a repair lost what was whole before".to_owned());
        }
    }
    (outcome, findings)
}

/// Returns the files of a store that are not empty, by their paths in it.
fn files(store: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(store.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true => folders.push(path),
                false if entry.metadata()?.len() > 0 => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    // Half of all flips hit the database, which holds the records.
    let database = found.iter().filter(|path| kind(path) == "database").cloned();
    let more: Vec<PathBuf> = database.cycle().take(found.len()).collect();
    found.extend(more);
    Ok(found)
}

/// Returns the kind of a file of a store.
fn kind(file: &Path) -> &'static str {
    match file.iter().next().and_then(|first| first.to_str()) {
        Some("payloads") => "payload",
        Some("index") => "index",
        Some("WITNESS") => "witness",
        Some("FORMAT") => "format",
        Some("audit.jsonl") => "audit log",
        _ => "database",
    }
}

/// Flips a bit, two times in three in a byte that is not zero.
fn flip(file: &Path, dice: &mut Random) -> io::Result<(usize, usize)> {
    let mut bytes = std::fs::read(file)?;
    let mut at = dice.below(bytes.len());
    if dice.below(3) != 0 {
        let from = at;
        at = (from..bytes.len()).chain(0..from).find(|at| bytes[*at] != 0).unwrap_or(from);
    }
    let bit = dice.below(8);
    bytes[at] ^= 1 << bit;
    std::fs::write(file, bytes)?;
    Ok((at, bit))
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &place)?,
            false => drop(std::fs::copy(entry.path(), place)?),
        }
    }
    Ok(())
}
