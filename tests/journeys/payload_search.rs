//! BS7: text that occurs only in a stored part is found, with its reference and its lines.

use crate::story::{exchange, in_memory, options, todo};
use foldback::{Close, Memory, Session};
use foldback_core::{Message, ToolCall};
use std::path::{Path, PathBuf};

/// A log of about 40 KB for 700 lines, with one unique line.
fn log(lines: usize, needle: &str) -> String {
    let line = |n: usize| match n {
        n if n == lines * 5 / 8 => format!("2026-03-01T02:11:{:02}Z INFO {needle}\n", n % 60),
        n => format!("2026-03-01T02:{:02}:{:02}Z INFO worker {} is idle\n", n / 60 % 60, n % 60, n),
    };
    (1..=lines).map(line).collect()
}

/// Asks for a log, reads it, and continues with something else until it has left the view.
fn read_log(session: &mut Session, question: &str, lines: usize, needle: &str) {
    session.record(Message::user(question)).unwrap();
    let read = ToolCall::new("r1", "read_log", r#"{"path":"/var/log/nightly"}"#);
    session.record(Message::calls("", vec![read.clone()])).unwrap();
    session.record(Message::tool_result(&read.id, &log(lines, needle))).unwrap();
    session.record(Message::assistant("Noted.")).unwrap();
    session.close(Close::Switch).unwrap();
    for n in 0..14 {
        for message in exchange(n, "scheduler", "fn tick() {}") {
            session.record(message).unwrap();
        }
    }
}

/// The reference and the lines in an answer.
fn told(answer: &str) -> (String, u64, u64) {
    let at = answer.find("in store://").unwrap_or_else(|| panic!("no reference in: {answer}"));
    let place = answer[at + 3..].split_once([':', '\n']).map(|_| &answer[at + 3..]).unwrap();
    let (reference, rest) = place.split_once(", lines ").unwrap();
    let lines: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
    let (first, last) = lines.split_once('-').unwrap();
    (reference.to_owned(), first.parse().unwrap(), last.parse().unwrap())
}

fn search(memory: &Memory, id: &str, query: &str) -> String {
    let arguments = serde_json::json!({ "query": query }).to_string();
    memory.recall(&todo(id), "search_block", &arguments).unwrap().text
}

#[track_caller]
fn check(question: &str, needle: &str, query: &str, words: &str) {
    let memory = in_memory();
    let mut session = memory.session(&todo("t")).unwrap();
    read_log(&mut session, question, 700, needle);
    let block = memory.recall(&todo("t"), "load", r#"{"ref":"b_001"}"#).unwrap().text;
    assert!(!block.contains(needle), "its preview tells it already: {block}");
    // As in an agent's loop, so that the answer is recorded too.
    let mut recall = |id: &str, tool: &str, arguments: String| {
        let call = ToolCall::new(id, tool, &arguments);
        session.record(Message::calls("", vec![call.clone()])).unwrap();
        let answer = session.call(&call).unwrap();
        session.record(Message::tool_result(&call.id, &answer.text)).unwrap();
        answer.text
    };
    let found = recall("s1", "search_block", serde_json::json!({ "query": query }).to_string());
    assert!(found.contains(words), "{query}: {found}");
    let (reference, first, last) = told(&found);
    assert!((first..=last).contains(&437), "{query}: {found}");
    let lines = format!("{first}-{last}");
    let loaded =
        recall("l1", "load", serde_json::json!({ "ref": reference, "lines": lines }).to_string());
    assert!(loaded.contains(needle), "{loaded}");
    session.record(Message::assistant("That is it.")).unwrap();
    session.close(Close::End).unwrap();

    // What was recalled is stored as references, comes back word for word, and is not found again.
    let checkup = memory.maintenance().doctor().unwrap();
    assert_eq!((checkup.payloads, &checkup.findings), (1, &Vec::<String>::new()));
    let export = memory.conversations().export(&todo("t")).unwrap();
    for answer in [&found, &loaded] {
        assert!(export.messages.iter().any(|message| message.text() == *answer), "{answer}");
    }
    let again = search(&memory, "t", query);
    assert!(again.contains("is answered by b_t_001"), "{again}");
    memory.maintenance().forget(&todo("t")).unwrap();
    memory.session(&todo("t")).unwrap();
    assert!(!search(&memory, "t", query).contains("store://"));
}

#[test]
fn bs7_an_error_deep_in_a_log_is_found_with_its_lines() {
    check(
        "Why did the nightly run stop?",
        "E_LEASE_4417 the lease of quay-7 has expired",
        "E_LEASE_4417",
        "the lease of quay-7 has expired",
    );
    check(
        "Why did the nightly run stop?",
        "E_LEASE_4417 the lease of quay-7 has expired",
        "which lease expired?",
        "E_LEASE_4417",
    );
}

#[test]
fn bs7_a_chinese_line_deep_in_a_log_is_found_with_its_lines() {
    check("夜间任务为什么停了？", "船闸租约过期，重试三次后放弃", "船闸租约过期", "重试三次后放弃");
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] }).collect()
}

/// On disk, with an index that counts the passages; and after the payload's file is damaged.
#[test]
fn bs7_a_damaged_payload_leaves_its_block_to_be_found_by_its_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let mut few = options();
    few.index.index_after_passages = 20;
    // The index thread may run between two blocks, however few there are to index.
    few.index.batch_blocks = 1;
    let memory = Memory::open(dir.path(), few.clone()).unwrap();
    let mut session = memory.session(&todo("t")).unwrap();
    let question = "Why did the nightly quokka run stop?";
    read_log(&mut session, question, 4_000, "E_LEASE_4417 expired");
    drop(session);
    memory.maintenance().index().unwrap();
    let found = search(&memory, "t", "E_LEASE_4417");
    assert!(found.contains("E_LEASE_4417 expired"), "{found}");
    let checkup = memory.maintenance().doctor().unwrap();
    assert!(checkup.is_clean() && checkup.index_lag == 0, "{:?}", checkup.findings);
    assert!(dir.path().join("index/1/tantivy").exists());
    drop(memory);

    let payloads = files_under(&dir.path().join("payloads"));
    let large = payloads.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(large).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x40;
    std::fs::write(large, bytes).unwrap();
    std::fs::remove_dir_all(dir.path().join("index")).unwrap();
    let memory = Memory::open(dir.path(), few).unwrap();
    let found = search(&memory, "t", "nightly quokka");
    assert!(found.contains(question), "{found}");
    let found = search(&memory, "t", "E_LEASE_4417");
    assert!(found.contains("no block matches"), "{found}");
}

/// A file that is read again and again is found once, by the block that read it last.
#[test]
fn bs7_a_log_that_is_read_again_is_found_once() {
    let memory = in_memory();
    let mut session = memory.session(&todo("t")).unwrap();
    for _ in 0..4 {
        read_log(&mut session, "Why did it stop?", 700, "\u{1b}[31mE_LEASE_4417\u{1b}[0m 租约过期");
    }
    for query in ["E_LEASE_4417", "租约过期"] {
        let found = search(&memory, "t", query);
        assert_eq!(found.matches("in store://").count(), 1, "{query}: {found}");
        assert!(found.contains("; also in b_t_0"), "{query}: {found}");
        assert!(found.contains("租约过期"), "{query}: {found}");
    }
}
