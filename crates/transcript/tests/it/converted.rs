//! What the tests of converted formats share, and what holds for all of them.

use foldback_transcript::{Conversation, Format, read_bytes, read_file};
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

/// The conversations of a fixture. Each of them comes back from its export.
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

/// Every fixture of every format.
fn every_fixture() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut all = Vec::new();
    for format in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(format.unwrap().path()).unwrap() {
            all.push(std::fs::read(file.unwrap().path()).unwrap());
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
        let mut bytes = file.get(&every_fixture()).clone();
        let (at, to) = (at.index(bytes.len()), to.index(bytes.len()));
        match how {
            0 => bytes.truncate(at),
            1 => bytes[at] = byte,
            _ => drop(bytes.drain(at.min(to)..at.max(to))),
        }
        for one in read_bytes(&bytes).unwrap() {
            match one {
                Ok(conversation) => {
                    comes_back(&conversation);
                    let _ = conversation.check();
                }
                Err(error) => prop_assert!(error.to_string().contains("the input"), "{}", error),
            }
        }
    }
}
