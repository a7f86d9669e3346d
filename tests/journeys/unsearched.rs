//! R4: what could not be searched is part of the answer. Whatever single record or file is damaged,
//! each word is found or its container is named.

use crate::story::{options, todo};
use foldback::core::{Message, ToolCall, ToolCallId};
use foldback::{
    AllTodosRequest, Close, Engine, Hit, IndexConfig, Memory, Mode, NotSearched, OffloadPolicy,
    Options, SearchRequest, Session, UnsearchedPart, WhyUnsearched,
};
use foldback_kv::{Batch, Delete, Key, Kv, Registry, Space};
use foldback_testkit::{Random, effort};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A word, the message that says it, and the payload that says it if no message does.
struct Known {
    word: String,
    seq: u64,
    payload: Option<u64>,
}

/// A conversation of five blocks and an open tail, with payloads in records and in files.
struct Harbour {
    session: Session,
    known: Vec<Known>,
    payloads: u64,
}

impl Harbour {
    fn record(memory: &Memory) -> Vec<Known> {
        let session = memory.session(&todo("quay")).unwrap();
        let mut harbour = Self { session, known: Vec::new(), payloads: 0 };
        for n in 0..5 {
            harbour.exchange(n);
            harbour.session.close(Close::End).unwrap();
        }
        harbour.exchange(8);
        harbour.known
    }

    fn exchange(&mut self, n: u64) {
        let (asked, told) = (format!("askedq{n}x"), format!("toldz{n}v"));
        self.say(Message::user(&format!("please look at {asked} 码头")), Some((asked, None)));
        if !n.is_multiple_of(3) {
            // Small ones are records, large ones separate files.
            let lines = if n.is_multiple_of(2) { 40 } else { 1_700 };
            let needle = format!("needlek{n}w");
            let mut random = Random::new(n);
            let mut line = |line: usize| match line == lines * 3 / 4 {
                true => format!("{needle} stands here\n"),
                false => format!("{} {}\n", random.below(1 << 30), random.line(5)),
            };
            let log: String = (0..lines).map(&mut line).collect();
            let call = ToolCall::new(&format!("c{n}"), "read_log", r#"{"path":"log"}"#);
            self.say(Message::calls("", vec![call]), None);
            self.payloads += 1;
            let result = Message::tool_result(&ToolCallId::new(&format!("c{n}")), &log);
            self.say(result, Some((needle, Some(self.payloads))));
        }
        self.say(Message::assistant(&format!("it says {told}")), Some((told, None)));
    }

    fn say(&mut self, message: Message, said: Option<(String, Option<u64>)>) {
        let seq = self.session.record(message).unwrap().seq.0;
        self.known.extend(said.map(|(word, payload)| Known { word, seq, payload }));
    }
}

fn small(is_indexed: bool) -> Options {
    let (blocks, batch) = if is_indexed { (0, 1) } else { (10_000, 10_000) };
    let index = IndexConfig::default().with_index_after_blocks(blocks).with_batch_blocks(batch);
    options().with_index(index).with_offload(OffloadPolicy::default().with_tokens(100))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => drop(std::fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] })
        .filter(|path| path.file_name().is_some_and(|name| name != "lock"))
        .collect();
    files.sort();
    files
}

/// What happens to a record or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// A bit of it flips.
    Flip,
    /// It contains something else, with a valid checksum.
    Replace,
    Delete,
}

/// A damaged record or file.
#[derive(Clone, Debug)]
enum Thing {
    Record(Key),
    File(PathBuf),
}

/// Every part of a store whose damage no search may ignore.
fn things(dir: &Path) -> Vec<Thing> {
    let kv = foldback_kv::open(dir, Engine::Sqlite, Mode::ReadOnly).unwrap();
    let no = Registry::new(kv.clone()).find(&todo("quay")).unwrap().unwrap().no();
    let spaces = [Space::Message, Space::Block, Space::Vector, Space::Payload, Space::PayloadBytes];
    let mut things = Vec::new();
    for space in spaces.into_iter().chain([Space::Session]) {
        let found = kv.scan(space, no, 0..Key::N_END, 1_000).unwrap();
        things.extend(found.iter().map(|(n, _)| Thing::Record(Key { space, todo: no, n: *n })));
    }
    // The todo's own record, which the registry keeps under the number 0.
    things.push(Thing::Record(Key { space: Space::Todo, todo: 0, n: u64::from(no) }));
    things.extend(files_under(&dir.join("payloads")).into_iter().map(Thing::File));
    things
}

fn flip_in(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 4;
    std::fs::write(file, bytes).unwrap();
}

/// Flips a bit of a record in the store's file. Others may contain the same bytes.
fn flip_record(dir: &Path, key: Key, value: &[u8]) {
    let file = dir.join("store.sqlite");
    let part = &value[..value.len().min(300)];
    let bytes = std::fs::read(&file).unwrap();
    let windows = bytes.windows(part.len()).enumerate();
    for (at, _) in windows.filter(|(_, window)| *window == part) {
        flip_in(&file, at + part.len() / 2);
        let kv = foldback_kv::open(dir, Engine::Sqlite, Mode::ReadOnly).unwrap();
        if kv.get(key).is_err() {
            return;
        }
        drop(kv);
        flip_in(&file, at + part.len() / 2);
    }
    panic!("the record {key} is not in the file");
}

fn damage(dir: &Path, thing: &Thing, how: How) {
    match (thing, how) {
        (Thing::File(file), How::Flip) => {
            flip_in(file, file.metadata().unwrap().len() as usize / 2);
        }
        (Thing::File(file), How::Replace) => {
            std::fs::write(file, b"nothing of it is left").unwrap();
        }
        (Thing::File(file), How::Delete) => std::fs::remove_file(file).unwrap(),
        (Thing::Record(key), how) => {
            let kv = foldback_kv::open(dir, Engine::Sqlite, Mode::ReadWrite).unwrap();
            let value = kv.get(*key).unwrap().unwrap();
            let (put, delete) = match how {
                How::Replace => (vec![(*key, vec![0xc1])], Vec::new()),
                How::Delete => (Vec::new(), vec![Delete::one(*key)]),
                How::Flip => {
                    drop(kv);
                    return flip_record(dir, *key, &value);
                }
            };
            kv.commit(Batch { put, delete, ..Batch::default() }).unwrap();
        }
    }
}

/// Whether a hit contains the word, or its container is named.
fn is_told(known: &Known, hits: &[Hit], not_searched: &NotSearched) -> bool {
    let is_found = hits.iter().filter(|hit| hit.bm25 > 0.0).any(|hit| {
        let payloads = hit.passages.iter().map(|passage| passage.payload.n);
        hit.block.range.as_u64().contains(&known.seq)
            && known.payload.is_none_or(|n| payloads.clone().any(|payload| payload == n))
    });
    let is_named = not_searched.parts.iter().any(|told| match &told.part {
        UnsearchedPart::Messages(range) => range.as_u64().contains(&known.seq),
        UnsearchedPart::Payload(payload) => Some(payload.n) == known.payload,
        UnsearchedPart::Block(_) => true,
        _ => false,
    });
    is_found || is_named
}

/// Searches for every word through each entry point. `closed` is the first message that no block holds.
#[track_caller]
fn check(memory: &Memory, known: &[Known], closed: u64, about: &str) {
    for known in known {
        let request = SearchRequest::new(&known.word).k(10);
        let answer = memory.search(&todo("quay"), &request).unwrap();
        let parts = &answer.not_searched;
        assert!(is_told(known, &answer.hits, parts), "{}: {about}: {parts:?}", known.word);
        let arguments = serde_json::json!({ "query": known.word }).to_string();
        let told = memory.recall(&todo("quay"), "search_block", &arguments).unwrap();
        let is_named = told.text.lines().last().unwrap().starts_with("Not searched: ");
        assert_eq!(is_named, !told.unsearched.is_empty(), "{}: {about}: {}", known.word, told.text);
        // The query is in the answer's first line.
        let is_quoted = told.text.matches(known.word.as_str()).count() > 1;
        // What an index finds may be gone by now: then only its place is given.
        let is_named = is_named
            || told.text.contains(" cannot be shown, it is damaged")
            || told.text.contains("\nin store://");
        assert!(is_named || is_quoted, "{}: {about}: {}", known.word, told.text);
        if known.seq < closed {
            let request = AllTodosRequest::new(SearchRequest::new(&known.word).k(10));
            let answer = memory.owner().search(&request).unwrap();
            let parts = &answer.not_searched;
            assert!(is_told(known, &answer.hits, parts), "all, {}: {about}: {parts:?}", known.word);
        }
    }
    let listed = memory.recall(&todo("quay"), "list_blocks", "{}").unwrap();
    assert!(!listed.is_error && listed.text.contains("b_quay_00"), "{about}: {}", listed.text);
}

/// When the indexes are built: before the damage, so that they contain the damaged part; after it, so
/// that they lack it; or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Indexed {
    Before,
    After,
    Never,
}

fn index(memory: &Memory) {
    memory.maintenance().index().unwrap();
    memory.owner().index(|_, _| {}).unwrap();
}

#[test]
fn r4_each_word_is_found_or_its_place_is_named_whatever_is_damaged() {
    let (plain, indexed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let memory = Memory::open(plain.path(), small(false)).unwrap();
    let known = Harbour::record(&memory);
    let blocks = memory.blocks(&todo("quay"), 0, 100).unwrap();
    let closed = blocks.last().unwrap().range.last().0 + 1;
    assert!(blocks.len() >= 5 && known.iter().any(|known| known.seq >= closed));
    drop(memory);
    copy(plain.path(), indexed.path());
    index(&Memory::open(indexed.path(), small(true)).unwrap());
    // All is well: each word is found, and nothing is named.
    for dir in [plain.path(), indexed.path()] {
        let memory = Memory::open(dir, small(dir == indexed.path())).unwrap();
        for known in &known {
            let answer = memory.search(&todo("quay"), &SearchRequest::new(&known.word)).unwrap();
            assert_eq!(answer.not_searched, NotSearched::default(), "{}", known.word);
            assert!(is_told(known, &answer.hits, &answer.not_searched), "{}", known.word);
        }
    }
    let things = things(plain.path());
    let mut random = Random::new(4);
    for _ in 0..effort(120) {
        let thing = things[random.below(things.len())].clone();
        let how = [How::Flip, How::Replace, How::Delete][random.below(3)];
        let when = [Indexed::Before, Indexed::After, Indexed::Never][random.below(3)];
        // Only writes by SQLite itself reach processes that have the store open.
        let is_warm = how != How::Flip && random.below(2) == 0;
        let about = format!("{thing:?} {how:?} {when:?} {is_warm}");
        // Without the record of the last block its messages are open ones, which a search over all
        // todos does not cover.
        let last = blocks.last().unwrap();
        let is_last =
            |key: &Key| key.space == Space::Block && key.n == u64::from(last.header.block_id.n());
        let is_open = how == How::Delete && matches!(&thing, Thing::Record(key) if is_last(key));
        let closed = if is_open { last.range.first().0 } else { closed };
        let dir = tempfile::tempdir().unwrap();
        let (from, options) = match when {
            Indexed::Before => (indexed.path(), small(true)),
            Indexed::After => (plain.path(), small(true)),
            Indexed::Never => (plain.path(), small(false)),
        };
        copy(from, dir.path());
        let thing = match thing {
            Thing::File(file) => {
                Thing::File(dir.path().join(file.strip_prefix(plain.path()).unwrap()))
            }
            record => record,
        };
        if is_warm {
            let memory = Memory::open(dir.path(), options).unwrap();
            check(&memory, &known, closed, &about);
            damage(dir.path(), &thing, how);
            if when == Indexed::After {
                index(&memory);
            }
            check(&memory, &known, closed, &about);
            continue;
        }
        damage(dir.path(), &thing, how);
        let memory = Memory::open(dir.path(), options).unwrap();
        if when == Indexed::After {
            index(&memory);
        }
        check(&memory, &known, closed, &about);
    }
}

/// A restored payload is found again, through every entry point: by processes that had searched without
/// it, and by indexes that lack it.
#[test]
fn r4_what_comes_back_is_found_again() {
    for is_indexed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory::open(dir.path(), small(is_indexed)).unwrap();
        let known = Harbour::record(&memory);
        let files = files_under(&dir.path().join("payloads"));
        let whole: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert!(!files.is_empty());
        files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
        if is_indexed {
            index(&memory);
        }
        let needle = known.iter().find(|known| known.word == "needlek1w").unwrap();
        let holds = |hit: &Hit| hit.passages.iter().any(|passage| passage.payload.n == 1);
        let own = |memory: &Memory| {
            let request = SearchRequest::new(&needle.word);
            let answer = memory.search(&todo("quay"), &request).unwrap();
            (answer.hits.iter().any(holds), answer.not_searched.parts)
        };
        let all = |memory: &Memory| {
            let request = AllTodosRequest::new(SearchRequest::new(&needle.word));
            let answer = memory.owner().search(&request).unwrap();
            (answer.hits.iter().any(holds), answer.not_searched.parts)
        };
        for ask in [&own as &dyn Fn(&Memory) -> _, &all] {
            let (is_found, parts) = ask(&memory);
            assert!(!is_found && !parts.is_empty(), "{parts:?}");
            assert!(parts.iter().all(|told| told.why == WhyUnsearched::Missing), "{parts:?}");
        }
        files.iter().zip(&whole).for_each(|(file, bytes)| std::fs::write(file, bytes).unwrap());
        let again = Memory::open(dir.path(), small(is_indexed).with_mode(Mode::ReadOnly)).unwrap();
        for memory in [&memory, &again] {
            assert_eq!((own(memory), all(memory)), ((true, vec![]), (true, vec![])));
        }
        index(&memory);
        assert_eq!((own(&memory), all(&memory)), ((true, vec![]), (true, vec![])));
        assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    }
}

/// A store in which the heads of all todos are damaged on request.
struct Headless(Arc<dyn Kv>, std::sync::atomic::AtomicBool);

type KvResult<T> = Result<T, foldback_kv::Error>;

impl Kv for Headless {
    fn head(&self, todo: u32) -> KvResult<u64> {
        match todo > 0 && self.1.load(std::sync::atomic::Ordering::Relaxed) {
            true => {
                let detail = "a flipped bit".to_owned();
                Err(foldback_kv::Error::CorruptHead { todo, detail })
            }
            false => self.0.head(todo),
        }
    }

    fn commit(&self, batch: Batch) -> KvResult<()> {
        self.0.commit(batch)
    }

    fn get(&self, key: Key) -> KvResult<Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: std::ops::Range<u64>,
        limit: usize,
    ) -> KvResult<Vec<(u64, Vec<u8>)>> {
        self.0.scan(space, todo, range, limit)
    }

    fn last(&self, space: Space, todo: u32) -> KvResult<Option<(u64, Vec<u8>)>> {
        self.0.last(space, todo)
    }

    fn changed(&self) -> KvResult<u64> {
        self.0.changed()
    }

    fn compact(&self) -> KvResult<()> {
        self.0.compact()
    }

    fn backup(&self, dir: &Path) -> KvResult<()> {
        self.0.backup(dir)
    }

    fn check(&self) -> KvResult<Vec<foldback_kv::Finding>> {
        self.0.check()
    }
}

/// A todo whose head is damaged can still be searched.
#[test]
fn r4_a_damaged_head_hides_no_todo() {
    let kv = Arc::new(Headless(foldback_kv::memory(), false.into()));
    let memory = Memory::open_on(kv.clone(), None, small(false)).unwrap();
    let known = Harbour::record(&memory);
    drop(memory);
    kv.1.store(true, std::sync::atomic::Ordering::Relaxed);
    let memory = Memory::open_on(kv, None, small(false).with_mode(Mode::ReadOnly)).unwrap();
    let blocks = memory.blocks(&todo("quay"), 0, 100).unwrap();
    let closed = blocks.last().unwrap().range.last().0 + 1;
    for known in &known {
        let answer = memory.search(&todo("quay"), &SearchRequest::new(&known.word)).unwrap();
        assert!(is_told(known, &answer.hits, &NotSearched::default()), "{}", known.word);
        let arguments = serde_json::json!({ "query": known.word }).to_string();
        let told = memory.recall(&todo("quay"), "search_block", &arguments).unwrap();
        assert!(told.text.contains(&known.word), "{}", told.text);
        if known.seq < closed {
            let request = AllTodosRequest::new(SearchRequest::new(&known.word));
            let answer = memory.owner().search(&request).unwrap();
            assert!(is_told(known, &answer.hits, &NotSearched::default()), "{}", known.word);
        }
    }
}
