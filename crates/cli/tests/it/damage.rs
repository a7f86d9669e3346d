//! What a damaged store still gives.

use crate::shell::{Shell, line};
use foldback_core::{Message, ToolCall, ToolCallId};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Flips a bit at the one place in a file where these bytes occur.
fn flip(file: &Path, needle: &[u8]) {
    let mut bytes = std::fs::read(file).unwrap();
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

fn messages() -> Vec<Message> {
    let message = |n: usize| match n {
        6 => Message::calls("", vec![ToolCall::new("c", "read", "{}")]),
        // Large enough for a file of its own.
        7 => Message::tool_result(&ToolCallId::new("c"), &log()),
        n => Message::user(&format!("第{n}条 canary-{n:04}")),
    };
    (0..12).map(message).collect()
}

fn log() -> String {
    (0..9_000).map(|n| format!("row {n} of the log: {}\n", n * 7919)).collect()
}

#[test]
fn r4_one_damaged_message_does_not_keep_the_others() {
    let shell = Shell::new();
    let file = shell.write("notes.jsonl", line("notes", messages()));
    shell.ok(&["import", &file]);
    let export = ["export", "--todo", "notes"];
    let lenient = ["export", "--todo", "notes", "--lenient"];
    // For a sound todo the two are the same.
    assert_eq!(shell.ok(&lenient).text(), shell.ok(&export).text());
    flip(&shell.store().join("store.sqlite"), b"canary-0003");
    let payloads = shell.store().join("payloads");
    let payload = files(&payloads).into_iter().find(|path| path.metadata().unwrap().len() > 9_000);
    let payload = payload.unwrap();
    let mut bytes = std::fs::read(&payload).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&payload, bytes).unwrap();
    let strict = shell.run(&export);
    assert_eq!((strict.code, strict.text()), (1, ""), "{strict:?}");
    let ran = shell.run(&lenient);
    assert_eq!(ran.code, 1, "{ran:?}");
    let salvaged: Value = ran.json();
    assert_eq!(salvaged["missing"], json!([3, 7]));
    let whole: Vec<Value> = (0..12)
        .filter(|n| ![3, 7].contains(n))
        .map(|n| serde_json::from_str(messages()[n].json()).unwrap())
        .collect();
    assert_eq!(salvaged["messages"], Value::from(whole));
    for missing in ["message 3 is missing", "message 7 is missing"] {
        assert!(ran.stderr.contains(missing), "{missing}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    // What was salvaged is a conversation, which another store accepts.
    let file = shell.write("salvaged.jsonl", &ran.stdout);
    let other = shell.path("other");
    let other = other.to_str().unwrap();
    assert_eq!(shell.run_bare(&["--store", other, "import", &file]).code, 0);
    let again = shell.run_bare(&["--store", other, "export", "--todo", "notes"]);
    assert_eq!(again.stdout, ran.stdout);
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The pages of one kind in a SQLite database, by number and place (SQLite's file format, section 1.6).
fn pages_of(database: &[u8], kind: u8) -> Vec<(u32, usize)> {
    let size = usize::from(u16::from_be_bytes([database[16], database[17]]));
    let pages = (2..).zip((size..database.len()).step_by(size));
    pages.filter(|(_, at)| database[*at] == kind).collect()
}

/// Each page that leads to others leads to a page of another table instead. If the messages are whole all the same,
/// they are so after a repair.
#[test]
fn r4_a_repair_writes_nothing_into_an_unsound_database() {
    const LEADS_ON: u8 = 0x05;
    const HOLDS_ROWS: u8 = 0x0d;
    let shell = Shell::new();
    let said = |n| Message::user(&format!("{n}: {}", "码头 quay ".repeat(60)));
    let file = shell.write("notes.jsonl", line("notes", (0..120).map(said).collect()));
    shell.ok(&["import", &file]);
    let export = ["export", "--todo", "notes"];
    let expected = shell.ok(&export).stdout;
    let path = shell.store().join("store.sqlite");
    let database = std::fs::read(&path).unwrap();
    let (leading, rows) = (pages_of(&database, LEADS_ON), pages_of(&database, HOLDS_ROWS));
    assert!(leading.len() > 1 && rows.len() > 10, "{leading:?} {rows:?}");
    let mut tried = 0;
    for (page, at) in &leading {
        for (other, _) in rows.iter().step_by(rows.len().div_ceil(5)) {
            let mut damaged = database.clone();
            // The page that the first cell leads to.
            let cell = at + usize::from(u16::from_be_bytes([damaged[at + 12], damaged[at + 13]]));
            damaged[cell..cell + 4].copy_from_slice(&other.to_be_bytes());
            if damaged == database {
                continue;
            }
            std::fs::write(&path, damaged).unwrap();
            let is_whole = shell.run(&export).stdout == expected;
            let option = ["--repair", "--accept-loss"][tried as usize % 2];
            let ran = shell.run(&["doctor", option]);
            assert_eq!(ran.code, 1, "{ran:?}");
            let says = format!("{}{}", ran.text(), ran.stderr);
            assert!(says.contains("nothing in the store is repaired"), "{says}");
            let after = shell.run(&export).stdout == expected;
            assert_eq!(is_whole, after, "page {page} leads to {other}: {says}");
            tried += u32::from(is_whole);
        }
    }
    assert!(tried > 0, "every damage reached the messages");
}

/// R4: a store that cannot be opened any more says what can be done, whichever way it was damaged.
#[test]
fn r4_a_database_that_does_not_open_names_the_way_out() {
    let shell = Shell::with_quay();
    let path = shell.store().join("store.sqlite");
    let database = std::fs::read(&path).unwrap();
    let half = database[..database.len() / 2].to_vec();
    let mut flipped = database;
    flipped[20..23].fill(0xff);
    for damaged in [Some(half), Some(Vec::new()), Some(flipped), None] {
        match &damaged {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let bytes = damaged.map(|bytes| bytes.len());
        for args in [&["todos"][..], &["doctor"], &["doctor", "--repair"], &["verify"]] {
            let ran = shell.run(args);
            assert!([1, 2].contains(&ran.code), "{bytes:?}, {args:?}: {ran:?}");
            let said = format!("{}{}", ran.text(), ran.stderr).to_lowercase();
            assert!(said.contains("restore a backup"), "{bytes:?}, {args:?}: {said}");
        }
    }
}

#[test]
fn r4_a_damaged_format_file_is_written_again() {
    for engine in ["sqlite", "sled"] {
        let shell = Shell::new();
        let file = shell.write("notes.jsonl", line("notes", messages()));
        let run = |args: &[&str]| shell.run(&[&["--engine", engine], args].concat());
        assert_eq!(run(&["import", &file]).code, 0);
        let format = shell.store().join("FORMAT");
        let whole = std::fs::read(&format).unwrap();
        for damaged in [&b"foldback stoze\nversion 3\n"[..], b"", b"\0\0\0\0"] {
            std::fs::write(&format, damaged).unwrap();
            let ran = run(&["todos"]);
            assert_eq!(ran.code, 2, "{ran:?}");
            assert!(ran.stderr.contains("doctor --repair"), "{}", ran.stderr);
            let ran = run(&["doctor", "--repair"]);
            assert!(ran.code == 0 && ran.stderr.contains("repaired: the file FORMAT"), "{ran:?}");
            assert_eq!(std::fs::read(&format).unwrap(), whole);
            assert_eq!(run(&["export", "--todo", "notes"]).text(), line("notes", messages()));
        }
        let ran = run(&["doctor", "--repair"]);
        assert!(ran.code == 0 && !ran.stderr.contains("FORMAT"), "{ran:?}");
    }
    // Another program's database is not made a store.
    let shell = Shell::new();
    shell.folders(&["store"]);
    std::fs::write(shell.store().join("store.sqlite"), "SQLite format 3\0").unwrap();
    let ran = shell.run(&["doctor", "--repair"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(!shell.store().join("FORMAT").exists());
}
