//! TD2, TD4: a plan of sub-tasks, each in a todo of its own; what one returns can be loaded by its
//! parent and by those that wait for it, and by nobody else.

use crate::crash::spawn;
use crate::story::{engines, exchange, in_memory, open, open_on, options, todo};
use foldback::core::{ItemState, Reference, TodoItem, TodoList};
use foldback::{Close, Engine, Error, ErrorKind, Grant, Memory, Mode, Outcome, Session};
use foldback_core::{Budget, Message, Role, TodoId, ToolCall, ToolCallId};
use foldback_kv::{Batch, Key, Space};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
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

/// A sub-task at work: an exchange whose result is large, in one closed block. Gives the block and
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

/// The answer is the one that something that never was gets.
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

/// The stable part of the prompt, and what is told last.
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
    for engine in [Engine::Sqlite, Engine::Sled] {
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
            // Writing finds out too that somebody else has written.
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

/// TD2: what was loaded from another todo is kept by value: the conversation is whole after the
/// other is forgotten, and the grants end with it.
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

/// TD2: a grant can be taken back, does not reach a new todo of the same name, and a block comes with
/// its own payloads only.
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
    // Nor does a block that speaks of another's payload bring it along.
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
    // A payload that was granted by itself outlives the block's grant, and the other way around.
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

/// S9, TD2: what was granted goes with either todo, down to the bytes.
#[test]
fn s9_grants_go_with_a_forgotten_todo() {
    for (from, to) in [("canaryzq77", "stays"), ("stays", "canaryzq77")] {
        let dir = tempfile::tempdir().unwrap();
        let memory = open(dir.path());
        let own = work(&mut memory.session(&todo(from)).unwrap(), "数据");
        memory.session(&todo(to)).unwrap().record(Message::user("你好")).unwrap();
        memory.grants().grant(&todo(from), &todo(to), &own).unwrap();
        check_loads(&memory, &todo(to), &own);
        memory.maintenance().forget(&todo("canaryzq77")).unwrap();
        memory.maintenance().compact().unwrap();
        assert_eq!(memory.grants().list(&todo("stays")).unwrap(), []);
        drop(memory);
        check_no_canary(dir.path());
    }
}

/// TD2: the same text may stand in many blocks: it is one payload, and comes with any of them.
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

/// S9: a parent's name goes with the parent, from its children too.
#[test]
fn s9_a_forgotten_parent_is_named_nowhere() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let memory = open_on(engine, dir.path());
        let mut parent = memory.session(&todo("canaryzq77")).unwrap();
        parent.record(Message::user("你好")).unwrap();
        let mut child = parent.child_session(&todo("stays")).unwrap();
        child.record(Message::user("好")).unwrap();
        drop(parent);
        memory.maintenance().forget(&todo("canaryzq77")).unwrap();
        assert_eq!(child.parent().unwrap(), None);
        // Nor is one that takes its name taken for it.
        memory.session(&todo("canaryzq77")).unwrap();
        assert_eq!(child.parent().unwrap(), None);
        memory.maintenance().forget(&todo("canaryzq77")).unwrap();
        drop(child);
        memory.maintenance().compact().unwrap();
        drop(memory);
        check_no_canary(dir.path());
    }
}

/// S9: grants and returns that are made beside a forgetting go too, whichever comes first.
#[test]
fn s9_nothing_is_granted_beside_a_forgetting() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let stays = todo("stays");
    memory.session(&stays).unwrap().record(Message::user("你好")).unwrap();
    for n in 0..40_u64 {
        let canary = todo(&format!("canaryzq77-{n}"));
        let own = work(&mut memory.session(&canary).unwrap(), "数据");
        let others = work(&mut memory.session(&stays).unwrap(), "数据");
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let granting = scope.spawn(|| {
                start.wait();
                std::thread::sleep(Duration::from_micros(n * 60));
                for (from, to, what) in
                    [(&canary, &stays, &own[..]), (&stays, &canary, &others[..1])]
                {
                    // Which comes first is the machine's to say.
                    match memory.grants().grant(from, to, what) {
                        Ok(_) => {}
                        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                    }
                }
            });
            start.wait();
            memory.maintenance().forget(&canary).unwrap();
            granting.join().unwrap();
        });
    }
    memory.maintenance().compact().unwrap();
    assert_eq!(memory.grants().list(&todo("stays")).unwrap(), []);
    drop(memory);
    check_no_canary(dir.path());
}

/// S9: what a killed process has left of a grant goes when the store is repaired.
#[test]
fn s9_grants_of_todos_that_are_gone_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let own = work(&mut memory.session(&todo("canaryzq77")).unwrap(), "数据");
    memory.session(&todo("stays")).unwrap().record(Message::user("你好")).unwrap();
    memory.grants().grant(&todo("canaryzq77"), &todo("stays"), &own).unwrap();
    let no = memory.find(&todo("canaryzq77")).unwrap().no();
    let stays = memory.find(&todo("stays")).unwrap().no();
    drop(memory);
    let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let kept = |todo| kv.scan(Space::Grant, todo, 0..Key::N_END, 99).unwrap();
    let records: Vec<_> = [no, stays]
        .into_iter()
        .flat_map(|todo| {
            let key = move |n| Key { space: Space::Grant, todo, n };
            kept(todo).into_iter().map(move |(n, bytes)| (key(n), bytes))
        })
        .collect();
    assert_eq!(records.len(), 4);
    open(dir.path()).maintenance().forget(&todo("canaryzq77")).unwrap();
    assert_eq!((kept(no).len(), kept(stays).len()), (0, 0));
    // As if they had been written a moment later.
    kv.commit(Batch { put: records, ..Batch::default() }).unwrap();
    let memory = open(dir.path());
    assert_eq!(memory.grants().list(&todo("stays")).unwrap(), [], "they hold no more");
    assert_eq!(memory.maintenance().repair().unwrap().findings, Vec::<String>::new());
    assert_eq!((kept(no).len(), kept(stays).len()), (0, 0));
    memory.maintenance().compact().unwrap();
    drop((memory, kv));
    check_no_canary(dir.path());
}

fn check_no_canary(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            check_no_canary(&entry.path());
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let found = bytes.windows(10).any(|window| window == b"canaryzq77");
        assert!(!found, "{:?} still names it", entry.path());
    }
}

/// Nothing passes between a todo and one that is not its child.
#[track_caller]
fn check_not_child<T>(result: Result<T, Error>) {
    let refused = result.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::NotPermitted, "{refused}");
    assert!(refused.to_string().contains("was not begun as a child of"), "{refused}");
}

/// TD2: only what is one's own, and is there, can be granted.
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
    // What was granted to one is not one's own.
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

/// TD4: a list that a model wrote grants nothing: not by claiming references, not by naming the todo
/// of somebody else as an item.
#[test]
fn td4_a_list_grants_nothing_by_itself() {
    let memory = in_memory();
    let secret = work(&mut memory.session(&todo("stranger")).unwrap(), "机密");
    let mut parent = memory.session(&todo("plan")).unwrap();
    let mut item = TodoItem::new(todo("stranger"), "看看别人的东西");
    item.references = secret.to_vec();
    let claims = TodoList::new(vec![item.clone()]).unwrap();
    let refused = parent.set_todo_list(&claims).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotPermitted);
    assert!(refused.to_string().starts_with("item stranger has not returned"), "{refused}");
    assert!(parent.todo_list().items().is_empty());

    item.references.clear();
    let send = TodoItem::new(todo("send"), "发送").after([todo("stranger")]);
    parent.set_todo_list(&TodoList::new(vec![item, send]).unwrap()).unwrap();
    let child = parent.child_session(&todo("stranger")).unwrap();
    assert_eq!(child.parent().unwrap(), None, "a todo with a life of its own is nobody's child");
    let outcome = completed(&secret);
    check_not_child(parent.finish_item(&todo("stranger"), &outcome));
    let refused = child.return_to_parent(&outcome).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotPermitted);
    assert!(refused.to_string().contains("was not begun as a child of a todo that"), "{refused}");
    for reference in &secret {
        check_not_found(&memory, &todo("plan"), &reference.to_string());
    }
    assert_eq!(memory.grants().list(&todo("stranger")).unwrap(), []);
    assert_eq!(parent.todo_list().open(), 2, "what is refused changes nothing");

    // Nor is anything pushed at a todo that is not of the family; the others get what they wait for.
    let mut list = parent.todo_list().items().to_vec();
    list.push(TodoItem::new(todo("mine"), "自己的"));
    list.push(TodoItem::new(todo("next"), "然后").after([todo("mine")]));
    list[0] = TodoItem::new(todo("stranger"), "等着").after([todo("mine")]);
    parent.set_todo_list(&TodoList::new(list).unwrap()).unwrap();
    let own = work(&mut parent.child_session(&todo("mine")).unwrap(), "自己");
    let came = parent.finish_item(&todo("mine"), &completed(&own)).unwrap();
    assert_eq!(came.left_out, [todo("stranger")]);
    assert_eq!(came.grants.len(), 4, "{:?}", names(&came.grants));
    check_loads(&memory, &todo("plan"), &own);
    check_loads(&memory, &todo("next"), &own);
    check_not_found(&memory, &todo("stranger"), &own[0].to_string());
    parent.child_session(&todo("stranger")).unwrap();
    check_not_found(&memory, &todo("stranger"), &own[0].to_string());
}

/// TD4: a todo that its own host has begun belongs to nobody because a list names it; its host's word
/// makes it a child, and then it gets what it waited for.
#[test]
fn td4_a_list_adopts_no_todo_that_is_there() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let memory = open_on(engine, dir.path());
        let mut victim = memory.session(&todo("victim")).unwrap();
        let mut parent = memory.session(&todo("plan")).unwrap();
        let waits = TodoItem::new(todo("victim"), "等着").after([todo("research")]);
        let list = vec![TodoItem::new(todo("research"), "调研"), waits];
        parent.set_todo_list(&TodoList::new(list).unwrap()).unwrap();
        let mut child = parent.child_session(&todo("research")).unwrap();
        let returned = work(&mut child, "潮汐");
        let came = child.return_to_parent(&completed(&returned)).unwrap();
        assert_eq!((came.grants.len(), came.left_out), (2, vec![todo("victim")]));
        assert_eq!(victim.parent().unwrap(), None);
        check_not_found(&memory, &todo("victim"), &returned[0].to_string());

        let mut begun = memory.session(&todo("other-plan")).unwrap();
        begun.child_session(&todo("hers")).unwrap();
        check_not_child(parent.child_session(&todo("hers")));
        parent.refresh().unwrap();
        let same = parent.child_session(&todo("victim")).unwrap();
        assert_eq!(same.parent().unwrap(), Some(todo("plan")));
        check_loads(&memory, &todo("victim"), &returned);
        assert_eq!(names(&memory.grants().list(&todo("victim")).unwrap()).len(), 2);
        // The session that was open meanwhile goes on.
        victim.record(Message::user("继续")).unwrap();
        assert_eq!(victim.parent().unwrap(), Some(todo("plan")));
        // Beginning it once more gives nothing back that was taken.
        memory.grants().revoke(&todo("research"), &todo("victim"), &returned[0]).unwrap();
        memory.grants().revoke(&todo("research"), &todo("victim"), &returned[1]).unwrap();
        parent.child_session(&todo("victim")).unwrap();
        check_not_found(&memory, &todo("victim"), &returned[0].to_string());
        assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    }
}

/// TD4: of two that begin the same todo at once, one is its parent, and the other is told.
#[test]
fn td4_a_todo_has_one_parent() {
    let memory = in_memory();
    for n in 0..50 {
        let begin = |parent: String| {
            let memory = memory.clone();
            let child = todo(&format!("child-{n}"));
            std::thread::spawn(move || {
                let mut parent = memory.session(&todo(&parent)).unwrap();
                match parent.child_session(&child) {
                    Ok(child) => {
                        assert_eq!(child.parent().unwrap().as_ref(), Some(parent.todo()));
                        true
                    }
                    not_child => {
                        check_not_child(not_child);
                        false
                    }
                }
            })
        };
        let won = ["a", "b"].map(|name| begin(format!("{name}-{n}"))).map(|t| t.join().unwrap());
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
    }
}

/// TD4: what an item has returned is gone with the item; what was granted is not.
#[test]
fn td4_an_item_that_is_left_out_is_gone_with_what_it_returned() {
    let memory = in_memory();
    let mut parent = memory.session(&todo("plan")).unwrap();
    parent.set_todo_list(&plan()).unwrap();
    let returned = work(&mut parent.child_session(&todo("research")).unwrap(), "潮汐");
    parent.finish_item(&todo("research"), &completed(&returned)).unwrap();
    let other = TodoItem::new(todo("other"), "别的");
    parent.set_todo_list(&TodoList::new(vec![other]).unwrap()).unwrap();
    parent.set_todo_list(&plan()).unwrap();
    let item = parent.todo_list().item(&todo("research")).unwrap();
    assert_eq!((item.state, item.references.len()), (ItemState::Pending, 0));
    check_loads(&memory, &todo("plan"), &returned);
}

/// TD4: states follow each other; what waits later for an item that is done gets its references too.
#[test]
fn td4_the_list_goes_on_and_later_items_get_what_they_depend_on() {
    let memory = in_memory();
    let mut parent = memory.session(&todo("plan")).unwrap();
    parent.set_todo_list(&plan()).unwrap();
    let early = parent.set_item_state(&todo("draft"), ItemState::InProgress).unwrap_err();
    assert_eq!(
        early.to_string(),
        "item draft cannot become in_progress: it waits for research, which is not completed"
    );
    let returned = work(&mut parent.child_session(&todo("research")).unwrap(), "潮汐");
    parent.finish_item(&todo("research"), &completed(&returned)).unwrap();

    // The model writes the list anew, without what came back, and with one more item.
    let mut items = plan().items().to_vec();
    items[0].state = ItemState::Completed;
    items.push(TodoItem::new(todo("figures"), "画图").after([todo("research")]));
    parent.set_todo_list(&TodoList::new(items.clone()).unwrap()).unwrap();
    let item = parent.todo_list().item(&todo("research")).unwrap();
    assert_eq!(item.references, returned, "what was returned stays with its item");
    assert_eq!(item.result.as_deref(), Some("潮位 3.2 米"));
    check_loads(&memory, &todo("figures"), &returned);
    // A grant that was taken back is not given again by writing the list again.
    memory.grants().revoke(&todo("research"), &todo("figures"), &returned[0]).unwrap();
    parent.set_todo_list(&TodoList::new(items.clone()).unwrap()).unwrap();
    check_not_found(&memory, &todo("figures"), &returned[0].to_string());

    items[0].state = ItemState::Pending;
    let back = parent.set_todo_list(&TodoList::new(items).unwrap()).unwrap_err();
    assert_eq!(back.to_string(), "item research is completed and cannot become pending");
    parent.set_todo_list(&TodoList::default()).unwrap();
    assert!(!prompt(&parent).1.contains("Todo list"));
}

/// LV7: ticking an item moves nothing but the end of the prompt.
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

/// S3: 10,000 references that were guessed, mistyped, or belong to others, each beside something that
/// is granted: all are answered alike.
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

/// TD4, R1: a process that is killed while items return has each return whole or not at all: state,
/// references and grants are one transaction.
#[test]
fn td4_a_return_is_whole_or_not_there_when_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for cycle in 0..CYCLES {
        let mut child = spawn("grants::returner", dir.path());
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

/// Works off a plan and says each item once its return is durable. Runs only as a child.
#[test]
fn returner() {
    let Some(dir) = std::env::var_os("FOLDBACK_TEST_STORE") else { return };
    let memory = open(Path::new(&dir));
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
