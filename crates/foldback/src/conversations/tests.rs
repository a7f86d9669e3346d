//! Imports of logs that are still being written.

use super::*;
use crate::{ErrorKind, Options, Quota};
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

/// RC6: a conversation that is written otherwise, with white space, escapes or another order of keys, is the same one.
#[test]
fn rc6_messages_are_compared_as_values() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let all = memory.conversations();
    all.import(&id(), &log(5)).unwrap();
    let spaced = LOG.map(|line| {
        let line = line.replace("\":", "\": ").replace(",\"", ",   \"").replace('测', "\\u6d4b");
        match line.strip_prefix("{\"role\": \"tool\",") {
            Some(rest) => {
                rest.replacen("   \"tool", "{\"tool", 1).replace('}', ",\"role\":\"tool\"}")
            }
            None => line,
        }
    });
    let line = format!("{{\"id\":\"t\",\"messages\":[{}]}}", spaced.join(", "));
    let other = read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
    assert!(other.messages.iter().zip(&log(7).messages).all(|(one, other)| one != other));
    assert_eq!(all.continue_import(&id(), &other).unwrap().len(), 2);
    assert_eq!(all.follow(&id(), &other, 7, None).unwrap().unwrap().1.len(), 0);
    // What was recorded stays as it was.
    assert_eq!(all.export(&id()).unwrap().messages[..5], log(5).messages);
}

/// The error names the first message that differs, and how the conversation's begins.
#[test]
fn a_different_conversation_is_refused_with_the_message_that_differs() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let all = memory.conversations();
    all.import(&id(), &log(5)).unwrap();
    let mut other = log(7);
    other.messages[2] = Message::user(&"别的话，".repeat(30));
    let error = all.continue_import(&id(), &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let error = error.to_string();
    let begins = format!("of role user that begins with \"{}…\"", "别的话，".repeat(10));
    assert!(error.contains("already holds 5 messages, and its message 2 is"), "{error}");
    assert!(error.contains(&begins), "{error}");
    // A beginning of what is there is refused, too.
    let error = all.continue_import(&id(), &log(4)).unwrap_err().to_string();
    assert!(error.contains("holds 5 messages, of which the conversation has only the first 4"));
}

/// S10: of a conversation that a todo may not hold, not even an empty todo is left; one that was there stays.
#[test]
fn s10_a_conversation_over_a_limit_leaves_no_todo() {
    let options = Options::default().with_quota(Quota::default().with_messages(3));
    let memory = Memory::in_memory(options).unwrap();
    let all = memory.conversations();
    for _ in 0..2 {
        let refused = all.continue_import(&id(), &log(7)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Quota);
        let refused = all.follow(&id(), &log(7), 7, None).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Quota);
        assert!(memory.todos(None, 9).unwrap().is_empty());
    }
    all.continue_import(&id(), &log(3)).unwrap();
    all.follow(&id(), &log(7), 7, None).unwrap_err();
    all.continue_import(&id(), &log(7)).unwrap_err();
    assert_eq!(memory.len(&id()).unwrap(), 3);
}
