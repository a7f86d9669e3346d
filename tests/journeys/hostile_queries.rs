//! S12: whatever is asked, nothing fails and the work is bounded, counted in records read and terms
//! searched; its duration is a matter for a benchmark.

use crate::story::{options, todo};
use foldback::kv::{Batch, Error, Finding, Key, Kv, Space};
use foldback::{Close, Memory, SearchRequest};
use foldback_core::Message;
use foldback_testkit::{Random, effort, hostile_queries};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A store that counts the records that are read from it.
struct Counting {
    inner: Arc<dyn Kv>,
    records: AtomicUsize,
}

impl Counting {
    fn count(&self, records: usize) {
        self.records.fetch_add(records, Ordering::Relaxed);
    }
}

impl Kv for Counting {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        self.inner.commit(batch)
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        self.inner.head(todo)
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        self.count(1);
        self.inner.get(key)
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let found = self.inner.scan(space, todo, range, limit)?;
        self.count(found.len());
        Ok(found)
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        self.count(1);
        self.inner.last(space, todo)
    }

    fn changed(&self) -> Result<u64, Error> {
        self.inner.changed()
    }

    fn compact(&self) -> Result<(), Error> {
        self.inner.compact()
    }

    fn backup(&self, dir: &Path) -> Result<(), Error> {
        self.inner.backup(dir)
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        self.inner.check()
    }
}

const BLOCKS: usize = 3_000;

/// 3,000 blocks of generated talk, in an index on disk except for the last.
fn store(dir: &Path) -> (Memory, Arc<Counting>) {
    let kv = Arc::new(Counting { inner: foldback::kv::memory(), records: AtomicUsize::new(0) });
    let memory = Memory::open_on(kv.clone(), Some(dir), options()).unwrap();
    let mut session = memory.session(&todo("asked")).unwrap();
    let mut random = Random::new(3);
    for n in 0..BLOCKS {
        let asked = format!("What of {} at quay {n}? 潮汐", random.words(6));
        let told = format!("It is {} in src/quay_{n}.rs.", random.words(8));
        session.record_all(vec![Message::user(&asked), Message::assistant(&told)]).unwrap();
        session.close(Close::Switch).unwrap();
    }
    memory.maintenance().index().unwrap();
    (memory, kv)
}

/// S12: 1,000 hostile questions (250 in a short run) to `search_block` and to the memory, over 3,000 blocks.
#[test]
fn s12_hostile_queries_are_answered_with_bounded_work() {
    let dir = tempfile::tempdir().unwrap();
    let (memory, kv) = store(dir.path());
    let id = todo("asked");
    assert!(memory.blocks(&id, 0, usize::MAX).unwrap().len() >= BLOCKS);
    let reads = |ask: &dyn Fn()| {
        let before = kv.records.load(Ordering::Relaxed);
        ask();
        kv.records.load(Ordering::Relaxed) - before
    };
    // What is read once per process has been read by now.
    let plain = || drop(memory.recall(&id, "search_block", r#"{"query": "quay"}"#).unwrap());
    plain();
    let usual = reads(&plain);
    let (mut most, mut found) = ((0, 0), 0);
    for query in hostile_queries(effort(1_000) as usize) {
        let arguments = serde_json::json!({ "query": query, "k": 20 }).to_string();
        let told = reads(&|| {
            let answer = memory.recall(&id, "search_block", &arguments).unwrap();
            assert!(answer.text.len() < 64 << 10, "{} bytes to {query:.80}", answer.text.len());
        });
        let asked = reads(&|| {
            let request = SearchRequest::new(&query).k(usize::MAX).cutoff(f32::NAN);
            let hits = memory.search(&id, &request).unwrap().hits;
            assert!(hits.len() <= SearchRequest::MAX_K, "{} hits", hits.len());
            let terms = hits.iter().map(|hit| hit.explanation.terms.len()).max().unwrap_or(0);
            assert!(terms <= 64 && hits.iter().all(|hit| hit.score.is_finite()), "{terms} terms");
        });
        // For 20 hits, and for 200, only the records that show them are read.
        assert!(told <= 200 && asked <= 1_500, "{told} and {asked} records for {query:.80}");
        most = (most.0.max(told), most.1.max(asked));
        found += usize::from(asked > usual);
    }
    println!("usually {usual} records, at most {most:?}; {found} questions found much");
    assert!(found > 0, "no question found anything");
}
