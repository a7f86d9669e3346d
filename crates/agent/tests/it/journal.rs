//! The journal: what it holds, what it forgives, and what it refuses.

use crate::toolkit::{pause, plan};
use foldback_agent::{
    Decision, FileJournal, Journal, JournalError, MemoryJournal, Record, Spending,
};
use foldback_planner::{Failure, StepId, StepResult};
use foldback_tool::{Data, FailureKind};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::tempdir;

/// One record of each kind, with text that is easily broken.
fn records() -> Vec<Record> {
    let key = || "0123456789abcdef".to_owned();
    let nasty = "雨\n\"quoted\" \\ \u{2028} \0 👩‍✈️ {results[0].data}".to_owned();
    let data = Data { text: nasty.clone(), structured: Some(r#"{"汇率": 7.10}"#.to_owned()) };
    let failure = Failure { kind: FailureKind::Timeout, message: nasty.clone() };
    vec![
        Record::Steps { steps: plan(vec![pause(1, 5, &[]), pause(2, 5, &[1])]).steps, open: false },
        Record::Decided {
            step: StepId(1),
            key: key(),
            decision: Decision::Changed { arguments: r#"{"ms":1}"#.to_owned() },
        },
        Record::Began {
            step: StepId(1),
            key: key(),
            function: "browser_查询订单".to_owned(),
            arguments: r#"{"ms":5}"#.to_owned(),
        },
        Record::Ended {
            step: StepId(1),
            key: key(),
            attempts: 2,
            result: StepResult::Success { data },
            spent: Some(Spending { model_calls: 2, cost: 0.25, ..Spending::default() }),
        },
        Record::Ended {
            step: StepId(2),
            key: key(),
            attempts: 1,
            result: StepResult::Error { failure },
            spent: None,
        },
        Record::Replanned { step: StepId(7) },
        Record::Note { kind: "planner".to_owned(), body: nasty },
    ]
}

fn journal_with(path: &Path, runs: &[&str]) {
    let journal = FileJournal::open(path).unwrap();
    for record in records() {
        for run in runs {
            journal.append(run, &record).unwrap();
        }
    }
}

fn opened(path: &Path) -> Result<Vec<Record>, JournalError> {
    FileJournal::open(path)?.records("run")
}

/// R12: what was appended is read back, each run's own, in order, from a file and from memory.
#[test]
fn r12_records_come_back() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    journal_with(&path, &["run", "另一个"]);
    let journal = FileJournal::open(&path).unwrap();
    assert_eq!(journal.records("run").unwrap(), records());
    assert_eq!(journal.records("另一个").unwrap(), records());
    assert_eq!(journal.records("none").unwrap(), []);
    // It continues where it was.
    journal.append("run", &records()[0]).unwrap();
    assert_eq!(journal.records("run").unwrap().len(), records().len() + 1);

    let memory = MemoryJournal::default();
    for record in records() {
        memory.append("run", &record).unwrap();
    }
    assert_eq!(memory.records("run").unwrap(), records());
    assert_eq!(memory.records("none").unwrap(), []);
}

/// R12: cut anywhere, a journal opens with the intact records, and accepts more.
#[test]
fn r12_a_torn_end_is_cut_off() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    journal_with(&path, &["run"]);
    let whole = fs::read(&path).unwrap();
    let line_ends: Vec<usize> = whole
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    let near_an_end = |length: &usize| line_ends.iter().any(|end| end.abs_diff(*length) <= 2);
    for length in (0..whole.len()).filter(|length| length % 17 == 0 || near_an_end(length)) {
        fs::write(&path, &whole[..length]).unwrap();
        let journal = FileJournal::open(&path).unwrap();
        // The first line is not a record.
        let kept = line_ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
        assert_eq!(journal.records("run").unwrap(), records()[..kept], "cut at {length}");
        journal.append("run", &records()[kept]).unwrap();
        drop(journal);
        assert_eq!(opened(&path).unwrap(), records()[..=kept], "cut at {length}, gone on");
    }
}

/// R12: any other damage is an error that names the line: each byte of each whole line in turn.
#[test]
fn r12_damage_is_named_and_never_read() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    journal_with(&path, &["run"]);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x01;
        fs::write(&path, &damaged).unwrap();
        let line = 1 + whole[..at].iter().filter(|byte| **byte == b'\n').count() as u64;
        match opened(&path) {
            Err(JournalError::Version { .. }) => assert_eq!(line, 1, "byte {at}"),
            Err(JournalError::Damaged { line: named, .. }) => {
                assert!(named == line || (named == line + 1 && damaged[at] == b'\n'), "byte {at}");
            }
            // The very last line end: a torn end like any other.
            Ok(kept) => assert_eq!((at, kept.len()), (whole.len() - 1, records().len() - 1)),
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
}

/// R12: a line that is missing, doubled or in another place is damage too.
#[test]
fn r12_lines_are_numbered() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    journal_with(&path, &["run"]);
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let check = |lines: &[&str], named: u64| {
        fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        match opened(&path) {
            Err(JournalError::Damaged { line, why, .. }) => {
                assert_eq!(line, named);
                assert!(why.contains("is expected"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    };
    check(&[&lines[..2], &lines[3..]].concat(), 3);
    check(&[&lines[..3], &lines[2..]].concat(), 4);
    check(&[&lines[..2], &[lines[3], lines[2]], &lines[4..]].concat(), 3);
}

/// R12: another file, or a journal of another version, is refused and left as it is.
#[test]
fn r12_another_file_is_refused_and_left_alone() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("notes.txt");
    for text in ["shopping list\n", "{\"journal\":2}\n", "\n{\"journal\":1}\n"] {
        fs::write(&path, text).unwrap();
        assert!(matches!(opened(&path), Err(JournalError::Version { expected: 1, .. })), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    // So is one line without an end, but for the beginning of a journal's own first line.
    for text in ["唯一的私钥", "{\"journal\":2", "{\"journal\":1}}", "{ ", "\0"] {
        fs::write(&path, text).unwrap();
        assert!(matches!(opened(&path), Err(JournalError::Version { expected: 1, .. })), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

/// R12: two runs of a program cannot share a journal; the second fails at once.
#[test]
fn r12_a_journal_is_locked() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let first = FileJournal::open(&path).unwrap();
    let error = FileJournal::open(&path).unwrap_err();
    assert!(matches!(error, JournalError::Locked { .. }), "{error:?}");
    drop(first);
    FileJournal::open(&path).unwrap();
}

/// R12: the error for a file that cannot be opened has its path.
#[test]
fn r12_a_journal_that_cannot_be_made_names_its_path() {
    let path = PathBuf::from("/nonexistent/日志.jsonl");
    let error = FileJournal::open(&path).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/日志.jsonl"), "{error}");
}

/// R12: a journal holds arguments and results; nobody else may read it.
#[cfg(unix)]
#[test]
fn r12_a_journal_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    FileJournal::open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

/// R12: calls that need durability at the same time share a sync, and all of them are covered.
#[tokio::test]
async fn r12_syncs_are_shared() {
    let dir = tempdir().unwrap();
    let journal = FileJournal::open(dir.path().join("journal.jsonl")).unwrap();
    let each = (0..50).map(|_| async {
        journal.append("run", &records()[1])?;
        journal.sync().await
    });
    futures::future::try_join_all(each).await.unwrap();
    assert_eq!(journal.records("run").unwrap().len(), 50);
}
