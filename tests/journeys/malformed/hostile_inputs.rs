//! Inputs from a model, a program or a person.

use super::{damaged_records, one_of};
use crate::fuzzing::fuzzed::plans;
use crate::fuzzing::fuzzed::sound_store::{TODOS, sound_store};
use crate::story::{in_memory, todo};
use foldback::kv::Space;
use foldback::{Answer, Memory};
use foldback_core::{Message, ToolCall};
use foldback_planner::lower_calls;
use foldback_testkit::Random;
use foldback_transcript::{Error, read_bytes};
use std::sync::OnceLock;

fn memory() -> &'static Memory {
    static MEMORY: OnceLock<Memory> = OnceLock::new();
    MEMORY.get_or_init(|| sound_store().open(&[], sound_store().dir.path()))
}

fn call(tool: &str, arguments: &str) -> Answer {
    memory().recall(&todo(TODOS[0]), tool, arguments).unwrap()
}

/// The name of a todo's payload from elsewhere.
fn payload(random: &mut Random, of: &str) -> String {
    let found = memory().find(&todo(of)).unwrap();
    let metas = memory().payloads().metas(&found, 0, 100).unwrap();
    one_of(random, &metas).reference().to_string()
}

pub(super) fn offset(random: &mut Random) -> bool {
    let id = todo(TODOS[0]);
    if random.below(2) == 0 {
        return damaged_records::block_out_of_range(random);
    }
    if random.below(4) == 0 {
        let length = memory().len(&id).unwrap();
        let (from, to) = *one_of(
            random,
            &[
                (u64::MAX - 1, u64::MAX),
                (length, u64::MAX),
                (length + 1, length + 2),
                (1 << 32, 1 << 33),
            ],
        );
        // Anything after the end is empty, or refused.
        assert!(memory().blocks(&id, u32::MAX, usize::MAX).unwrap().is_empty());
        return memory().messages(&id, from..to).map_or(true, |found| found.is_empty());
    }
    let lines = *one_of(
        random,
        &[
            "-5",
            "0",
            "0-0",
            "9-2",
            "-1--1",
            "18446744073709551616",
            "18446744073709551615-",
            "1e9",
            "4294967296-4294967297",
        ],
    );
    let reference = match random.below(2) {
        0 => format!("b_{:03}", 1 + random.below(9)),
        _ => payload(random, TODOS[0]),
    };
    let arguments = serde_json::json!({ "ref": reference, "lines": lines }).to_string();
    let answer = call("load", &arguments);
    assert!(answer.text.len() < 64 << 10, "{lines}: {} bytes", answer.text.len());
    answer.is_error || !answer.text.is_empty()
}

pub(super) fn other_todo(random: &mut Random) -> bool {
    match random.below(3) {
        0 => damaged_records::block_of_other_todo(random),
        1 => damaged_records::hole_of_no_payload(random),
        _ => {
            let local = payload(random, TODOS[1]);
            let reference = match random.below(3) {
                0 => local.replace("store://", &format!("store://{}/", TODOS[1])),
                1 => format!("b_{}_{:03}", TODOS[1], 1 + random.below(3)),
                _ => format!("store://{}-{}", 900 + random.below(99), "aaaa"),
            };
            let arguments = serde_json::json!({ "ref": reference }).to_string();
            let answer = call("load", &arguments);
            assert!(!answer.text.contains("of lock"), "{reference}: {}", answer.text);
            answer.is_error
        }
    }
}

/// A packed record, and packed conversations, of some megabytes without content.
pub(super) fn bomb(random: &mut Random) -> bool {
    let size = (8 + random.below(24)) << 20;
    let byte = *one_of(random, b" [0\n\"a");
    let packed = zstd::bulk::compress(&vec![byte; size], 3).unwrap();
    let packed =
        if random.below(3) == 0 { zstd::bulk::compress(&packed, 3).unwrap() } else { packed };
    if random.below(2) == 0 {
        let records = sound_store().of(Space::PayloadBytes);
        let (key, _) = one_of(random, &records);
        let record = [&[1], &packed[..]].concat();
        let store = sound_store();
        return super::check(store.kv(&[(*key, Some(record))]), store.dir.path(), &[]);
    }
    let read = read_bytes(&packed).map(|mut conversations| conversations.next());
    matches!(
        read,
        Err(Error::Bomb { .. } | Error::Packed { .. } | Error::Unknown { .. })
            | Ok(Some(Err(Error::Bomb { .. } | Error::Packed { .. } | Error::Unknown { .. })))
    )
}

/// Arguments of a call that are nested 100,000 levels deep, and deeper.
pub(super) fn deep_arguments(random: &mut Random) -> bool {
    let depth = 100_000 + random.below(100_000);
    let (open, close) = *one_of(random, &[("[", "]"), ("{\"a\":", "}"), ("[{\"query\":", "}]")]);
    let deep = match random.below(2) {
        0 => open.repeat(depth),
        _ => format!("{}1{}", open.repeat(depth), close.repeat(depth)),
    };
    let arguments = match random.below(3) {
        0 => deep.clone(),
        1 => format!("{{\"query\": {deep}}}"),
        _ => format!("{{\"ref\": \"b_001\", \"lines\": {deep}}}"),
    };
    match random.below(5) {
        0..=1 => {
            let tool = *one_of(random, &["search_block", "list_blocks", "load"]);
            call(tool, &arguments).is_error
        }
        2 => {
            plans::native_calls(arguments.as_bytes());
            lower_calls(&[ToolCall::new("a", "search", &arguments)]).findings.has_errors()
        }
        3 => {
            plans::one_plan(arguments.as_bytes());
            let line = serde_json::json!({ "id": "a", "messages": [{ "role": "assistant", "content": "" }] });
            let line = line.to_string().replace("\"\"", &deep);
            read_bytes(line.as_bytes()).unwrap().next().unwrap().is_err()
        }
        _ => {
            // A model may write them anyway: they are a text, and are kept as one.
            let memory = in_memory();
            let id = todo("deep");
            let mut session = memory.session(&id).unwrap();
            session.record(Message::user("Go on.")).unwrap();
            let calls = Message::calls("", vec![ToolCall::new("c", "search", &arguments)]);
            session.record(calls.clone()).unwrap();
            memory.messages(&id, 1..2).unwrap() == [calls]
        }
    }
}
