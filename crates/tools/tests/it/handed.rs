//! BS8: contents of a memory that are handed to tools by reference.

use crate::tools::Folder;
use foldback::{Memory, Options, Session};
use foldback_core::{Message, TodoId, ToolCall, ToolCallId};
use foldback_sandbox::Sandbox;
use foldback_tool::ToolErrorKind;
use serde_json::json;

fn rows() -> String {
    (1..=2_000).map(|n| format!("第{n}行 {}\n", n * 37 % 1_000)).collect()
}

/// A session in which a tool answered with rows, and their reference.
fn session() -> (Session, String) {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let mut session = memory.session(&TodoId::new("rows").unwrap()).unwrap();
    session.record(Message::calls("", vec![ToolCall::new("c", "rows", "{}")])).unwrap();
    session.record(Message::tool_result(&ToolCallId::new("c"), &rows())).unwrap();
    let stored = memory.payloads().meta(&memory.find(session.todo()).unwrap(), 1).unwrap();
    (session, stored.reference().to_string())
}

/// BS8: a file is written from what a reference names, byte for byte, or from some of its lines.
#[tokio::test]
async fn bs8_a_file_is_written_of_a_reference() {
    let (mut session, name) = session();
    let folder = Folder::with(&[]);
    let mut write = async |path: &str, content: String| {
        let arguments = json!({"path": path, "content": content});
        folder.call_in(&mut session, "file_write", arguments).await
    };
    let told = write("rows.txt", name.clone()).await.unwrap().data.text;
    assert_eq!(folder.content("rows.txt"), rows());
    assert_eq!(told, format!("made rows.txt: {} bytes, {name}", "28,673"));
    write("two.txt", format!("{name}#lines=2-3\n")).await.unwrap();
    assert_eq!(folder.content("two.txt"), "第2行 74\n第3行 111\n");
    // Words around a reference are a text like any other.
    write("note.txt", format!("see {name}")).await.unwrap();
    assert_eq!(folder.content("note.txt"), format!("see {name}"));

    let error = write("rows.txt", "store://9-aaaa".to_owned()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Arguments);
    assert!(error.message.starts_with("Nothing is stored under \"store://9-aaaa\""), "{error}");
    assert_eq!(folder.content("rows.txt"), rows(), "nothing was written");
}

/// BS8: content that is larger than a file may be is refused before it is read.
#[tokio::test]
async fn bs8_a_file_is_bounded_as_always() {
    let (mut session, name) = session();
    let folder = Folder::permitting(&[], |mut permissions| {
        permissions.files.file_bytes = 4_096;
        permissions
    });
    let arguments = json!({"path": "rows.txt", "content": name});
    let error = folder.call_in(&mut session, "file_write", arguments).await.unwrap_err();
    assert!(error.message.contains("more than the 4 KiB that this call may be handed"), "{error}");
    assert!(!folder.path("rows.txt").exists());
}

/// If nothing is stored, a text that looks like a reference is plain text.
#[tokio::test]
async fn bs8_without_a_memory_a_reference_is_a_text() {
    let folder = Folder::with(&[]);
    let arguments = json!({"path": "a.txt", "content": "store://1-abcd"});
    folder.call("file_write", arguments).await.unwrap();
    assert_eq!(folder.content("a.txt"), "store://1-abcd");
}

/// BS8: a command reads references as files, which it cannot change and which are removed with it.
#[tokio::test]
async fn bs8_a_command_is_handed_files() {
    if let Err(why) = Sandbox::available() {
        println!("SKIPPED: {why}");
        return;
    }
    let (mut session, name) = session();
    let folder = Folder::permitting(&[], |permissions| permissions.with_shell());
    let mut run = async |command: &str, files: serde_json::Value| {
        let arguments = json!({"command": command, "files": files});
        folder.call_in(&mut session, "shell_run", arguments).await
    };
    let lines = format!("{name}#lines=7-7");
    let ran = run("wc -l < \"$1\"; cat \"$2\"; echo $#", json!([name, lines])).await.unwrap();
    assert_eq!(ran.data.text.trim_start(), "2000\n第7行 259\n2\n[exit code 0]");
    let spoiled = "echo x >> \"$1\" || rm -f \"$1\"; tail -n 1 \"$1\"; echo \"$1\" > path";
    let ran = run(spoiled, json!([name])).await.unwrap();
    assert!(ran.data.text.contains("第2000行 0\n"), "{}", ran.data.text);
    let path = folder.content("path");
    assert!(path.trim().ends_with(&name["store://".len()..]), "{path}");
    assert!(!std::path::Path::new(path.trim()).exists(), "it is gone");
    let error = run("cat \"$1\"", json!([name, "b_rows_009"])).await.unwrap_err();
    assert!(error.message.starts_with("Nothing is stored under \"b_rows_009\""), "{error}");
    let error = folder.call("shell_run", json!({"command": "true", "files": [name]})).await;
    assert!(error.unwrap_err().message.starts_with("nothing is stored in this conversation"));
}
