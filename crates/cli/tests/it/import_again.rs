//! Imports of conversations that were imported before, and have changed since.

use crate::input::said;
use crate::shell::Shell;
use serde_json::Value;
use std::fs::File;
use std::time::{Duration, SystemTime};

/// The texts of a todo's messages.
#[track_caller]
fn texts(shell: &Shell, todo: &str) -> Vec<String> {
    let export = shell.json(&["export", "--todo", todo]);
    let messages = export["messages"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let said = |content: &Value| match content.as_array() {
        Some(parts) => parts.iter().map(|part| text(&part["text"])).collect::<Vec<_>>().join(""),
        None => text(content),
    };
    messages.map(|message| said(&message["content"])).collect()
}

/// The lines of the session `s` as those of another.
fn as_session(name: &str, lines: &str) -> String {
    lines.replace("\"s\"", &format!("\"{name}\"")).replace("\"s-", &format!("\"{name}-"))
}

/// A question, and the line of an answer that its log does not call complete.
fn begun() -> String {
    let answer = said("s", 1, "assistant", "我先看").replace("\"end_turn\"", "null");
    said("s", 0, "user", "哪个端口？") + &answer
}

/// BL2, RC6: a response that is still being written waits for the next import, and its block stays open.
#[test]
fn rc6_an_import_leaves_a_response_that_is_still_being_written() {
    let (shell, once) = (Shell::new(), Shell::new());
    let file = shell.write("s.jsonl", begun());
    let ran = shell.ok(&["--json", "import", &file]);
    let found = ran.json();
    assert_eq!((&found["messages"], &found["recorded"]), (&1.into(), &1.into()), "{found}");
    assert_eq!(found["blocks"], 0, "{found}");
    assert!(ran.stderr.contains("the last response of s is still being written"), "{ran:?}");
    // The rest of the answer, and more.
    let rest = said("s", 1, "assistant", "是 7001。").replace("\"s-1\"", "\"s-1b\"");
    let more = said("s", 2, "user", "谢谢") + &said("s", 3, "assistant", "不客气。");
    let whole =
        begun() + &rest + &more.replace("\"parentUuid\":\"s-1\"", "\"parentUuid\":\"s-1b\"");
    let file = shell.write("s.jsonl", &whole);
    let found = shell.json(&["import", &file]);
    assert_eq!((&found["held"], &found["recorded"]), (&1.into(), &3.into()), "{found}");
    assert_eq!(texts(&shell, "s"), ["哪个端口？", "我先看是 7001。", "谢谢", "不客气。"]);
    // It is what one import makes of it.
    let file = once.write("s.jsonl", &whole);
    once.ok(&["import", &file]);
    let blocks = |shell: &Shell| {
        let blocks = shell.json(&["blocks", "--todo", "s"]);
        let ids: Vec<Value> =
            blocks.as_array().unwrap().iter().map(|block| block["block_id"].clone()).collect();
        ids
    };
    assert_eq!(blocks(&shell), blocks(&once));
}

/// RC6: a log that nobody writes any more is imported whole, whatever it says of its last response.
#[test]
fn rc6_a_finished_log_comes_in_whole() {
    let shell = Shell::new();
    let file = shell.write("s.jsonl", begun());
    let before = SystemTime::now() - Duration::from_secs(3600);
    File::options().append(true).open(&file).unwrap().set_modified(before).unwrap();
    assert_eq!(shell.json(&["import", &file])["recorded"], 2);
    let packed = zstd::encode_all(as_session("p", &begun()).as_bytes(), 3).unwrap();
    let file = shell.write("p.jsonl.zst", packed);
    assert_eq!(shell.json(&["import", &file])["recorded"], 2);
}
