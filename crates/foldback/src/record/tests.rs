//! Commits that fail, and the errors that callers get.

use super::*;
use crate::{ErrorKind, Memory, Options};
use foldback_core::{Reference, TodoId, ToolCall};
use foldback_kv::{Batch, Error as KvError, Finding, Kv, Space};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

type KvResult<T> = Result<T, KvError>;

/// A machine's way to a database that others use, too. Its server may go away during a commit.
pub(crate) struct Cut {
    kv: Arc<dyn Kv>,
    is_cut: AtomicBool,
    /// Whether the server is away for reads, too, from the next commit on.
    cuts: AtomicBool,
}

impl Cut {
    pub(crate) fn new(kv: Arc<dyn Kv>) -> Arc<Self> {
        Arc::new(Self { kv, is_cut: AtomicBool::new(false), cuts: AtomicBool::new(false) })
    }

    fn read(&self) -> KvResult<&dyn Kv> {
        match self.is_cut.load(Ordering::Relaxed) {
            true => Err(KvError::Unreachable { path: "db".into(), detail: "cut off".to_owned() }),
            false => Ok(self.kv.as_ref()),
        }
    }
}

impl Kv for Cut {
    fn commit(&self, batch: Batch) -> KvResult<()> {
        if !self.cuts.load(Ordering::Relaxed) {
            return self.kv.commit(batch);
        }
        self.is_cut.store(true, Ordering::Relaxed);
        self.kv.commit(batch)?;
        Err(KvError::Unknown { path: "db".into(), detail: "cut off".to_owned() })
    }
    fn head(&self, todo: u32) -> KvResult<u64> {
        self.read()?.head(todo)
    }
    fn get(&self, key: Key) -> KvResult<Option<Vec<u8>>> {
        self.read()?.get(key)
    }
    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> KvResult<Vec<(u64, Vec<u8>)>> {
        self.read()?.scan(space, todo, range, limit)
    }
    fn last(&self, space: Space, todo: u32) -> KvResult<Option<(u64, Vec<u8>)>> {
        self.read()?.last(space, todo)
    }
    fn changed(&self) -> KvResult<u64> {
        self.read()?.changed()
    }
    fn compact(&self) -> KvResult<()> {
        self.read()?.compact()
    }
    fn backup(&self, dir: &Path) -> KvResult<()> {
        self.read()?.backup(dir)
    }
    fn check(&self) -> KvResult<Vec<Finding>> {
        self.read()?.check()
    }
    fn shares_derived(&self) -> bool {
        true
    }
}

/// PG3: a caller whose commit has an unknown outcome gets to know that, also while the server stays away, and does not
/// take it for a commit that can be repeated.
#[test]
fn pg3_an_unknown_outcome_stays_unknown_while_the_server_is_away() {
    let kv = Cut::new(foldback_kv::memory());
    let memory = Memory::open_on(kv.clone(), None, Options::default()).unwrap();
    let mut session = memory.session(&TodoId::new("quay").unwrap()).unwrap();
    session.record(Message::user("第一")).unwrap();
    kv.cuts.store(true, Ordering::Relaxed);
    let error = session.record(Message::user("第二")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    kv.cuts.store(false, Ordering::Relaxed);
    kv.is_cut.store(false, Ordering::Relaxed);
    session.refresh().unwrap();
    assert_eq!(session.len(), 2, "it was made after all");
}

/// PG2: a writer whose todo was forgotten learns that there is no such todo, whether its commit closes a block or not.
#[test]
fn pg2_a_writer_of_a_forgotten_todo_is_refused() {
    let kv = foldback_kv::memory();
    let memory = Memory::open_on(kv.clone(), None, Options::default()).unwrap();
    let other = Memory::open_on(kv, None, Options::default()).unwrap();
    let id = TodoId::new("quay").unwrap();
    let mut session = memory.session(&id).unwrap();
    for text in ["一", "二"] {
        session.record(Message::user(text)).unwrap();
        session.close(Close::End).unwrap();
    }
    session.record(Message::user("三")).unwrap();
    assert!(!session.is_forgotten().unwrap());
    other.maintenance().forget(&id).unwrap();
    let closed = session.close(Close::End).unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::NotFound, "{closed}");
    let recorded = session.record(Message::user("四")).unwrap_err();
    assert_eq!(recorded.kind(), ErrorKind::NotFound, "{recorded}");
    // Also once another one of the same name is as long.
    let mut anew = other.session(&id).unwrap();
    while anew.len() < session.len() {
        anew.record(Message::user("另一个")).unwrap();
    }
    assert!(session.is_forgotten().unwrap() && !anew.is_forgotten().unwrap());
}

/// LV9, LV6: what was loaded from another todo is found and loaded in the own one once the other is gone. What was loaded
/// from the own todo is found in its original place alone.
#[test]
fn lv6_lv9_what_another_todo_said_is_kept_as_what_was_said_here() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let id = |name: &str| TodoId::new(name).unwrap();
    let said = "The heron colony at Skarv nests above the gauge. 斯卡夫的苍鹭在水位计上方筑巢。";
    let mut child = memory.session(&id("child")).unwrap();
    child.record(Message::user(said)).unwrap();
    child.close(Close::End).unwrap();
    let mut parent = memory.session(&id("parent")).unwrap();
    let block = Reference::Block(BlockId::new(id("child"), 1));
    memory.grants().grant(&id("child"), &id("parent"), &[block]).unwrap();

    let mut load = |reference: &str| {
        let call = ToolCall::new("c", "load", &format!("{{\"ref\": \"{reference}\"}}"));
        parent.record(Message::user("What is known of the place?")).unwrap();
        parent.record(Message::calls("", vec![call.clone()])).unwrap();
        let answer = parent.call(&call).unwrap();
        assert!(answer.text.contains(said), "{}", answer.text);
        let result = Message::tool_result(&ToolCallId::new("c"), &answer.text);
        parent.record(result.clone()).unwrap();
        assert!(parent.answers.is_empty(), "it waits for its record no more");
        parent.close(Close::End).unwrap();
        result
    };
    let result = load("b_child_001");
    memory.maintenance().forget(&id("child")).unwrap();
    load("b_parent_001");

    let todo = memory.find(&id("parent")).unwrap();
    let stored = memory.shared.blocks.messages(&todo, 0..6).unwrap();
    let recalled: Vec<_> = stored.iter().map(|stored| stored.recall).collect();
    assert_eq!(recalled, [false, false, false, false, false, true]);
    assert_eq!(memory.messages(&id("parent"), 2..3).unwrap(), [result]);
    for query in ["heron colony Skarv", "苍鹭筑巢"] {
        let arguments = format!("{{\"query\": \"{query}\"}}");
        let found = memory.recall(&id("parent"), "search_block", &arguments).unwrap();
        assert_eq!(found.references, ["b_parent_001"], "{}", found.text);
    }
    let passage = &memory.recall(&id("parent"), "load", r#"{"ref": "b_parent_001"}"#).unwrap();
    assert!(passage.text.contains("苍鹭在水位计"), "{}", passage.text);
}

/// MD1: a block does not close while the server cannot say which references lead to something: its header would lack
/// them for ever.
#[test]
fn md1_no_block_closes_while_its_references_cannot_be_looked_up() {
    let kv = Cut::new(foldback_kv::memory());
    let memory = Memory::open_on(kv.clone(), None, Options::default()).unwrap();
    let [plan, research] = ["plan", "research"].map(|id| TodoId::new(id).unwrap());
    let stored = |todo: &TodoId| {
        let call = ToolCall::new("c", "read", "{}");
        let log = Message::tool_result(&call.id, &"潮位 3.2 米\n".repeat(2_000));
        let mut session = memory.session(todo).unwrap();
        session.record_all(vec![Message::calls("", vec![call]), log]).unwrap();
        session.close(Close::Switch).unwrap();
        memory.blocks(todo, 0, 1).unwrap().remove(0).header.data_ids.remove(0)
    };
    let (own, other) = (stored(&plan), stored(&research));
    let granted = Reference::parse_in(&research, &other).unwrap();
    memory.grants().grant(&research, &plan, std::slice::from_ref(&granted)).unwrap();
    for name in [own, granted.to_string()] {
        let mut session = memory.session(&plan).unwrap();
        session.record(Message::user(&format!("潮位在 {name} 里"))).unwrap();
        kv.is_cut.store(true, Ordering::Relaxed);
        let error = session.close(Close::Switch).unwrap_err();
        kv.is_cut.store(false, Ordering::Relaxed);
        assert!(error.to_string().contains("cut off"), "{error}");
        assert_eq!(session.close(Close::Switch).unwrap().len(), 1);
        assert_eq!(session.last_closed().last().unwrap().0.header.data_ids, [name]);
    }
}
