//! Helpers for the tests of converted formats, and properties of all of them.

use foldback_transcript::{
    Conversation, Finding, FindingKind, Format, Options, anthropic, read_bytes, read_file,
};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// The finding about a file that has only a part of the conversation.
pub(crate) const PARTIAL: Finding = Finding { at: None, kind: FindingKind::Partial };

/// The conversations of a log's lines, each of which its export reproduces.
#[track_caller]
pub(crate) fn read(lines: &[Value]) -> Vec<Conversation> {
    let text: Vec<_> = lines.iter().map(Value::to_string).collect();
    let read: Vec<_> =
        read_bytes(text.join("\n").as_bytes()).unwrap().map(Result::unwrap).collect();
    read.iter().for_each(comes_back);
    read
}

/// The conversations of a fixture, each of which its export reproduces.
#[track_caller]
pub(crate) fn fixture(name: &str) -> Vec<Conversation> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let read: Vec<_> = read_file(path).unwrap().map(Result::unwrap).collect();
    read.iter().for_each(comes_back);
    read
}

/// A conversation as foldback JSON Lines reads as the same one.
#[track_caller]
pub(crate) fn comes_back(conversation: &Conversation) {
    let line = conversation.to_json_line();
    assert!(!line.contains('\n'), "{line}");
    let mut read = read_bytes(line.as_bytes()).unwrap();
    let again = read.next().unwrap().unwrap();
    assert!(read.next().is_none());
    assert_eq!(again.messages, conversation.messages);
    assert_eq!(again.id, conversation.id);
    assert_eq!(again.envelope.fields(), conversation.envelope.fields());
    assert_eq!(again.to_json_line(), line);
    assert_eq!(again.envelope.format(), Format::FoldbackJsonLines);
}

/// A message as a JSON value.
pub(crate) fn json(conversation: &Conversation, at: usize) -> Value {
    serde_json::from_str(conversation.messages[at].json()).unwrap()
}

/// What a conversation keeps of its source.
pub(crate) fn source(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.envelope.get("source").unwrap()).unwrap()
}

/// Who speaks, message by message.
pub(crate) fn roles(conversation: &Conversation) -> Vec<&str> {
    conversation.messages.iter().map(|message| message.role().as_str()).collect()
}

/// The errors of an input.
pub(crate) fn errors(input: &str) -> Vec<String> {
    let read = read_bytes(input.as_bytes()).unwrap();
    read.filter_map(|one| one.err().map(|error| error.to_string())).collect()
}

/// Keys whose values say what an object is, or name another one.
const STRUCTURE: [&str; 24] = [
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "leafUuid",
    "sessionId",
    "agentId",
    "messageId",
    "id",
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "turn_id",
    "role",
    "record_type",
    "custom_id",
    "commandMode",
    "source_type",
    "mime_type",
    "status",
    "args",
    "response_id",
    "thread_id",
];

/// Puts a unique mark into every text, and an unknown key into every object; returns the marks.
pub(crate) fn mark(value: &mut Value, marks: &mut Vec<String>) {
    let mut next = || {
        marks.push(format!("mark{}x", marks.len()));
        marks.last().unwrap().clone()
    };
    match value {
        Value::String(text) => text.push_str(&next()),
        Value::Array(values) => values.iter_mut().for_each(|value| mark(value, marks)),
        Value::Object(members) => {
            let extra = next();
            for (key, value) in members.iter_mut() {
                let is_name = value.is_string() || value.is_array();
                if !(is_name && STRUCTURE.contains(&key.as_str())) {
                    mark(value, marks);
                }
            }
            members.insert("extra".to_owned(), extra.into());
        }
        _ => {}
    }
}

/// Every mark is in the export of a conversation.
#[track_caller]
pub(crate) fn all_there(marks: &[String], conversations: &[Conversation]) {
    let exports: String = conversations.iter().map(Conversation::to_json_line).collect();
    let found: HashSet<&str> =
        exports.split("mark").skip(1).filter_map(|rest| Some(rest.split_once('x')?.0)).collect();
    let lost: Vec<_> = marks
        .iter()
        .filter(|mark| !found.contains(mark.trim_start_matches("mark").trim_end_matches('x')))
        .collect();
    assert!(!marks.is_empty(), "nothing was marked");
    assert!(lost.is_empty(), "{lost:?} of {} marks are not in {exports}", marks.len());
}

/// Everything in a file, in texts or under unknown keys, is in its export.
#[test]
fn every_text_of_a_fixture_is_in_its_export() {
    for (name, bytes) in every_fixture() {
        if name.ends_with("empty.jsonl") {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap().replace(r"\ud", "?");
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let (mut marks, mut lines) = (Vec::new(), Vec::new());
        for value in values {
            let mut value = value.unwrap();
            mark(&mut value, &mut marks);
            lines.push(value.to_string());
        }
        let read: Vec<_> =
            read_bytes(lines.join("\n").as_bytes()).unwrap().map(Result::unwrap).collect();
        eprintln!("{name}: {} marks", marks.len());
        all_there(&marks, &read);
    }
}

/// Of a repeated key the last counts, and the first is kept.
#[test]
fn what_a_repeated_key_said_first_is_kept() {
    for text in [
        r#"{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"mark0x"},"message":{"role":"user","content":"mark1x","content":"mark2x"},"x":"mark3x","x":1}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"mark0x","content":"mark1x"}}"#,
        r#"[{"role":"assistant","content":"mark0x","content":[{"type":"tool_use","id":"mark1x","id":"t","name":"n","input":"mark2x","input":{}}]}]"#,
        r#"{"type":"human","data":{"content":"mark0x","content":"mark1x"}}"#,
    ] {
        let read: Vec<_> = read_bytes(text.as_bytes()).unwrap().map(Result::unwrap).collect();
        let marks: Vec<_> = (0..4).map(|n| format!("mark{n}x")).collect();
        let marks: Vec<_> = marks.into_iter().filter(|mark| text.contains(mark)).collect();
        all_there(&marks, &read);
        let body = anthropic::body(&read[0].messages, &[], &Options::default());
        assert!(!body.contains(r#""id":"mark1x""#), "the last one counts: {body}");
    }
}

#[test]
fn a_format_keeps_its_name() {
    for (format, name) in [
        (Format::FoldbackJsonLines, "foldback_json_lines"),
        (Format::ChatCompletionsArray, "chat_completions_array"),
        (Format::ChatCompletionsBody, "chat_completions_body"),
        (Format::AnthropicBody, "anthropic_body"),
        (Format::ClaudeCodeLog, "claude_code_log"),
        (Format::CodexLog, "codex_log"),
        (Format::LangChain, "lang_chain"),
    ] {
        // Stores hold it by this name.
        assert_eq!(serde_json::to_value(format).unwrap(), name);
        assert_eq!(format.name(), name);
    }
}

/// Every fixture of every format, with its name.
fn every_fixture() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut all = Vec::new();
    for format in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(format.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            all.push((path.display().to_string(), std::fs::read(path).unwrap()));
        }
    }
    assert!(all.len() > 6);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_damaged_file_is_read_or_refused(
        file: prop::sample::Index,
        at: prop::sample::Index,
        to: prop::sample::Index,
        byte: u8,
        how in 0..3,
    ) {
        let mut bytes = file.get(&every_fixture()).1.clone();
        let (at, to) = (at.index(bytes.len()), to.index(bytes.len()));
        match how {
            0 => bytes.truncate(at),
            1 => bytes[at] = byte,
            _ => drop(bytes.drain(at.min(to)..at.max(to))),
        }
        for one in read_bytes(&bytes).unwrap() {
            match one {
                Ok(conversation) => {
                    // Some damage makes a body one that is not converted.
                    if conversation.envelope.get("source").is_some() {
                        comes_back(&conversation);
                    }
                    let _ = conversation.check();
                }
                Err(error) => prop_assert!(error.to_string().contains("the input"), "{}", error),
            }
        }
    }
}
