//! S2, TD1: what belongs to one todo is never seen from another.

use crate::story::{engines, exchange, in_memory, open_on, options, todo};
use foldback::{Close, Engine, ErrorKind, Memory, Session};
use foldback_core::{Budget, Message, ToolCall, ToolCallId};
use foldback_testkit::stride;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::path::Path;

const TODOS: usize = 20;
/// In memory; a tenth of them on each engine that writes to disk.
const OPERATIONS: usize = 20_000;

fn canary(n: usize) -> String {
    format!("canary{n:02}zq{}", n * 7_919 + 13)
}

#[test]
fn s2_no_canary_is_seen_from_another_todo() {
    check_no_canary_is_seen(&in_memory(), OPERATIONS);
}

#[test]
fn s2_no_canary_is_seen_from_another_todo_on_disk() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        check_no_canary_is_seen(&open_on(engine, dir.path()), OPERATIONS / 10 / stride());
    }
}

#[track_caller]
fn check_no_canary_is_seen(memory: &Memory, operations: usize) {
    let mut sessions: Vec<Session> =
        (0..TODOS).map(|n| memory.session(&todo(&format!("todo-{n}"))).unwrap()).collect();
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut seen_own = 0;
    for step in 0..operations {
        let own = rng.next_u32() as usize % TODOS;
        let other = rng.next_u32() as usize % TODOS;
        let text = operate(memory, &mut sessions, own, other, step, rng.next_u32());
        seen_own += usize::from(text.contains(&canary(own)));
        for foreign in (0..TODOS).filter(|n| *n != own) {
            // A model may name another's canary in its own query; only what comes back counts.
            assert!(!text.contains(&canary(foreign)), "step {step}: {own} saw {foreign}: {text}");
        }
    }
    assert!(seen_own > operations / 20, "the test looked, and saw its own {seen_own} times");
}

/// One random operation on `own`; returns everything that it shows.
fn operate(
    memory: &Memory,
    sessions: &mut [Session],
    own: usize,
    other: usize,
    step: usize,
    dice: u32,
) -> String {
    let session = &mut sessions[own];
    let id = session.todo().clone();
    match dice % 10 {
        0..=3 => {
            let call = ToolCall::new(&format!("c{step}"), "fetch", "{}");
            let size = if dice.is_multiple_of(31) { 600 } else { 1 };
            let result = format!("{} says {step}\n", canary(own)).repeat(size);
            session.record(Message::user(&format!("step {step} of {}", canary(own)))).unwrap();
            session.record(Message::calls("", vec![call])).unwrap();
            session
                .record(Message::tool_result(&ToolCallId::new(&format!("c{step}")), &result))
                .unwrap();
            String::new()
        }
        4 => {
            let queries = ["", "*", "says step", "canary", "canary OR 1=1", "[* TO *]", "步骤"];
            let query = queries[dice as usize / 10 % queries.len()];
            let query = if query.is_empty() { "canary says step" } else { query };
            let arguments = serde_json::json!({ "query": query, "k": 20 }).to_string();
            memory.recall(&id, "search_block", &arguments).unwrap().text
        }
        5 => memory.recall(&id, "list_blocks", "{}").unwrap().text,
        6 => {
            // A block and a payload of another todo, by their true names.
            let other = todo(&format!("todo-{other}"));
            let blocks = memory.blocks(&other, 0, 1_000).unwrap();
            let Some(block) = blocks.get(dice as usize % blocks.len().max(1)) else {
                return String::new();
            };
            let reference = match block.header.data_ids.first() {
                Some(local) if dice.is_multiple_of(2) => {
                    local.replace("store://", &format!("store://{other}/"))
                }
                Some(local) if dice.is_multiple_of(3) => local.clone(),
                _ => block.header.block_id.to_string(),
            };
            let arguments = serde_json::json!({ "ref": reference }).to_string();
            memory.recall(&id, "load", &arguments).unwrap().text
        }
        7 => {
            let prompt = session.prompt(&Budget::default());
            prompt.messages.iter().map(|message| message.api_json()).collect()
        }
        8 => {
            session.close(Close::Switch).unwrap();
            String::new()
        }
        _ => {
            sessions[own] = memory.session(&id).unwrap();
            String::new()
        }
    }
}

#[test]
fn td1_a_block_of_another_todo_is_like_one_that_never_was() {
    let memory = in_memory();
    let mut a = memory.session(&todo("a")).unwrap();
    let mut b = memory.session(&todo("b")).unwrap();
    for n in 0..4 {
        a.record(Message::user(&format!("secret {n}"))).unwrap();
        b.record(Message::user(&format!("other {n}"))).unwrap();
    }
    a.close(Close::End).unwrap();
    b.close(Close::End).unwrap();
    let load = |reference: &str| {
        let arguments = serde_json::json!({ "ref": reference }).to_string();
        memory.recall(&todo("b"), "load", &arguments).unwrap()
    };
    let (foreign, never) = (load("b_a_001"), load("b_zzz_001"));
    assert!(foreign.is_error && never.is_error);
    assert_eq!(foreign.text.replace("b_a_001", "X"), never.text.replace("b_zzz_001", "X"));
}

#[test]
fn s9_a_forgotten_todo_is_gone_and_takes_no_more() {
    engines().into_iter().for_each(check_forgotten);
}

/// The number of files in a store that contain the beginning of a canary.
fn files_with(dir: &Path, canary: &str) -> usize {
    let (mut count, mut folders) = (0, vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            count += usize::from(bytes.windows(8).any(|window| window == &canary.as_bytes()[..8]));
        }
    }
    count
}

#[track_caller]
fn check_forgotten(engine: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let memory = open_on(engine, dir.path());
    let id = todo("gone");
    let mut session = memory.session(&id).unwrap();
    for n in 0..30 {
        let large = format!("{} in a large result\n", canary(3)).repeat(3_000);
        session.record_all(exchange(n, &canary(3), &large).to_vec()).unwrap();
    }
    session.close(Close::End).unwrap();
    // Another todo stays, so that the store is not simply emptied.
    let mut other = memory.session(&todo("stays")).unwrap();
    other.record_all(exchange(0, "other", "这里没有金丝雀").to_vec()).unwrap();
    drop(other);
    memory.maintenance().forget(&id).unwrap();
    assert!(memory.recall(&id, "list_blocks", "{}").is_err());
    let refused = session.record(Message::user("still here?")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound, "the session's todo is gone: {refused}");
    drop(session);
    memory.maintenance().compact().unwrap();
    drop(memory);
    assert_eq!(files_with(dir.path(), &canary(3)), 0, "{engine}");
    // The name is free again, and the other todo is unchanged.
    let memory = open_on(engine, dir.path());
    assert!(memory.session(&id).unwrap().is_empty());
    assert_eq!(memory.len(&todo("stays")).unwrap(), 4);
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new(), "{engine}");
    // The test would have noticed it.
    memory.session(&id).unwrap().record(Message::user(&canary(3))).unwrap();
    drop(memory);
    assert!(files_with(dir.path(), &canary(3)) > 0, "{engine}");
}

#[test]
fn s2_no_canary_crosses_on_disk_with_indexes() {
    engines().into_iter().for_each(check_no_canary_crosses);
}

#[track_caller]
fn check_no_canary_crosses(engine: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options().with_engine(engine);
    options.index.index_after_blocks = 4;
    options.index.batch_blocks = 1;
    options.index.hnsw_after_vectors = 8;
    let memory = Memory::open(dir.path(), options).unwrap();
    let ids: Vec<_> = (0..4).map(|n| todo(&format!("todo-{n}"))).collect();
    for (n, id) in ids.iter().enumerate() {
        let mut session = memory.session(id).unwrap();
        for step in 0..12 {
            let result = format!("{} says {step}\n", canary(n)).repeat(4_000);
            session.record_all(exchange(step, &canary(n), &result).to_vec()).unwrap();
        }
        session.close(Close::End).unwrap();
    }
    memory.maintenance().index().unwrap();
    for (n, id) in ids.iter().enumerate() {
        assert!(dir.path().join(format!("index/{}", n + 1)).is_dir(), "each has its own index");
        let arguments = serde_json::json!({ "query": "canary says", "k": 20 }).to_string();
        let text = memory.recall(id, "search_block", &arguments).unwrap().text;
        assert!(text.contains(&canary(n)), "{id} sees its own: {text}");
        for foreign in (0..ids.len()).filter(|other| *other != n) {
            for query in [canary(foreign), "canary says".to_owned(), "*".to_owned()] {
                let arguments = serde_json::json!({ "query": query, "k": 20 }).to_string();
                let text = memory.recall(id, "search_block", &arguments).unwrap().text;
                let asked = text.replace(&format!("{query:?}"), "");
                assert!(!asked.contains(&canary(foreign)), "{id} saw {foreign}: {text}");
            }
        }
    }
}
