//! A store on a server: reading it takes few round trips, and finds what reading it here finds.

use crate::story::{options, todo};
use foldback::kv::{Batch, Error, Finding, Key, Kv, Scans, Space};
use foldback::{Close, Hit, IndexConfig, Memory, SearchRequest};
use foldback_core::{Message, ToolCall, ToolCallId};
use foldback_testkit::{Random, effort};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

/// A store that is read as one on a server is: what is asked is counted, several records can be asked for at once, and the
/// change counter of a todo counts the commits that expect its head.
struct Server {
    records: Arc<dyn Kv>,
    commits: Arc<Mutex<HashMap<u32, u64>>>,
    is_remote: bool,
    /// How often the thread that made it has asked; others keep indexes meanwhile.
    asked: AtomicUsize,
    thread: ThreadId,
    /// What happens once, after records were read at once and before the reader has them.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Server {
    fn new(records: Arc<dyn Kv>) -> Arc<Self> {
        let (commits, asked, meanwhile) = <_>::default();
        let thread = thread::current().id();
        Arc::new(Self { records, commits, is_remote: true, asked, thread, meanwhile })
    }

    /// The same store as a program sees it that asks for each record alone.
    fn beside(&self) -> Arc<Self> {
        let (records, commits) = (self.records.clone(), self.commits.clone());
        let (asked, meanwhile) = <_>::default();
        Arc::new(Self { records, commits, is_remote: false, asked, thread: self.thread, meanwhile })
    }

    /// Returns how often it was asked since the last call.
    fn take(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }

    fn ask(&self) -> &dyn Kv {
        let is_counted = thread::current().id() == self.thread;
        self.asked.fetch_add(usize::from(is_counted), Ordering::Relaxed);
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
        self.ask();
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

/// A memory that makes indexes on disk when it is asked to, or none.
fn seldom_indexed(kv: Arc<dyn Kv>, dir: &Path, has_none: bool) -> Memory {
    let after = if has_none { u32::MAX } else { 0 };
    let index = IndexConfig::default().with_index_after_blocks(after).with_batch_blocks(u32::MAX);
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
    let mut random = Random::new(21);
    // All in memory, and behind an index on disk.
    for (has_index, most) in [(false, 4), (true, 5)] {
        let memory = seldom_indexed(server.clone(), dir.path(), !has_index);
        memory.maintenance().index().unwrap();
        let mut session = memory.session(&todo("quay")).unwrap();
        for n in 0..60 {
            let seq = session.len();
            let said = format!("{} at quay {seq} 潮汐", random.words(6));
            session.record(Message::user(&said)).unwrap();
            if n % 3 == 2 {
                session.close(Close::Switch).unwrap();
            }
            server.take();
            let words = format!("潮汐 at quay {seq}");
            let answer = memory.search(&todo("quay"), &SearchRequest::new(&words).k(5)).unwrap();
            let asked = server.take();
            assert!(answer.hits.iter().any(|hit| hit.block.range.last().0 == seq), "{seq}");
            // The first search begins with nothing.
            assert!(asked <= most || n == 0, "{seq}: asked {asked} times");
        }
    }
}

/// PG13: the references that open messages quote are looked up at once, with one round trip more.
#[test]
fn pg13_quoted_references_take_one_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::new(foldback::kv::memory());
    let memory = seldom_indexed(server.clone(), dir.path(), true);
    let quay = todo("quay");
    let mut session = memory.session(&quay).unwrap();
    for n in 0..40 {
        let call = ToolCall::new(&format!("c{n}"), "log", "{}");
        let log = format!("潮位 {n} 米\n").repeat(2_000);
        let result = Message::tool_result(&call.id, &log);
        session.record_all(vec![Message::calls("", vec![call]), result]).unwrap();
        session.close(Close::Switch).unwrap();
    }
    let blocks = memory.blocks(&quay, 0, 99).unwrap();
    let stored: Vec<String> = blocks.into_iter().flat_map(|block| block.header.data_ids).collect();
    assert_eq!(stored.len(), 40);
    let said = format!("The crane 起重机 is in {} or store://9-zzzz.", stored.join(", "));
    session.record(Message::user(&said)).unwrap();
    let request = SearchRequest::new("crane 起重机").k(1);
    memory.search(&quay, &request).unwrap();
    for word in ["潮汐", "渡轮"] {
        session.record(Message::user(&format!("The crane 起重机 of {word}"))).unwrap();
        server.take();
        let found = memory.search(&quay, &request).unwrap().hits;
        let asked = server.take();
        assert_eq!(found[0].block.header.data_ids, stored);
        assert!(asked <= 5, "asked {asked} times");
    }
}

/// PG13: whether messages must be embedded again is asked for many of them at once.
#[test]
fn pg13_the_progress_of_embedding_takes_few_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::new(foldback::kv::memory());
    let memory = eager(server.clone(), dir.path());
    let mut session = memory.session(&todo("quay")).unwrap();
    for n in 0..300 {
        session.record(Message::user(&format!("Crate {n} of 鲱鱼."))).unwrap();
    }
    server.take();
    let progress = memory.embedding().progress().unwrap();
    assert_eq!((progress.done, progress.messages), (300, 300));
    let asked = server.take();
    assert!(asked <= 8, "asked {asked} times");
}

/// PG13: what was read at once is of no use to a search that others have overtaken meanwhile: it finds what they closed
/// and what they left open.
#[test]
fn pg13_a_search_that_was_overtaken_finds_what_is_new() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::new(foldback::kv::memory());
    let local = Arc::new(seldom_indexed(server.beside(), here.path(), true));
    let remote = Arc::new(seldom_indexed(server.clone(), there.path(), true));
    let record = |memory: &Memory, said: &str, is_closed: bool| {
        let mut session = memory.session(&todo("quay")).unwrap();
        session.record(Message::user(said)).unwrap();
        if is_closed {
            session.close(Close::Switch).unwrap();
        }
    };
    for n in 0..12 {
        record(&local, &format!("Crate {n} of 鲱鱼 is at the quay."), true);
    }
    let ask = |memory: &Memory| {
        memory.search(&todo("quay"), &SearchRequest::new("crate 鲱鱼 heron").k(20)).unwrap().hits
    };
    assert_eq!(ask(&remote), ask(&local));
    // A search that has read open messages, of which some are closed before it goes on.
    let (first, last) = closing();
    first.iter().for_each(|said| record(&local, said, false));
    let (other, writer) = (remote.clone(), local.clone());
    *server.meanwhile.lock().unwrap() = Some(Box::new(move || {
        record(&writer, &last, false);
        assert_eq!(ask(&other), ask(&writer));
    }));
    let found = ask(&remote);
    let held = |hit: &Hit| hit.block.range.last().0 + 1 == 12 + first.len() as u64;
    assert_eq!(found.iter().filter(|hit| held(hit)).count(), 1, "{found:?}");
    server.take();
    assert_eq!(ask(&remote), ask(&local));
    assert!(server.take() <= 4);
    // Many at once.
    for n in 0..300 {
        record(&local, &format!("Barrel {n} of 盐 is at the quay."), true);
    }
    let barrel = |memory: &Memory| {
        memory.search(&todo("quay"), &SearchRequest::new("barrel 盐 299").k(3)).unwrap().hits
    };
    assert_eq!(barrel(&remote), barrel(&local));
    let newest = local.len(&todo("quay")).unwrap() - 1;
    assert_eq!(barrel(&remote)[0].block.range.last().0, newest);
}

/// Returns messages that stay open, and one that closes some of them and leaves others.
fn closing() -> (Vec<String>, String) {
    let memory = Memory::in_memory(options()).unwrap();
    let mut session = memory.session(&todo("pier")).unwrap();
    let heron = |n| format!("A heron sits on crate {n}, and its nest of reeds is in the crane.");
    let price = |n| format!("The invoice lists the price of crate {n} with its discount and tax.");
    let mut said = Vec::new();
    for next in (0..8).map(heron).chain((0..12).map(price)) {
        session.record(Message::user(&next)).unwrap();
        let closed = memory.blocks(&todo("pier"), 0, 1).unwrap().pop();
        if closed.is_some_and(|closed| closed.range.last().0 + 1 < said.len() as u64) {
            return (said, next);
        }
        said.push(next);
    }
    panic!("no message closed a part of those before it");
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
