//! Imports of logs that are still being written.

use super::*;
use crate::Options;
use foldback_transcript::read_bytes;

const LOG: [&str; 7] = [
    r#"{"role":"user","content":"把所有测试跑一遍"}"#,
    r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"test","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"lint","arguments":"{}"}}]}"#,
    r#"{"role":"tool","tool_call_id":"c1","content":"3 个失败"}"#,
    r#"{"role":"tool","tool_call_id":"c2","content":"clean"}"#,
    r#"{"role":"assistant","content":"Three tests fail."}"#,
    r#"{"role":"user","content":"Mend them."}"#,
    r#"{"role":"assistant","content":"They are mended."}"#,
];

/// The log when it had this many messages.
fn log(messages: usize) -> Conversation {
    let line = format!("{{\"id\":\"t\",\"messages\":[{}]}}", LOG[..messages].join(","));
    read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap()
}

fn id() -> TodoId {
    TodoId::new("t").unwrap()
}

fn blocks(memory: &Memory) -> Vec<(u64, u64)> {
    let blocks = memory.blocks(&id(), 0, 99).unwrap();
    blocks.iter().map(|block| (block.range.first().0, block.range.last().0)).collect()
}

/// BL2: a log that is imported while a tool works, and again later, has the blocks of a log that is
/// imported once.
#[test]
fn bl2_an_import_parts_no_call_from_a_result_that_is_still_to_come() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    memory.conversations().import(&id(), &log(LOG.len())).unwrap();
    let once = blocks(&memory);
    for stops in [&[2_usize] as &[_], &[3], &[2, 3], &[2, 2, 3, 3]] {
        let memory = Memory::in_memory(Options::default()).unwrap();
        for &stop in stops {
            let recorded = memory.conversations().continue_import(&id(), &log(stop)).unwrap();
            assert!(recorded.iter().all(|one| one.closed.is_empty()), "{stops:?}");
        }
        assert_eq!(blocks(&memory), [], "{stops:?}");
        memory.conversations().continue_import(&id(), &log(LOG.len())).unwrap();
        assert_eq!(blocks(&memory), once, "{stops:?}");
    }
    // Once all results are there, the conversation may be over.
    let memory = Memory::in_memory(Options::default()).unwrap();
    for stop in [2, 3, 4] {
        memory.conversations().continue_import(&id(), &log(stop)).unwrap();
    }
    assert_eq!(blocks(&memory), [(0, 3)]);
}

/// A log that ends with a call forever is found all the same, and comes back as it was.
#[test]
fn a_log_that_ends_with_a_call_is_found() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    memory.conversations().import(&id(), &log(2)).unwrap();
    let found = memory.recall(&id(), "search_block", r#"{"query": "测试"}"#).unwrap();
    assert!(found.text.contains("把所有测试跑一遍"), "{}", found.text);
    assert_eq!(memory.conversations().export(&id()).unwrap(), log(2));
    // The same again writes nothing.
    let changed = memory.shared.kv.changed().unwrap();
    memory.conversations().continue_import(&id(), &log(2)).unwrap();
    assert_eq!(memory.shared.kv.changed().unwrap(), changed);
}
