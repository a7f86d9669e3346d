//! A store on a server: reading it takes few round trips, and finds what reading it here finds.

use crate::story::{options, todo};
use foldback::kv::{Batch, Error, Finding, Key, Kv, Scans, Space};
use foldback::{Close, IndexConfig, Memory, SearchRequest};
use foldback_core::{Message, ToolCall, ToolCallId};
use foldback_testkit::{Random, effort};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A store that is read as one on a server is: what is asked is counted, several records can be asked for at once, and the
/// change counter of a todo counts the commits that expect its head.
struct Server {
    records: Arc<dyn Kv>,
    commits: Arc<Mutex<HashMap<u32, u64>>>,
    is_remote: bool,
    asked: AtomicUsize,
    /// What happens once, after records were read at once and before the reader has them.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Server {
    fn new(records: Arc<dyn Kv>) -> Arc<Self> {
        let (commits, asked, meanwhile) = <_>::default();
        Arc::new(Self { records, commits, is_remote: true, asked, meanwhile })
    }

    /// The same store as a program sees it that asks for each record alone.
    fn beside(&self) -> Arc<Self> {
        let (records, commits) = (self.records.clone(), self.commits.clone());
        let (asked, meanwhile) = <_>::default();
        Arc::new(Self { records, commits, is_remote: false, asked, meanwhile })
    }

    /// Returns how often it was asked since the last call.
    fn take(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }

    fn ask(&self) -> &dyn Kv {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.records.as_ref()
    }
}

impl Kv for Server {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        let todo = batch.expect.map(|expect| expect.todo);
        self.ask().commit(batch)?;
        if let Some(todo) = todo {
            *self.commits.lock().unwrap().entry(todo).or_default() += 1;
        }
        Ok(())
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        self.ask().head(todo)
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        self.ask().get(key)
    }

    fn get_each(
        &self,
        space: Space,
        todo: u32,
        numbers: &[u64],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.ask().get_each(space, todo, numbers)
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.ask().scan(space, todo, range, limit)
    }

    fn scan_each(
        &self,
        todo: u32,
        ranges: &[(Space, Range<u64>)],
        limit: usize,
    ) -> Result<Scans, Error> {
        let scans = self.ask().scan_each(todo, ranges, limit);
        let meanwhile = self.meanwhile.lock().unwrap().take();
        meanwhile.into_iter().for_each(|meanwhile| meanwhile());
        scans
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        self.ask().last(space, todo)
    }

    fn changed(&self) -> Result<u64, Error> {
        self.ask().changed()
    }

    fn changed_in(&self, todo: u32) -> Result<u64, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(self.commits.lock().unwrap().get(&todo).copied().unwrap_or_default())
    }

    fn compact(&self) -> Result<(), Error> {
        self.ask().compact()
    }

    fn backup(&self, dir: &Path) -> Result<(), Error> {
        self.ask().backup(dir)
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        self.ask().check()
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }
}

/// A memory whose todos are indexed on disk from the first block on.
fn eager(kv: Arc<dyn Kv>, dir: &Path) -> Memory {
    let index = IndexConfig::default().with_index_after_blocks(0).with_batch_blocks(1);
    Memory::open_on(kv, Some(dir), options().with_index(index)).unwrap()
}

/// PG13: a search of a todo that has not changed asks for the todo, for its counter, for the vectors that it compares,
/// and for the blocks that it returns.
#[test]
fn pg13_a_search_of_an_unchanged_todo_takes_few_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::new(foldback::kv::memory());
    let memory = eager(server.clone(), dir.path());
    let quay = todo("quay");
    let mut session = memory.session(&quay).unwrap();
    let mut random = Random::new(12);
    for n in 0..200 {
        let said = format!("{} at quay {n} 潮汐", random.words(6));
        session.record(Message::user(&said)).unwrap();
        session.close(Close::Switch).unwrap();
    }
    session.record(Message::user("The ferry at quay 201 is open. 渡轮")).unwrap();
    let ask = |words: &str| {
        let found = memory.search(&quay, &SearchRequest::new(words).k(5)).unwrap();
        (found.hits, server.take())
    };
    // All in memory.
    let (first, _) = ask("潮汐 at quay 17");
    let (again, asked) = ask("潮汐 at quay 17");
    assert_eq!(again, first);
    assert_eq!((again.len(), asked), (5, 3));
    // In an index on disk.
    memory.maintenance().index().unwrap();
    let (indexed, _) = ask("潮汐 at quay 17");
    let (again, asked) = ask("潮汐 at quay 17");
    assert_eq!(again, indexed);
    assert!((again.len(), asked) == (5, 4), "asked {asked} times");
    // Open messages are found, also right after they were recorded.
    let open = |words: &str| ask(words).0.iter().any(|hit| hit.block.header.block_id.n() == 201);
    assert!(open("渡轮 ferry at quay 201"));
    session.record(Message::user("The crane is locked. 起重机")).unwrap();
    assert!(open("crane 起重机"));
    let (_, asked) = ask("crane 起重机");
    assert!(asked <= 4, "asked {asked} times");
}

/// PG13: what was committed to a todo since its last search is read at once, with one round trip more than for an unchanged
/// todo.
#[test]
fn pg13_a_search_after_commits_takes_few_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::new(foldback::kv::memory());
    let memory = eager(server.clone(), dir.path());
    let quay = todo("quay");
    let mut session = memory.session(&quay).unwrap();
    let mut random = Random::new(21);
    let ask = |words: &str| {
        server.take();
        let found = memory.search(&quay, &SearchRequest::new(words).k(5)).unwrap();
        (found.hits, server.take())
    };
    for n in 0..300 {
        let said = format!("{} at quay {n} 潮汐", random.words(6));
        session.record(Message::user(&said)).unwrap();
        if n % 3 == 2 {
            session.close(Close::Switch).unwrap();
        }
        if n == 150 {
            memory.maintenance().index().unwrap();
        }
        let (hits, asked) = ask(&format!("潮汐 at quay {n}"));
        let newest = hits.iter().any(|hit| hit.block.range.last().0 == n);
        assert!(newest, "{n}: {hits:?}");
        // The first search begins with nothing, and another opens the index that was built.
        assert!(asked <= 5 || n == 0 || n == 150, "{n}: asked {asked} times");
    }
}

/// PG13: what was read at once is of no use to a search that others have overtaken meanwhile.
#[test]
fn pg13_a_search_that_was_overtaken_finds_what_is_new() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::new(foldback::kv::memory());
    let local = Arc::new(eager(server.beside(), here.path()));
    let remote = Arc::new(eager(server.clone(), there.path()));
    let quay = todo("quay");
    let record = |memory: &Memory, said: &str| {
        let mut session = memory.session(&todo("quay")).unwrap();
        session.record(Message::user(said)).unwrap();
        session.close(Close::Switch).unwrap();
    };
    for n in 0..12 {
        record(&local, &format!("Crate {n} of 鲱鱼 is at the quay."));
    }
    let ask = move |memory: &Memory| {
        memory.search(&todo("quay"), &SearchRequest::new("crate 鲱鱼 heron").k(20)).unwrap().hits
    };
    assert_eq!(ask(&remote), ask(&local));
    record(&local, "A heron sits on the first crate.");
    let (other, writer) = (remote.clone(), local.clone());
    *server.meanwhile.lock().unwrap() = Some(Box::new(move || {
        let mut session = writer.session(&quay).unwrap();
        session.record(Message::user("And a heron on the second crate.")).unwrap();
        session.close(Close::Switch).unwrap();
        assert_eq!(ask(&other), ask(&writer));
    }));
    assert_eq!((ask(&remote).len(), ask(&local).len()), (14, 14));
    server.take();
    assert_eq!(ask(&remote), ask(&local));
    assert!(server.take() <= 5);
}

/// PG13: what is read at once, or kept while nothing changes, finds the same as what is read each time.
#[test]
fn pg13_reading_at_once_finds_the_same() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::new(foldback::kv::memory());
    let (local, remote) = (eager(server.beside(), here.path()), eager(server, there.path()));
    let mut random = Random::new(77);
    let ids = [todo("quay"), todo("pier")];
    for step in 0..effort(150) {
        let id = &ids[random.below(2)];
        let writer = if random.below(2) == 0 { &local } else { &remote };
        match random.below(12) {
            0..=6 => {
                let mut session = writer.session(id).unwrap();
                let said = format!("{} 潮汐 {step}", random.words(8));
                session.record(Message::user(&said)).unwrap();
                if random.below(3) == 0 {
                    let log: String =
                        (0..900).map(|n| format!("line {n}: {}\n", random.words(4))).collect();
                    let id = format!("c{step}");
                    let call = ToolCall::new(&id, "log", "{}");
                    let result = Message::tool_result(&ToolCallId::new(&id), &log);
                    session.record_all(vec![Message::calls("", vec![call]), result]).unwrap();
                }
                if random.below(2) == 0 {
                    session.close(Close::Switch).unwrap();
                }
            }
            7 => drop(writer.maintenance().index()),
            8 if random.below(4) == 0 => drop(writer.maintenance().forget(id)),
            _ => {}
        }
        let words = format!("潮汐 {}", random.words(3));
        let request = SearchRequest::new(&words).k(6);
        for _ in 0..2 {
            let (a, b) = (local.search(id, &request), remote.search(id, &request));
            match (a, b) {
                (Ok(a), Ok(b)) => assert_eq!(a, b, "step {step}"),
                (a, b) => assert_eq!(a.is_err(), b.is_err(), "step {step}"),
            }
        }
    }
}
