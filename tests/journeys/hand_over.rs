//! BS8: a tool that takes references is handed what they name; the bytes never enter the
//! conversation.

use crate::story::{exchange, in_memory, open, todo};
use foldback::core::Reference;
use foldback::{
    Close, HandOver, Handed, HandedAs, HandedContent, Memory, Session, TakesReferences,
};
use foldback_core::{Message, ToolCall, ToolCallId};
use std::path::{Path, PathBuf};

fn declared() -> TakesReferences {
    TakesReferences::new()
        .argument("count_lines", "file", HandedAs::Path)
        .argument("join", "texts", HandedAs::Text)
        .argument("hash", "data", HandedAs::Bytes)
}

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

#[track_caller]
fn ready(session: &Session, tool: &str, arguments: &str) -> Handed {
    match session.hand_over(&ToolCall::new("c", tool, arguments), &declared()).unwrap() {
        HandOver::Ready(handed) => handed,
        HandOver::Refused(answer) => panic!("{}", answer.text),
    }
}

#[track_caller]
fn refused(session: &Session, tool: &str, arguments: &str) -> String {
    match session.hand_over(&ToolCall::new("c", tool, arguments), &declared()).unwrap() {
        HandOver::Ready(handed) => panic!("{handed:?}"),
        HandOver::Refused(answer) => {
            assert!(answer.is_error);
            answer.text
        }
    }
}

fn files_of(handed: &Handed) -> Vec<PathBuf> {
    let path = |content: &HandedContent| match content {
        HandedContent::Path(path) => Some(path.clone()),
        _ => None,
    };
    handed.parts.iter().filter_map(|part| path(&part.content)).collect()
}

/// BS8: a file that can only be read, whole, with the reference replaced by its path; gone with the
/// value.
#[test]
fn bs8_a_tool_is_handed_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (session, references) = session(&open(dir.path()));
    let arguments = format!(r#"{{"note": "\u4e2d 1.50", "file": "{}", "n": 1.50}}"#, references[1]);
    let handed = ready(&session, "count_lines", &arguments);
    let files = files_of(&handed);
    assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), table(1));
    assert!(std::fs::metadata(&files[0]).unwrap().permissions().readonly());
    // Everything else in the arguments is as the model wrote it.
    let expected = format!(r#"{{"note":"\u4e2d 1.50","file":"{}","n":1.50}}"#, files[0].display());
    assert_eq!(handed.call.arguments, expected);
    assert_eq!((handed.call.id.as_str(), handed.parts[0].argument.as_str()), ("c", "file"));
    drop(handed);
    assert!(!files[0].exists() && !files[0].parent().unwrap().exists());
}

/// BS8: several references, as texts in their places or as bytes beside the call, by short and full
/// names, and blocks as JSON Lines.
#[test]
fn bs8_texts_bytes_and_lists() {
    let memory = in_memory();
    let (session, references) = session(&memory);
    let short = references[2].to_string().replace("tables/", "");
    let arguments = serde_json::json!({ "texts": [references[0], short] }).to_string();
    let handed = ready(&session, "join", &arguments);
    let told: serde_json::Value = serde_json::from_str(&handed.call.arguments).unwrap();
    assert_eq!(told["texts"], serde_json::json!([table(0), table(2)]));
    assert_eq!(handed.parts[1].reference, references[2]);

    let arguments = serde_json::json!({ "data": references[1] }).to_string();
    let handed = ready(&session, "hash", &arguments);
    assert_eq!(handed.parts[0].content, HandedContent::Bytes(table(1).into_bytes()));
    let told: serde_json::Value = serde_json::from_str(&handed.call.arguments).unwrap();
    assert_eq!(told["data"], references[1].to_string());

    let handed = ready(&session, "join", r#"{"texts": "b_001"}"#);
    let HandedContent::Text(lines) = &handed.parts[0].content else { panic!() };
    let block = memory.blocks(session.todo(), 0, 1).unwrap().remove(0);
    let messages = memory.messages(session.todo(), block.range.as_u64()).unwrap();
    let read: Vec<Message> = lines.lines().map(|line| Message::from_json(line).unwrap()).collect();
    assert_eq!(read, messages);
    assert!(lines.contains("行 3999 of table 0"), "large parts are whole in it");

    // What takes no references, or is left out, comes back as it is.
    for (tool, arguments) in [
        ("read_file", r#"{"file": "store://9-aaaa"}"#),
        ("join", r#"{"texts": null, "by":  ","}"#),
        ("count_lines", "{}"),
        ("say", "no json"),
    ] {
        let handed = ready(&session, tool, arguments);
        assert_eq!(handed.parts.len(), 0);
        let same = |text: &str| text.replace(' ', "");
        assert_eq!(same(&handed.call.arguments), same(arguments));
    }
}

/// BS8: a mistake of the model is an answer that names the next step, and leaves no file behind.
#[test]
fn bs8_a_mistake_is_an_answer() {
    let memory = in_memory();
    let (session, references) = session(&memory);
    let mut other = memory.session(&todo("other")).unwrap();
    other.record_all(exchange(0, "table", &table(7)).to_vec()).unwrap();
    other.close(Close::End).unwrap();
    let next = "Use a reference as it was shown; search_block and list_blocks show them.";
    #[track_caller]
    fn check(session: &Session, value: serde_json::Value, expected: &str) {
        let arguments = serde_json::json!({ "file": value }).to_string();
        assert_eq!(refused(session, "count_lines", &arguments), expected);
    }
    check(
        &session,
        "src/表.csv".into(),
        &format!(
            "[count_lines: error] \"file\" takes a block (b_<todo>_<nnn>) or a stored part \
             (store://<n>-<check>), not \"src/表.csv\". {next}"
        ),
    );
    for missing in
        ["store://99-aaaa", "b_tables_099", "b_other_001", "b_never_001", "store://other/1-aaaa"]
    {
        check(
            &session,
            missing.into(),
            &format!(
                "[count_lines: error] Nothing is stored under {missing:?} in this task. {next}"
            ),
        );
    }
    for value in [serde_json::json!(7), serde_json::json!({"ref": "b_001"}), serde_json::json!([1])]
    {
        let expected = format!(
            "[count_lines: error] \"file\" has to be a reference, or a list of references. {next}"
        );
        check(&session, value, &expected);
    }
    let good = references[0].to_string();
    let slip = if good.ends_with('a') { "b" } else { "a" };
    let mistyped = format!("{}{slip}", &good[..good.len() - 1]);
    let said =
        refused(&session, "count_lines", &serde_json::json!({ "file": mistyped }).to_string());
    assert!(
        said.contains(&format!("part 1 of this task is {}", good.replace("tables/", ""))),
        "{said}"
    );
    // One that is good beside one that is not: nothing is handed over.
    let both = serde_json::json!({ "file": [good, "store://99-aaaa"] }).to_string();
    assert!(refused(&session, "count_lines", &both).contains("store://99-aaaa"));
    assert_eq!(
        refused(&session, "hash", "not json"),
        "[hash: error] The arguments are no JSON object."
    );
}

/// BS8, TD2: what was granted is handed over like one's own, and ends with the grant.
#[test]
fn bs8_what_was_granted_is_handed_over() {
    let memory = in_memory();
    let (_, references) = session(&memory);
    let reader = memory.session(&todo("reader")).unwrap();
    let arguments = serde_json::json!({ "file": references[0] }).to_string();
    assert!(refused(&reader, "count_lines", &arguments).contains("Nothing is stored"));
    memory.grants().grant(&todo("tables"), reader.todo(), &references[..1]).unwrap();
    let files = files_of(&ready(&reader, "count_lines", &arguments));
    assert_eq!(files.len(), 1);
    memory.grants().revoke(&todo("tables"), reader.todo(), &references[0]).unwrap();
    assert!(refused(&reader, "count_lines", &arguments).contains("Nothing is stored"));
}

/// BS8, BS6: what is damaged is not handed over, and says so; others are.
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
    for tool in ["count_lines", "hash"] {
        let key = if tool == "hash" { "data" } else { "file" };
        let arguments = serde_json::json!({ key: references[0] }).to_string();
        let said = refused(&session, tool, &arguments);
        assert!(said.contains("is damaged and cannot be handed over"), "{said}");
    }
}

/// BS8: the bytes never enter the conversation: of a call that works on 3 MB, the result alone is
/// recorded.
#[test]
fn bs8_only_the_result_enters_the_conversation() {
    let memory = in_memory();
    let (mut session, references) = session(&memory);
    let before = session.len();
    let arguments = serde_json::json!({ "file": references[0] }).to_string();
    let call = ToolCall::new("count", "count_lines", &arguments);
    session.record(Message::calls("", vec![call.clone()])).unwrap();
    let HandOver::Ready(handed) = session.hand_over(&call, &declared()).unwrap() else { panic!() };
    let lines = std::fs::read_to_string(&files_of(&handed)[0]).unwrap().lines().count();
    session.record(Message::tool_result(&ToolCallId::new("count"), &lines.to_string())).unwrap();
    let said = memory.messages(session.todo(), before..session.len()).unwrap();
    let size: usize = said.iter().map(|message| message.json().len()).sum();
    assert!(size < 400 && said[1].text() == "4000", "{size}");
    assert!(said[0].json().contains(&references[0].to_string()), "the reference is what was said");
}

/// BS8: what one call is handed is bounded: each reference once, memory and files up to a limit that is
/// known before anything is read, and so many references.
#[test]
fn bs8_what_a_call_is_handed_is_bounded() {
    let memory = in_memory();
    let (session, references) = session(&memory);
    let [first, second, ..] = references.as_slice() else { panic!() };
    let size = table(0).len() as u64;
    let bounded = declared().at_most(2 * size + 100, 2 * size + 100);
    let hand = |tool: &str, key: &str, asked: &[&Reference]| {
        let arguments = serde_json::json!({ key: asked }).to_string();
        session.hand_over(&ToolCall::new("c", tool, &arguments), &bounded).unwrap()
    };
    let ready = |tool: &str, key: &str, asked: &[&Reference]| match hand(tool, key, asked) {
        HandOver::Ready(handed) => handed,
        HandOver::Refused(answer) => panic!("{}", answer.text),
    };
    let refused = |tool: &str, key: &str, asked: &[&Reference]| match hand(tool, key, asked) {
        HandOver::Ready(handed) => panic!("{handed:?}"),
        HandOver::Refused(answer) => answer.text,
    };
    // The same again is the same file, and the same bytes.
    let twice = [first, second, first, first];
    let handed = ready("count_lines", "file", &twice);
    let files = files_of(&handed);
    assert_eq!((handed.parts.len(), files.len()), (2, 2));
    let told: serde_json::Value = serde_json::from_str(&handed.call.arguments).unwrap();
    let paths = [&files[0], &files[1], &files[0], &files[0]].map(|path| path.to_str().unwrap());
    assert_eq!(told["file"], serde_json::json!(paths));
    assert_eq!(ready("hash", "data", &twice).parts.len(), 2);
    // A text takes its room wherever it is put.
    assert_eq!(ready("join", "texts", &[first, first]).parts.len(), 1);
    let said = refused("join", "texts", &twice);
    assert!(said.contains("is too large to be handed over in memory"), "{said}");
    assert!(said.contains("use a tool that takes files"), "{said}");
    let all: Vec<&Reference> = references.iter().collect();
    assert!(refused("hash", "data", &all).contains("use a tool that takes files"));
    assert!(refused("count_lines", "file", &all).contains("more than one call is handed"));
    let block: Reference = "b_tables_001".parse().unwrap();
    assert!(refused("count_lines", "file", &[&block, second]).contains("more than one call"));
    let many = vec![first; TakesReferences::MAX_REFERENCES + 1];
    assert!(refused("count_lines", "file", &many).contains("at most 256 references"));
    ready("count_lines", "file", &many[1..]);
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
