//! What was said last is found before any block holds it.

use crate::story::{engines, exchange, in_memory, open_on, todo};
use foldback::{Close, Hit, Memory, SearchRequest};
use foldback_core::{CloseReason, Message, ToolCall, ToolCallId};

/// The last exchange of the conversation, its question, and the text of a result that is stored
/// outside.
const LAST: [&str; 2] =
    ["Which berth did the 长宁号 get?", "她停在八号码头, berth 8, since 06:12."];
const RECORD: &str = "the ferry 渡轮 4711 left the slip";

fn log() -> String {
    let lines = (0..400).map(|n| format!("line {n}: nothing to tell of the quay"));
    lines.chain([RECORD.to_owned()]).collect::<Vec<_>>().join("\n")
}

/// A todo with closed blocks and a tail of four messages.
fn begun(memory: &Memory) {
    let mut session = memory.session(&todo("quay")).unwrap();
    for n in 0..6 {
        session.record_all(exchange(n, "scheduler", "fn tick() {}").to_vec()).unwrap();
    }
    session.close(Close::Switch).unwrap();
    let call = ToolCall::new("c", "read_log", r#"{"path": "渡轮.log"}"#);
    let tail = [
        Message::user(LAST[0]),
        Message::calls("", vec![call]),
        Message::tool_result(&ToolCallId::new("c"), &log()),
        Message::assistant(LAST[1]),
    ];
    session.record_all(tail.to_vec()).unwrap();
    assert_eq!(session.open(), 4);
}

fn hits(memory: &Memory, query: &str) -> Vec<Hit> {
    memory.search(&todo("quay"), &SearchRequest::new(query).k(5)).unwrap().hits
}

fn recall(memory: &Memory, tool: &str, arguments: &str) -> String {
    memory.recall(&todo("quay"), tool, arguments).unwrap().text
}

/// Open messages are searched as the block that they become, by words, by meaning and by the text of
/// their payloads, in Chinese as in English; once they are closed the same search gives the same.
#[test]
fn the_open_tail_is_searched_as_the_block_that_it_becomes() {
    let check = |memory: &Memory| {
        begun(memory);
        let queries = ["八号码头", "which berth has the 长宁号", "渡轮 4711", "scheduler step 3"];
        let before = queries.map(|query| hits(memory, query));
        for (query, hits) in queries.iter().zip(&before).take(3) {
            assert_eq!(hits[0].block.close_reason, CloseReason::Open, "{query}: {hits:?}");
            assert_eq!(hits[0].block.range.len(), 4);
        }
        assert_eq!(before[2][0].passages[0].last_line, 401, "{:?}", before[2][0]);
        assert_ne!(before[3][0].block.close_reason, CloseReason::Open);
        let again = queries.map(|query| hits(memory, query));
        assert_eq!(before, again, "the same twice");

        let mut session = memory.session(&todo("quay")).unwrap();
        let closed = session.close(Close::End).unwrap();
        assert_eq!(closed, [before[0][0].block.header.block_id.clone()]);
        let mut after = queries.map(|query| hits(memory, query));
        for hit in after.iter_mut().flatten() {
            if hit.block.header.block_id == closed[0] {
                assert_eq!(hit.block.close_reason, CloseReason::End);
                hit.block.close_reason = CloseReason::Open;
            }
        }
        assert_eq!(before, after, "closing changes nothing of what is found");
    };
    check(&in_memory());
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        check(&open_on(engine, dir.path()));
    }
}

/// External recall tools find, list and load it, marked as open, by a name that stays valid when it
/// closes; the session itself has it in view and does not find it again.
#[test]
fn the_tools_name_the_open_tail_and_load_it() {
    let memory = in_memory();
    begun(&memory);
    let found = recall(&memory, "search_block", r#"{"query": "八号码头 berth"}"#);
    let open = memory.open_block(&todo("quay")).unwrap().unwrap();
    let id = open.header.block_id.to_string();
    assert!(found.lines().next().unwrap().contains(&format!("{id} (still open)")), "{found}");
    assert!(found.contains(LAST[1]), "{found}");
    let listed = recall(&memory, "list_blocks", "{}");
    assert!(listed.contains(&format!("{id} (still open) ")), "{listed}");
    let loaded = recall(&memory, "load", &format!(r#"{{"ref": "{id}"}}"#));
    assert!(loaded.contains(LAST[1]) && loaded.contains(LAST[0]), "{loaded}");

    let mut session = memory.session(&todo("quay")).unwrap();
    let call = ToolCall::new("s", "search_block", r#"{"query": "八号码头 berth"}"#);
    let own = session.call(&call).unwrap().text;
    assert!(!own.contains(LAST[1]), "it is in view: {own}");
    session.close(Close::End).unwrap();
    let closed = recall(&memory, "load", &format!(r#"{{"ref": "{id}"}}"#));
    assert!(closed.contains(LAST[1]), "{closed}");
    assert_eq!(memory.open_block(&todo("quay")).unwrap(), None);
}

/// A todo in which nothing is closed yet is searched as well.
#[test]
fn a_todo_of_open_messages_alone_is_searched() {
    let memory = in_memory();
    let mut session = memory.session(&todo("quay")).unwrap();
    session.record(Message::user("钥匙放在红色抽屉里。")).unwrap();
    let found = hits(&memory, "红色抽屉");
    assert_eq!(found[0].block.header.block_id.to_string(), "b_quay_001");
}
