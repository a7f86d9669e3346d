//! TD2, TD4: a plan of sub-tasks, each in a separate todo; what one returns can be loaded by its parent
//! and by those that wait for it, and by no one else.

mod forgetting;
mod lists;

use crate::crash::{child_memory, spawn};
use crate::story::{engines, exchange, in_memory, open, options, todo};
use foldback::core::{ItemState, Reference, TodoItem, TodoList};
use foldback::{Close, Engine, Error, ErrorKind, Grant, Memory, Outcome, Session};
use foldback_core::{Budget, Message, Role, TodoId, ToolCall, ToolCallId};
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

/// Three items in a row, with Chinese titles.
fn plan() -> TodoList {
    TodoList::new(vec![
        TodoItem::new(todo("research"), "调研港口的潮汐数据"),
        TodoItem::new(todo("draft"), "撰写报告初稿").after([todo("research")]),
        TodoItem::new(todo("send"), "发送报告").after([todo("draft")]),
    ])
    .unwrap()
}

/// A sub-task at work: an exchange whose result is large, in one closed block. Returns the block and
/// the payload.
fn work(session: &mut Session, subject: &str) -> [Reference; 2] {
    let result = format!("{subject}：潮位 3.2 米，站点 7 号\n").repeat(400);
    session.record_all(exchange(1, subject, &result).to_vec()).unwrap();
    let block = session.close(Close::End).unwrap().pop().unwrap();
    let (header, _) = session.last_closed().last().map(|(b, why)| (&b.header, why)).unwrap();
    let payload = Reference::parse_in(session.todo(), &header.data_ids[0]).unwrap();
    [Reference::Block(block), payload]
}

fn completed(references: &[Reference]) -> Outcome {
    let result = Some("潮位 3.2 米".to_owned());
    Outcome { state: ItemState::Completed, result, references: references.to_vec() }
}

fn load_in(memory: &Memory, todo: &TodoId, reference: &str) -> foldback::Answer {
    let arguments = serde_json::json!({ "ref": reference }).to_string();
    memory.recall(todo, "load", &arguments).unwrap()
}

/// Checks that the answer is the same as for something that never existed.
#[track_caller]
fn check_not_found(memory: &Memory, todo: &TodoId, reference: &str) {
    let answer = load_in(memory, todo, reference);
    let never = load_in(memory, todo, "b_never-was_001");
    assert!(answer.is_error, "{reference} in {todo}: {}", answer.text);
    assert_eq!(answer.text.replace(reference, "X"), never.text.replace("b_never-was_001", "X"));
}

#[track_caller]
fn check_loads(memory: &Memory, todo: &TodoId, references: &[Reference]) {
    for reference in references {
        let answer = load_in(memory, todo, &reference.to_string());
        assert!(!answer.is_error && answer.text.contains("潮位 3.2 米"), "{}", answer.text);
        assert!(answer.text.contains(&reference.to_string()), "{}", answer.text);
    }
}

fn names(grants: &[Grant]) -> Vec<String> {
    let mut names: Vec<String> =
        grants.iter().map(|g| format!("{} -> {}: {}", g.from, g.to, g.reference)).collect();
    names.sort();
    names
}

/// The stable part of the prompt, and its last message.
fn prompt(session: &Session) -> (Vec<String>, String) {
    let prompt = session.prompt(&Budget::default());
    let mut sent: Vec<String> = prompt.messages.iter().map(|m| m.api_json()).collect();
    let last = sent.split_off(sent.len() - prompt.volatile).join("\n");
    (sent, last)
}

/// TD2, TD4: from the plan to the returned references, across a reopening, with each engine that
/// keeps something.
#[test]
fn td2_td4_what_a_sub_task_returns_reaches_those_who_wait_for_it() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Memory::open(dir.path(), options().with_engine(engine)).unwrap();
        let memory = open();
        let mut parent = memory.session(&todo("plan")).unwrap();
        parent.record(Message::user("请写一份关于潮汐的报告。")).unwrap();
        parent.set_todo_list(&plan()).unwrap();
        memory.session(&todo("stranger")).unwrap().record(Message::user("你好")).unwrap();

        let mut child = parent.child_session(&todo("research")).unwrap();
        assert_eq!(child.parent().unwrap(), Some(todo("plan")));
        parent.set_item_state(&todo("research"), ItemState::InProgress).unwrap();
        let returned = work(&mut child, "潮汐");
        // Nothing crosses before it is returned.
        for reference in &returned {
            check_not_found(&memory, &todo("plan"), &reference.to_string());
        }
        let came = child.return_to_parent(&completed(&returned)).unwrap();
        assert_eq!(came.left_out, []);
        let expected = [
            format!("research -> draft: {}", returned[0]),
            format!("research -> draft: {}", returned[1]),
            format!("research -> plan: {}", returned[0]),
            format!("research -> plan: {}", returned[1]),
        ];
        assert_eq!(names(&came.grants), expected);

        if engine == Engine::Sqlite {
            parent.refresh().unwrap();
        } else {
            // Writing also detects that someone else has written.
            parent.record(Message::assistant("好的。")).unwrap();
        }
        let item = parent.todo_list().item(&todo("research")).unwrap();
        assert_eq!((item.state, item.references.as_slice()), (ItemState::Completed, &returned[..]));
        let (_, told) = prompt(&parent);
        assert!(
            told.contains("1. [x] 调研港口的潮汐数据 (research): 潮位 3.2 米; load b_research_001")
        );
        let told_before = told;
        drop((parent, child, memory));

        let memory = open();
        assert_eq!(names(&memory.grants().list(&todo("research")).unwrap()), expected);
        assert_eq!(names(&memory.grants().list(&todo("plan")).unwrap()), expected[2..]);
        for reader in ["plan", "draft"] {
            check_loads(&memory, &todo(reader), &returned);
        }
        for reader in ["send", "stranger"] {
            drop(memory.session(&todo(reader)).unwrap());
            for reference in &returned {
                check_not_found(&memory, &todo(reader), &reference.to_string());
            }
        }
        let parent = memory.session(&todo("plan")).unwrap();
        assert_eq!(prompt(&parent).1, told_before);
        assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
        // TD1: what was granted is loaded by its name, and found by no search.
        let query = serde_json::json!({ "query": "潮位 3.2 米 站点 7 号" }).to_string();
        let found = memory.recall(&todo("draft"), "search_block", &query).unwrap();
        assert!(!found.text.contains("research"), "{}", found.text);
    }
}

/// TD2: content loaded from another todo is kept by value: the conversation is whole after the other is
/// forgotten, and the grants end with it.
#[test]
fn td2_a_transcript_outlives_the_todo_that_it_was_granted_from() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let mut parent = memory.session(&todo("plan")).unwrap();
    parent.set_todo_list(&plan()).unwrap();
    let mut child = parent.child_session(&todo("research")).unwrap();
    let returned = work(&mut child, "潮汐");
    parent.finish_item(&todo("research"), &completed(&returned)).unwrap();
    for (n, reference) in returned.iter().enumerate() {
        let arguments = serde_json::json!({ "ref": reference, "lines": "1-30" }).to_string();
        let call = ToolCall::new(&format!("c{n}"), "load", &arguments);
        parent.record(Message::calls("", vec![call.clone()])).unwrap();
        let answer = parent.call(&call).unwrap();
        assert!(answer.text.contains("潮位 3.2 米"), "{}", answer.text);
        parent.record(Message::tool_result(&call.id, &answer.text)).unwrap();
    }
    parent.close(Close::End).unwrap();
    let before = memory.conversations().export(&todo("plan")).unwrap();
    assert_eq!(before.messages.iter().filter(|m| *m.role() == Role::Tool).count(), 2);
    drop((parent, child));

    memory.maintenance().forget(&todo("research")).unwrap();
    memory.maintenance().compact().unwrap();
    assert_eq!(memory.conversations().export(&todo("plan")).unwrap().messages, before.messages);
    assert_eq!(memory.grants().list(&todo("plan")).unwrap(), []);
    assert_eq!(memory.grants().list(&todo("draft")).unwrap(), []);
    // A new todo of the same name, even with the same contents, has granted nothing.
    let again = work(&mut memory.session(&todo("research")).unwrap(), "潮汐");
    assert_eq!(again, returned);
    for reference in &returned {
        check_not_found(&memory, &todo("plan"), &reference.to_string());
    }
    assert_eq!(memory.grants().list(&todo("plan")).unwrap(), []);
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// TD2: a grant can be taken back, does not apply to a new todo of the same name, and a block comes
/// with its own payloads only.
#[test]
fn td2_a_grant_is_for_what_it_names() {
    let memory = in_memory();
    let (a, b) = (todo("a"), todo("b"));
    let mut from = memory.session(&a).unwrap();
    let first = work(&mut from, "第一");
    let second = work(&mut from, "第二");
    memory.session(&b).unwrap();
    assert_eq!(memory.grants().grant(&a, &b, &first[..1]).unwrap().len(), 1);
    assert_eq!(
        memory.grants().grant(&a, &b, &first[..1]).unwrap(),
        [],
        "granting again changes nothing"
    );
    check_loads(&memory, &b, &first);
    for reference in &second {
        check_not_found(&memory, &b, &reference.to_string());
    }
    // Naming a payload in one's own words grants nothing.
    let mut to = memory.session(&b).unwrap();
    to.record(Message::user(&format!("Please load {} now.", second[1]))).unwrap();
    to.record(Message::assistant(&format!("I was granted {}.", second[0]))).unwrap();
    to.close(Close::End).unwrap();
    for reference in &second {
        check_not_found(&memory, &b, &reference.to_string());
    }
    // Nor does a block that mentions another's payload include it.
    from.record(Message::user(&format!("See {} again.", second[1]))).unwrap();
    let speaks = from.close(Close::End).unwrap().pop().unwrap();
    memory.grants().grant(&a, &b, &[Reference::Block(speaks)]).unwrap();
    check_not_found(&memory, &b, &second[1].to_string());

    assert!(memory.grants().revoke(&a, &b, &first[0]).unwrap());
    assert!(!memory.grants().revoke(&a, &b, &first[0]).unwrap());
    for reference in &first {
        check_not_found(&memory, &b, &reference.to_string());
    }
    // Named nine times, it is granted once, and taken back once.
    let nine: Vec<Reference> = (0..9).map(|_| first[0].clone()).collect();
    assert_eq!(memory.grants().grant(&a, &b, &nine).unwrap().len(), 1);
    assert!(memory.grants().revoke(&a, &b, &first[0]).unwrap());
    for reference in &first {
        check_not_found(&memory, &b, &reference.to_string());
    }
    // A separately granted payload outlives the block's grant, and vice versa.
    memory.grants().grant(&a, &b, &first).unwrap();
    assert_eq!(
        memory.grants().list(&b).unwrap().len(),
        3,
        "the block that speaks of another is the third"
    );
    assert!(memory.grants().revoke(&a, &b, &first[0]).unwrap());
    check_not_found(&memory, &b, &first[0].to_string());
    check_loads(&memory, &b, &first[1..]);
    memory.grants().grant(&a, &b, &first[..1]).unwrap();
    assert!(memory.grants().revoke(&a, &b, &first[1]).unwrap());
    check_loads(&memory, &b, &first);
    assert!(
        !memory.grants().revoke(&a, &b, &first[1]).unwrap(),
        "it is there with its block alone"
    );
    memory.grants().revoke(&a, &b, &first[0]).unwrap();
    check_not_found(&memory, &b, &first[1].to_string());
    memory.grants().grant(&a, &b, &first).unwrap();
    memory.maintenance().forget(&b).unwrap();
    assert_eq!(memory.grants().list(&a).unwrap(), [], "what a forgotten todo received is gone");
    memory.session(&b).unwrap();
    for reference in &first {
        check_not_found(&memory, &b, &reference.to_string());
    }
}

/// TD2: the same text may occur in many blocks: it is one payload, and comes with any of them.
#[test]
fn td2_a_payload_comes_with_any_block_that_it_stands_in() {
    let memory = in_memory();
    let (a, b) = (todo("a"), todo("b"));
    let mut from = memory.session(&a).unwrap();
    let works: Vec<[Reference; 2]> = (0..12).map(|_| work(&mut from, "同样")).collect();
    assert!(works.iter().all(|work| work[1] == works[0][1]), "the text is stored once");
    memory.session(&b).unwrap();
    let blocks: Vec<Reference> = works.iter().map(|work| work[0].clone()).collect();
    assert_eq!(memory.grants().grant(&a, &b, &blocks).unwrap().len(), 12);
    assert_eq!(memory.grants().list(&b).unwrap().len(), 12, "what comes with them is not listed");
    let payload = works[0][1].to_string();
    for block in &blocks {
        assert!(!load_in(&memory, &b, &payload).is_error);
        memory.grants().revoke(&a, &b, block).unwrap();
    }
    check_not_found(&memory, &b, &payload);
}

/// Nothing passes between a todo and one that is not its child.
#[track_caller]
fn check_not_child<T>(result: Result<T, Error>) {
    let refused = result.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::NotPermitted, "{refused}");
    assert!(refused.to_string().contains("was not begun as a child of"), "{refused}");
}

/// TD2: only a todo's own, existing content can be granted.
#[test]
fn td2_what_makes_no_sense_is_not_granted() {
    let memory = in_memory();
    let (a, b, c) = (todo("a"), todo("b"), todo("c"));
    let own = work(&mut memory.session(&a).unwrap(), "数据");
    memory.session(&b).unwrap();
    memory.grants().grant(&a, &b, &own).unwrap();
    let grant = |from: &TodoId, to: &TodoId, reference: &str| {
        let refused = memory.grants().grant(from, to, &[reference.parse().unwrap()]).unwrap_err();
        (refused.kind(), refused.to_string())
    };
    let no_todo = "the store holds no todo c; `todos` lists those it holds".to_owned();
    assert_eq!(grant(&a, &c, "b_a_001"), (ErrorKind::NotFound, no_todo.clone()));
    assert_eq!(grant(&c, &a, "b_c_001"), (ErrorKind::NotFound, no_todo));
    memory.session(&c).unwrap();
    // Granted content is not the todo's own.
    let (kind, not_own) = grant(&b, &c, "b_a_001");
    assert_eq!(kind, ErrorKind::NotPermitted);
    assert!(not_own.starts_with("todo b can grant its own blocks and payloads only"), "{not_own}");
    let (kind, own_todo) = grant(&a, &a, "b_a_001");
    assert_eq!(kind, ErrorKind::NotPermitted);
    assert!(own_todo.starts_with("todo a reads what is its own without a grant"), "{own_todo}");
    for nothing in ["b_a_099", "store://a/1-aaaa"] {
        let (kind, what) = grant(&a, &c, nothing);
        assert_eq!(kind, ErrorKind::NotFound);
        assert!(what.starts_with("nothing is stored under"), "{what}");
    }
    let both = [own[0].clone(), "b_a_099".parse().unwrap()];
    assert!(memory.grants().grant(&a, &c, &both).is_err());
    assert_eq!(memory.grants().list(&c).unwrap(), [], "all or none");
}

/// LV7: ticking an item changes only the end of the prompt.
#[test]
fn lv7_ticking_an_item_moves_nothing_else() {
    let memory = in_memory();
    let mut parent = memory.session(&todo("plan")).unwrap();
    for n in 0..12 {
        parent.record_all(exchange(n, "潮汐", "一行").to_vec()).unwrap();
    }
    parent.set_todo_list(&plan()).unwrap();
    let (before, told) = prompt(&parent);
    let moves = parent.prefix_moves();
    assert!(told.contains("1. [ ] 调研港口的潮汐数据 (research)\\n2. [ ] 撰写"), "{told}");
    for state in [ItemState::InProgress, ItemState::Completed] {
        parent.set_item_state(&todo("research"), state).unwrap();
        let (after, now) = prompt(&parent);
        assert_eq!(after, before);
        assert_ne!(now, told);
    }
    assert_eq!(parent.prefix_moves(), moves);
    let resumed = memory.session(&todo("plan")).unwrap();
    assert_eq!(prompt(&resumed), prompt(&parent));
    assert_eq!(resumed.todo_list(), parent.todo_list());
}

/// S3: 10,000 references that were guessed, mistyped, or belong to others, each beside a granted one:
/// all get the same answer.
#[test]
fn s3_what_is_not_granted_is_like_what_never_was() {
    let memory = in_memory();
    let (a, b) = (todo("a"), todo("b"));
    let mut from = memory.session(&a).unwrap();
    let granted = work(&mut from, "公开");
    let hidden = work(&mut from, "秘密");
    memory.session(&b).unwrap();
    memory.grants().grant(&a, &b, &granted).unwrap();
    check_loads(&memory, &b, &granted);
    let never = load_in(&memory, &b, "b_never-was_001").text.replace("b_never-was_001", "X");
    let digits = |n: usize| {
        let letters = b"abcdefghijklmnopqrstuvwxyz234567";
        (0..4).map(|i| letters[n / 32_usize.pow(i) % 32] as char).collect::<String>()
    };
    let mut asked = 0;
    for n in 0..2_500 {
        let check = digits(n * 419 + 1);
        for reference in [
            format!("store://a/{}-{check}", n % 3 + 1),
            format!("store://c/{}-{check}", n % 3 + 1),
            format!("b_a_{:03}", n + 3),
            format!("b_c{n}_001"),
        ] {
            if granted.iter().any(|known| known.to_string() == reference) {
                continue;
            }
            let answer = load_in(&memory, &b, &reference);
            assert!(answer.is_error);
            assert_eq!(answer.text.replace(&reference, "X"), never, "{reference}");
            asked += 1;
        }
    }
    for reference in &hidden {
        check_not_found(&memory, &b, &reference.to_string());
    }
    assert!(asked >= 9_990, "{asked}");
}

const ITEMS: usize = 40;
const CYCLES: usize = 12;

/// TD4, R1: if a process is killed while items return, each return is whole or absent: state,
/// references and grants are one transaction.
#[test]
fn td4_a_return_is_whole_or_not_there_when_the_process_is_killed() {
    if let Some(memory) = child_memory() {
        return work_off(&memory);
    }
    let own = "grants::td4_a_return_is_whole_or_not_there_when_the_process_is_killed";
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for cycle in 0..CYCLES {
        let mut child = spawn(own, dir.path());
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut seen = 0;
        for line in lines.lines() {
            let Some(n) = line.unwrap().strip_prefix("ack ").map(|n| n.parse::<usize>().unwrap())
            else {
                continue;
            };
            acknowledged = acknowledged.max(n + 1);
            seen += 1;
            if seen > cycle % 3 {
                std::thread::sleep(Duration::from_micros(cycle as u64 * 1_777 % 20_000));
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let memory = open(dir.path());
        let list = memory.todo_list(&todo("plan")).unwrap();
        let mut done = 0;
        for item in list.items() {
            let readers = ["plan".to_owned(), format!("next-{}", item.id)];
            let grants = memory.grants().list(&item.id).unwrap_or_default();
            let grants = grants.iter().filter(|grant| grant.from == item.id).count();
            match item.state {
                ItemState::Completed => {
                    done += 1;
                    assert_eq!((item.references.len(), grants), (1, 2), "{}", item.id);
                    for reader in readers {
                        check_loads(&memory, &todo(&reader), &item.references);
                    }
                }
                state => assert_eq!((item.references.len(), grants), (0, 0), "{state}"),
            }
        }
        assert!(done >= acknowledged, "{acknowledged} returns acknowledged, {done} held");
        assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    }
    assert!(acknowledged >= CYCLES.min(ITEMS / 2), "the children got somewhere: {acknowledged}");
}

/// Works off a plan and prints each item once its return is durable.
fn work_off(memory: &Memory) {
    let mut parent = memory.session(&todo("plan")).unwrap();
    if parent.todo_list().items().is_empty() {
        let items = (0..ITEMS).flat_map(|n| {
            let id = format!("item-{n}");
            let next = TodoItem::new(todo(&format!("next-{id}")), "下一步").after([todo(&id)]);
            [TodoItem::new(todo(&id), "第一步"), next]
        });
        parent.set_todo_list(&TodoList::new(items.collect()).unwrap()).unwrap();
    }
    for n in 0..ITEMS {
        let id = todo(&format!("item-{n}"));
        if parent.todo_list().item(&id).unwrap().state == ItemState::Completed {
            continue;
        }
        let mut child = parent.child_session(&id).unwrap();
        child.record(Message::user("开始")).unwrap();
        let call = ToolCallId::new("c");
        child.record(Message::calls("", vec![ToolCall::new("c", "look", "{}")])).unwrap();
        child.record(Message::tool_result(&call, "潮位 3.2 米")).unwrap();
        child.close(Close::End).unwrap();
        let last =
            Reference::Block(memory.blocks(&id, 0, 99).unwrap().pop().unwrap().header.block_id);
        child.return_to_parent(&completed(&[last])).unwrap();
        parent.refresh().unwrap();
        println!("ack {n}");
        std::io::stdout().flush().unwrap();
    }
}
