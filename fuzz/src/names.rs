//! Readers of names, arguments and settings.

use super::sound_store::{TODOS, sound_store};
use foldback::Memory;
use foldback_core::{BlockId, PayloadRef, Reference, TodoId};
use foldback_providers::{ModelConfig, ModelSources};
use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

/// Names of todos, blocks and payloads.
pub fn reference_texts() -> Vec<Vec<u8>> {
    let texts = [
        "report",
        "b_001",
        "b_harbour_001",
        "store://1-k4qd",
        "store://harbour/12-k4qd",
        "2-k4qd",
        "b_a_b_4294967295",
        "store://港/18446744073709551615-aaaa",
    ];
    texts.map(Into::into).into()
}

/// Reads any text as every kind of name: what is one is written as it was read.
pub fn references(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let own = TodoId::new("own").expect("an id");
    drop(TodoId::from_foreign(&text));
    if let Ok(id) = TodoId::new(&text) {
        assert_eq!(id.as_str(), text);
    }
    if let Ok(id) = text.parse::<BlockId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(reference) = text.parse::<PayloadRef>() {
        assert_eq!(reference.to_string().parse::<PayloadRef>().ok(), Some(reference));
    }
    if let Ok(reference) = Reference::parse_in(&own, &text) {
        assert_eq!(reference.to_string().parse::<Reference>().ok(), Some(reference));
    }
}

/// The number of a tool, then arguments.
pub fn calls() -> Vec<Vec<u8>> {
    let calls: [(u8, &str); 12] = [
        (0, r#"{"query": "quay 7 潮汐", "k": 3}"#),
        (0, r#"{"query": "marker3", "before": "b_005", "after": "2023-11-14"}"#),
        (1, "{}"),
        (1, r#"{"after": "b_003", "limit": 2}"#),
        (2, r#"{"ref": "b_harbour_002"}"#),
        (2, r#"{"ref": "b_001", "lines": "2-9"}"#),
        (2, r#"{"ref": "store://1-aaaa", "pattern": "quay (7|8)+", "context": 2}"#),
        (2, r#"{"ref": "store://lock/1-aaaa", "lines": "-5"}"#),
        (2, r#"{"ref": "b_lock_001"}"#),
        (2, r#"{"query": "quay 7"}"#),
        (3, r#"{"text": "We chose quay 7."}"#),
        (4, "{}"),
    ];
    calls.map(|(tool, arguments)| [&[tool], arguments.as_bytes()].concat()).into()
}

/// Calls a tool of the memory with any arguments: a mistake is an answer.
pub fn tool_arguments(bytes: &[u8]) {
    static MEMORY: OnceLock<Memory> = OnceLock::new();
    let store = sound_store();
    let memory = MEMORY.get_or_init(|| store.open(&[], store.dir.path()));
    let Some((tool, arguments)) = bytes.split_first() else { return };
    let tool =
        ["search_block", "list_blocks", "load", "record", "no_such_tool"][usize::from(tool % 5)];
    let arguments = String::from_utf8_lossy(arguments);
    let todo = TodoId::new(TODOS[0]).expect("an id");
    // The store can only be read, which `record` reports as an error.
    match memory.call_tool(&todo, tool, &arguments) {
        Ok(answer) => assert!(answer.text.len() < 1 << 20, "{} bytes", answer.text.len()),
        Err(error) => assert!(tool == "record", "{error}"),
    }
}

/// Settings of models.
pub fn settings_files() -> Vec<Vec<u8>> {
    let files = [
        "[model]\nname = \"m\"\nprovider = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:8080/v1\"\nmax_tokens = 9\nprices = { read = 0.1, write = 1.25, plain = 1.0 }\nworkers = [\"http://a/v1\"]\n",
        "[model]\nname = \"claude-x\"\napi_key = \"k\"\nanswer_seconds = 600\ntool_calls = \"hermes\"\nfamily = \"qwen\"\nlong_cache = true\n[model.token_prices]\ninput = 3.0\noutput = 15.0\n",
    ];
    files.map(Into::into).into()
}

/// Reads any bytes as a file of settings.
pub fn model_settings(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), bytes).expect("the file takes it");
    let sources = ModelSources::default().with_file(file.path()).with_environment(BTreeMap::new());
    drop(ModelConfig::load(&sources).map_err(|error| error.to_string()));
}
