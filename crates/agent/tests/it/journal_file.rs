//! A journal's file whose last line was being written when the process died.

use foldback_agent::{FileJournal, Journal, JournalError, Record};
use std::fs;
use std::path::Path;
use tempfile::tempdir;

fn note(n: u32) -> Record {
    Record::Note { kind: "note".to_owned(), body: format!("第{n}条 👩‍✈️") }
}

fn notes(of: &[u32]) -> Vec<Record> {
    of.iter().copied().map(note).collect()
}

/// Appends two records after the intact part, and looks for all records, in this process and the next.
#[track_caller]
fn goes_on(path: &Path, a: &[u32], b: &[u32]) {
    let journal = FileJournal::open(path).unwrap();
    journal.append("b", &note(8)).unwrap();
    journal.append("a", &note(9)).unwrap();
    let check = |journal: &FileJournal| {
        assert_eq!(journal.records("a").unwrap(), notes(&[a, &[9]].concat()));
        assert_eq!(journal.records("b").unwrap(), notes(&[b, &[8]].concat()));
    };
    check(&journal);
    drop(journal);
    check(&FileJournal::open(path).unwrap());
}

/// R12: records that are appended after a torn end are found, wherever the line is torn; each run finds its
/// own records, and they are the same in the next process.
#[test]
fn r12_records_behind_a_torn_end_are_found() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("journal");
    let journal = FileJournal::open(&path).unwrap();
    for (run, n) in [("a", 1), ("b", 2), ("a", 3)] {
        journal.append(run, &note(n)).unwrap();
    }
    drop(journal);
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let last = lines.last().unwrap().len();
    for torn in 1..=last {
        fs::write(&path, &whole[..whole.len() - torn]).unwrap();
        goes_on(&path, &[1], &[2]);
    }
    for header in 0..lines[0].len() {
        fs::write(&path, &whole[..header]).unwrap();
        goes_on(&path, &[], &[]);
    }
}

/// R12: the error for a foreign file shows its beginning, and no more.
#[test]
fn r12_of_another_file_the_beginning_is_told() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("not-a-journal");
    fs::write(&path, "西湖 ".repeat(5_000) + "\n").unwrap();
    let Err(JournalError::Version { found, .. }) = FileJournal::open(&path) else { panic!() };
    assert_eq!(found.chars().count(), 80);
    assert_eq!(fs::read(&path).unwrap().len(), 35_001, "it is left as it was");
}
