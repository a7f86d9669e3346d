//! BS8: a tool is handed what references name; the bytes never enter the conversation.

use crate::story::{exchange, in_memory, open, todo};
use foldback::core::Reference;
use foldback::{Close, Memory, Session};
use foldback_agent::{Agent, Executor, React, Task};
use foldback_core::{ContextManager, HandOverError, Message, ToolCall};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::Toolbox;
use foldback_tools::{Permissions, toolset};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn table(n: usize) -> String {
    (0..4_000).map(|row| format!("行 {row} of table {n}\n")).collect()
}

/// A session with three large results, in closed blocks; their references.
fn session(memory: &Memory) -> (Session, Vec<Reference>) {
    let mut session = memory.session(&todo("tables")).unwrap();
    for n in 0..3 {
        session.record_all(exchange(n, "table", &table(n)).to_vec()).unwrap();
    }
    session.close(Close::End).unwrap();
    let references = (1..=3)
        .map(|n| {
            let todo = memory.find(session.todo()).unwrap();
            let meta = memory.payloads().meta(&todo, n).unwrap();
            Reference::parse_in(session.todo(), &meta.reference().to_string()).unwrap()
        })
        .collect();
    (session, references)
}

fn handed(session: &Session, asked: &str, most: u64) -> Result<String, HandOverError> {
    let mut out = Vec::new();
    let bytes = session.hand_over().unwrap().hand_over(asked, most, &mut out)?;
    assert_eq!(bytes, out.len() as u64);
    Ok(String::from_utf8(out).unwrap())
}

#[track_caller]
fn refused(session: &Session, asked: &str) -> String {
    match handed(session, asked, u64::MAX) {
        Err(HandOverError::Mistake(what)) => what,
        other => panic!("{other:?}"),
    }
}

/// BS8: by short and full names, whole or some lines, and blocks as JSON Lines.
#[test]
fn bs8_a_tool_is_handed_bytes_lines_and_blocks() {
    let memory = in_memory();
    let (session, references) = session(&memory);
    let full = references[2].to_string();
    for name in [full.as_str(), &full.replace("tables/", ""), &format!(" {full}\n")] {
        assert_eq!(handed(&session, name, u64::MAX).unwrap(), table(2));
    }
    let lines = |from: usize, to: usize| -> String {
        table(2).split_inclusive('\n').skip(from - 1).take(to + 1 - from).collect()
    };
    for (asked, expected) in [
        ("#lines=1-2", lines(1, 2)),
        ("#lines=3999-", lines(3_999, 4_000)),
        ("#lines=4000-9000", lines(4_000, 4_000)),
        ("#lines=4001-", String::new()),
    ] {
        assert_eq!(
            handed(&session, &format!("{full}{asked}"), 1_000).unwrap(),
            expected,
            "{asked}"
        );
    }
    assert!(refused(&session, &format!("{full}#lines=2")).contains("names no lines"));

    let lines = handed(&session, "b_001", u64::MAX).unwrap();
    let block = memory.blocks(session.todo(), 0, 1).unwrap().remove(0);
    let messages = memory.messages(session.todo(), block.range.as_u64()).unwrap();
    let read: Vec<Message> = lines.lines().map(|line| Message::from_json(line).unwrap()).collect();
    assert_eq!(read, messages);
    assert!(lines.contains("行 3999 of table 0"), "large parts are whole in it");
}

/// BS8: a mistake of the model is a sentence that names the next step.
#[test]
fn bs8_a_mistake_is_an_answer() {
    let memory = in_memory();
    let (session, references) = session(&memory);
    let mut other = memory.session(&todo("other")).unwrap();
    other.record_all(exchange(0, "table", &table(7)).to_vec()).unwrap();
    other.close(Close::End).unwrap();
    let next = "Use a reference as it was shown; search_block and list_blocks show them.";
    assert_eq!(
        refused(&session, "src/表.csv"),
        format!(
            "A stored part (store://<n>-<check>) or a block (b_<todo>_<nnn>) is expected, not \
             \"src/表.csv\". {next}"
        )
    );
    for missing in
        ["store://99-aaaa", "b_tables_099", "b_other_001", "b_never_001", "store://other/1-aaaa"]
    {
        let expected = format!("Nothing is stored under {missing:?} in this task. {next}");
        assert_eq!(refused(&session, missing), expected);
    }
    let good = references[0].to_string();
    let slip = if good.ends_with('a') { "b" } else { "a" };
    let said = refused(&session, &format!("{}{slip}", &good[..good.len() - 1]));
    assert!(
        said.contains(&format!("part 1 of this task is {}", good.replace("tables/", ""))),
        "{said}"
    );
}

/// BS8, TD2: granted content is handed over like the todo's own, and the hand-over ends with the grant,
/// even for a tool that got access before.
#[test]
fn bs8_what_was_granted_is_handed_over() {
    let memory = in_memory();
    let (_, references) = session(&memory);
    let reader = memory.session(&todo("reader")).unwrap();
    let name = references[0].to_string();
    assert!(refused(&reader, &name).contains("Nothing is stored"));
    memory.grants().grant(&todo("tables"), reader.todo(), &references[..1]).unwrap();
    let before = reader.hand_over().unwrap();
    assert_eq!(handed(&reader, &name, u64::MAX).unwrap(), table(0));
    assert!(refused(&reader, &references[1].to_string()).contains("Nothing is stored"));
    memory.grants().revoke(&todo("tables"), reader.todo(), &references[0]).unwrap();
    assert!(refused(&reader, &name).contains("Nothing is stored"));
    assert!(before.hand_over(&name, u64::MAX, &mut Vec::new()).is_err());
}

/// BS8, BS6: damaged content is not handed over, and the answer says so.
#[test]
fn bs8_damage_is_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let (session, references) = session(&memory);
    let large: Vec<_> = files(&dir.path().join("payloads"));
    assert_eq!(large.len(), 3, "each is a file of its own");
    for path in &large {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    let said = refused(&session, &references[0].to_string());
    assert!(said.contains("is damaged and cannot be handed over"), "{said}");
}

/// BS8: the size of a hand-over is bounded, and checked before anything is read; if only some lines are
/// handed over, only those count.
#[test]
fn bs8_what_is_handed_over_is_bounded() {
    let memory = in_memory();
    let (session, references) = session(&memory);
    let (name, size) = (references[0].to_string(), table(0).len() as u64);
    assert_eq!(handed(&session, &name, size).unwrap().len() as u64, size);
    let mut out = Vec::new();
    let error = session.hand_over().unwrap().hand_over(&name, size - 1, &mut out).unwrap_err();
    assert!(error.to_string().contains("give some of its lines"), "{error}");
    assert!(out.is_empty(), "nothing was written");
    assert_eq!(handed(&session, &format!("{name}#lines=1-1"), 100).unwrap(), "行 0 of table 0\n");
    assert!(handed(&session, &format!("{name}#lines=1-9"), 100).is_err());
    assert!(handed(&session, "b_001", 1_000).is_err(), "a block is its messages, whole");
}

/// BS8: the bytes never enter the conversation: a file is written from a result of 70 KB of which the
/// model saw the beginning, and the model says only the reference.
#[tokio::test(flavor = "current_thread")]
async fn bs8_only_the_result_enters_the_conversation() {
    let memory = in_memory();
    let (mut session, references) = session(&memory);
    let before = session.len();
    let name = references[0].to_string();
    let arguments = json!({"path": "表.txt", "content": name}).to_string();
    let model = ScriptedModel::new([
        Answer::from(ToolCall::new("w", "file_write", &arguments)),
        Answer::text("写好了"),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let tools = toolset(&Permissions::in_workspace(folder.path())).unwrap();
    let agent = Agent::new(Arc::new(model), Executor::new(Toolbox::new(tools).unwrap()));
    let task = Task::new("write", "Keep the first table in 表.txt.");
    agent.run(&React::default(), &mut session, &task).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("表.txt")).unwrap(), table(0));
    let said = memory.messages(session.todo(), before..session.len()).unwrap();
    let size: usize = said.iter().map(|message| message.json().len()).sum();
    assert!(size < 800, "{size}");
    let told = format!("made 表.txt: 78,890 bytes, {name}");
    assert!(said.iter().any(|message| message.text() == told), "{said:?}");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.file_name() != "lock" {
            found.push(entry.path());
        }
    }
    found
}
