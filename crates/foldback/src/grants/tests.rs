//! What a look-up of a grant costs.

use super::record::SLOTS;
use super::*;
use crate::{Close, Options};
use foldback_core::{BlockId, Message, ToolCall, ToolCallId};
use foldback_kv::{Error as KvError, Finding, Kv, Space};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type KvResult<T> = Result<T, KvError>;

/// A store that counts what is read from it.
struct Counting {
    kv: Arc<dyn Kv>,
    gets: AtomicU64,
    scans: AtomicU64,
}

impl Counting {
    fn count(&self) -> (u64, u64) {
        (self.gets.swap(0, Ordering::Relaxed), self.scans.swap(0, Ordering::Relaxed))
    }
}

impl Kv for Counting {
    fn commit(&self, batch: Batch) -> KvResult<()> {
        self.kv.commit(batch)
    }

    fn head(&self, todo: u32) -> KvResult<u64> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.kv.head(todo)
    }

    fn get(&self, key: Key) -> KvResult<Option<Vec<u8>>> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.kv.get(key)
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> KvResult<Vec<(u64, Vec<u8>)>> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.kv.scan(space, todo, range, limit)
    }

    fn last(&self, space: Space, todo: u32) -> KvResult<Option<(u64, Vec<u8>)>> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.kv.last(space, todo)
    }

    fn changed(&self) -> KvResult<u64> {
        self.kv.changed()
    }

    fn compact(&self) -> KvResult<()> {
        self.kv.compact()
    }

    fn backup(&self, dir: &Path) -> KvResult<()> {
        self.kv.backup(dir)
    }

    fn check(&self) -> KvResult<Vec<Finding>> {
        self.kv.check()
    }
}

fn id(text: &str) -> TodoId {
    TodoId::new(text).unwrap()
}

/// S3: a guess costs the same reads whatever it hits: another's block or payload, one that never
/// was, a todo that never was; and however many grants there are.
#[test]
fn s3_every_guess_costs_the_same_reads() {
    let kv = foldback_kv::memory();
    let counting = Arc::new(Counting { kv, gets: AtomicU64::new(0), scans: AtomicU64::new(0) });
    let memory = Memory::open_on(counting.clone(), None, Options::default()).unwrap();
    let mut from = memory.session(&id("a")).unwrap();
    for n in 0..40 {
        let call = format!("c{n}");
        let large = format!("第 {n} 行\n").repeat(600);
        from.record(Message::calls("", vec![ToolCall::new(&call, "read", "{}")])).unwrap();
        from.record(Message::tool_result(&ToolCallId::new(&call), &large)).unwrap();
        from.close(Close::End).unwrap();
    }
    memory.session(&id("b")).unwrap();
    memory.session(&id("c")).unwrap();
    let check = memory.payloads().meta(&memory.find(&id("a")).unwrap(), 39).unwrap().check;
    let guesses = [
        "b_a_040".to_owned(),
        "b_a_999".to_owned(),
        "b_c_001".to_owned(),
        "b_never_001".to_owned(),
        format!("store://a/39-{check}"),
        "store://a/39-aaaa".to_owned(),
        "store://a/9999-aaaa".to_owned(),
        "store://c/1-aaaa".to_owned(),
        "store://never/1-aaaa".to_owned(),
    ];
    for granted in [0, 1, 38] {
        let blocks = (1..=granted).map(|n| Reference::Block(BlockId::new(id("a"), n)));
        memory.grants().grant(&id("a"), &id("b"), &blocks.collect::<Vec<_>>()).unwrap();
        for guess in &guesses {
            let arguments = format!("{{\"ref\":\"{guess}\"}}");
            counting.count();
            let answer = memory.recall(&id("b"), "load", &arguments).unwrap();
            assert!(answer.is_error, "{guess}");
            // The own todo with its last block and its open messages, the other, and the places where the grant could
            // be.
            assert_eq!(counting.count(), (3 + SLOTS, 1), "{guess} beside {granted} grants");
        }
    }
}
