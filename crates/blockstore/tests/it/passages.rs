//! BS7: what payloads say is found under their blocks, with the lines that say it.

use crate::fixture::{Random, Writer, ask, eager, numbers};
use foldback_blockstore::{
    BlockStore, FindingKind, Hit, IndexConfig, PassageHit, PayloadTexts, SearchRequest,
    UnsearchedPart, WhyUnsearched,
};
use foldback_core::{Check, PayloadRef, Timestamp};
use foldback_kv::Todo;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Payloads that are kept elsewhere, and what was read of them.
#[derive(Default)]
struct Shelf {
    texts: Mutex<BTreeMap<u64, Vec<u8>>>,
    read: Mutex<u64>,
    /// The payloads that cannot be read now.
    fails: Mutex<BTreeSet<u64>>,
    /// Which of them were asked for, and how many bytes.
    refused: Mutex<Vec<(u64, u64)>>,
    /// A reader of one of them waits for it.
    gate: Mutex<()>,
}

impl PayloadTexts for Shelf {
    fn read(&self, _: &Todo, n: u64, bytes: Range<u64>) -> Result<Vec<u8>, WhyUnsearched> {
        if self.fails.lock().contains(&n) {
            self.refused.lock().push((n, bytes.end - bytes.start));
            drop(self.gate.lock());
            return Err(WhyUnsearched::Unreadable("too many open files".to_owned()));
        }
        let texts = self.texts.lock();
        let bytes = bytes.start as usize..bytes.end as usize;
        let part = texts.get(&n).and_then(|text| text.get(bytes));
        *self.read.lock() += part.map_or(0, |part| part.len() as u64);
        part.map(<[u8]>::to_vec).ok_or(WhyUnsearched::Missing)
    }
}

/// A todo whose messages have payloads.
struct Place {
    writer: Writer,
    shelf: Arc<Shelf>,
}

impl Place {
    fn new(dir: Option<&Path>, config: IndexConfig) -> Self {
        let mut writer = Writer::on(foldback_kv::memory(), None, config.clone(), "t");
        let shelf = Arc::new(Shelf::default());
        writer.store = reader(&writer, &shelf, dir, config);
        Self { writer, shelf }
    }

    fn in_memory() -> Self {
        Self::new(None, IndexConfig::default())
    }

    /// A block that says something and has a payload.
    fn block(&mut self, says: &str, n: u64, text: &str) -> &mut Self {
        self.shelf.texts.lock().insert(n, text.as_bytes().to_vec());
        self.writer.say(says).payload(n, text).close().commit();
        self
    }

    fn reader(&self, dir: Option<&Path>, config: IndexConfig) -> BlockStore {
        reader(&self.writer, &self.shelf, dir, config)
    }

    fn ask(&self, query: &str) -> Vec<Hit> {
        let request = SearchRequest::new(query).cutoff(0.675);
        self.writer.store.searcher(&self.writer.todo).unwrap().search(&request).unwrap()
    }

    /// The text of a passage that was found, by its lines.
    fn lines(&self, hit: &PassageHit) -> String {
        let texts = self.shelf.texts.lock();
        let text = String::from_utf8_lossy(&texts[&hit.payload.n]).into_owned();
        let lines = text.split_inclusive('\n').skip(hit.first_line as usize - 1);
        lines.take((hit.last_line - hit.first_line) as usize + 1).collect()
    }
}

fn reader(
    writer: &Writer,
    shelf: &Arc<Shelf>,
    dir: Option<&Path>,
    config: IndexConfig,
) -> BlockStore {
    let dir = dir.map(Into::into);
    BlockStore::open_with_payloads(writer.kv.clone(), shelf.clone(), dir, config).unwrap()
}

fn log(lines: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    (1..=lines).map(|i| format!("{i} INFO {}\n", random.line(8))).collect()
}

/// A log with one line that is like no other.
fn log_with(needle: &str, at: usize) -> String {
    log(900, 5).replace(&format!("\n{at} INFO"), &format!("\n{at} ERROR {needle}"))
}

#[test]
fn bs7_what_only_a_payload_says_is_found_with_its_lines() {
    let mut place = Place::in_memory();
    place.block("run the deploy script", 1, &log_with("E-44817 lease expired", 611));
    place.block("看一下部署日志", 2, &log_with("数据库连接超时,重试三次", 402));
    place.writer.lines(&["and what is for lunch?", "soup, as every day"]);
    for (query, block, payload, line, words) in [
        ("E-44817", 1, 1, 611, "E-44817"),
        ("why has the lease expired?", 1, 1, 611, "lease expired"),
        ("数据库连接超时", 2, 2, 402, "数据库连接超时"),
    ] {
        let hits = place.ask(query);
        let first = &hits[0];
        assert_eq!(first.block.header.block_id.n(), block, "{query}: {first}");
        let best = &first.passages[0];
        assert_eq!(best.payload.n, payload, "{query}: {first}");
        assert!((best.first_line..=best.last_line).contains(&line), "{query}: {best:?}");
        assert!(place.lines(best).contains(words), "{query}: {best:?}");
        let text = place.shelf.texts.lock()[&payload].clone();
        let bytes = best.bytes.start as usize..best.bytes.end as usize;
        assert_eq!(String::from_utf8_lossy(&text[bytes]), place.lines(best));
        assert_eq!(
            best.payload.to_string(),
            PayloadRef::local(payload, best.payload.check).to_string()
        );
        assert!(first.passages.len() <= 3 && first.relevance > 0.7, "{query}: {first}");
        assert!(first.to_string().contains("store://"), "{first}");
    }
    // An id is an exact hit wherever it occurs.
    assert!(place.ask("E-44817")[0].exact);
    assert!(place.ask("soup lunch")[0].passages.is_empty());
    assert_eq!(place.ask("zebra migration"), []);
}

#[test]
fn bs7_own_words_are_not_outweighed_by_a_payload_that_shares_one() {
    let mut place = Place::in_memory();
    place.block("list the files", 1, &log(900, 8));
    place.writer.lines(&["the retry limit of word7 is eleven", "word7 has moved elsewhere"]);
    let hits = place.ask("retry limit of word7");
    assert_eq!(numbers(&hits)[0], 2, "{}", hits[0]);
    assert!(hits[0].passages.is_empty());
}

#[test]
fn bs7_a_block_without_readable_payloads_is_searched_by_its_own_words() {
    let mut place = Place::in_memory();
    place.block("run the deploy script", 1, &log_with("lease expired", 611));
    place.block("read the picture", 2, &log(200, 4));
    place.shelf.texts.lock().clear();
    assert_eq!(numbers(&place.ask("deploy script")), [1]);
    assert_eq!(place.ask("lease expired"), []);
    assert_eq!(numbers(&place.ask("read the picture")), [2]);
    // Nobody reads payloads here at all.
    let alone = place.writer.reader(None, IndexConfig::default());
    assert_eq!(numbers(&ask(&alone, &place.writer.todo, "deploy script", 1)), [1]);
}

#[test]
fn bs7_binary_payloads_are_not_read() {
    let mut place = Place::in_memory();
    place.block("read the picture", 1, "png \0\nE-9921");
    assert_eq!(place.ask("E-9921"), []);
    assert_eq!(*place.shelf.read.lock(), 0);
}

#[test]
fn bs7_of_a_large_payload_the_beginning_is_searched() {
    let mut place = Place::in_memory();
    let mut text = "early-7001 ".to_owned();
    text.push_str(&"many words fill this payload \n".repeat((16 << 20) / 30));
    text.push_str("\nlate-7003");
    text.insert_str((16 << 20) - 40, " last-7002 ");
    place.block("dump it all", 1, &text);
    assert_eq!(numbers(&place.ask("early-7001")), [1]);
    assert_eq!(numbers(&place.ask("last-7002")), [1]);
    assert_eq!(place.ask("late-7003"), []);
    assert!(*place.shelf.read.lock() <= 16 << 20);
}

/// Law 4: indexes on disk answer as the truth does, to the last bit.
#[test]
fn bs7_c3_passages_on_disk_are_found_as_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut place = Place::new(Some(dir.path()), eager());
    let mut random = Random::new(3);
    for n in 1..=60 {
        let says = random.line(9);
        // Some payloads are in two blocks.
        let payload = 1 + n % 50;
        place.block(&says, payload, &log(20 + payload as usize % 7 * 15, payload));
        if n == 20 || n == 50 {
            place.writer.store.maintain(&place.writer.todo).unwrap();
        }
    }
    let todo = &place.writer.todo;
    let searcher = place.writer.store.searcher(todo).unwrap();
    assert_eq!((searcher.blocks_on_disk(), searcher.blocks()), (50, 60));
    let memory = place.reader(None, IndexConfig::default());
    let mut told = 0;
    for _ in 0..120 {
        let words = 1 + random.below(6);
        let query = random.line(words);
        let expected = ask(&memory, todo, &query, 5);
        assert_eq!(ask(&place.writer.store, todo, &query, 5), expected, "{query}");
        told += expected.iter().map(|hit| hit.passages.len()).sum::<usize>();
        let request = SearchRequest::new(&query).k(20).cutoff(0.5);
        let expected = memory.searcher(todo).unwrap().search(&request).unwrap();
        assert_eq!(searcher.search(&request).unwrap(), expected, "{query}");
    }
    assert!(told > 100, "{told} passages were found");
    assert_eq!(place.writer.store.doctor(todo, false).unwrap(), []);
}

#[test]
fn bs7_every_passage_that_is_found_holds_words_of_the_question() {
    let mut place = Place::in_memory();
    place.block("first", 1, &log(400, 1).replace('\n', "\r\n"));
    place.block("second", 2, &log(3_000, 2).replace('\n', " | "));
    place.block("third", 3, &format!("{}no line feed at the end", "数据 分析\n\n".repeat(900)));
    let mut random = Random::new(9);
    let mut told = 0;
    for _ in 0..60 {
        let query = format!("word{} 分析", random.below(400));
        for hit in place.ask(&query) {
            let terms: Vec<&str> =
                hit.explanation.passage_terms.iter().map(|(term, _)| term.as_str()).collect();
            assert!(terms.iter().all(|term| query.contains(term)), "{query}: {terms:?}");
            for passage in &hit.passages {
                let text = place.lines(passage);
                assert!(terms.iter().any(|term| text.contains(term)), "{query}: {passage:?}");
                told += 1;
            }
        }
    }
    assert!(told > 60, "{told} passages were found");
}

/// Much text in payloads is worth an index, however few the blocks are.
#[test]
fn bs7_a_few_blocks_with_much_payload_text_get_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let config = IndexConfig::default().with_index_after_passages(100);
    let mut place = Place::new(Some(dir.path()), config.clone());
    place.block("little", 1, &log(100, 1));
    let done = place.writer.store.maintain(&place.writer.todo).unwrap();
    assert_eq!((done.indexed, place.writer.store.index_lag(&place.writer.todo).unwrap()), (0, 0));
    let much = log(4_000, 2);
    place.block("much", 2, &much);
    assert_eq!(place.writer.store.index_lag(&place.writer.todo).unwrap(), 2);
    assert_eq!(place.writer.store.maintain(&place.writer.todo).unwrap().indexed, 2);
    // A little more waits; much more does not.
    place.block("little more", 3, &log(50, 3));
    assert_eq!(place.writer.store.maintain(&place.writer.todo).unwrap().indexed, 0);
    place.block("much more", 4, &log_with("E-5150", 800).repeat(5));
    assert_eq!(place.writer.store.maintain(&place.writer.todo).unwrap().indexed, 2);
    // Opened again, nothing is read from payloads.
    *place.shelf.read.lock() = 0;
    let again = place.reader(Some(dir.path()), config);
    assert_eq!(numbers(&ask(&again, &place.writer.todo, "E-5150", 1)), [4]);
    assert_eq!(*place.shelf.read.lock(), 0);
}

#[test]
fn bs7_doctor_compares_passages_and_repairs() {
    let dir = tempfile::tempdir().unwrap();
    let mut place = Place::new(Some(dir.path()), eager());
    place.block("one", 1, &log(100, 1)).block("two", 2, &log_with("E-5150", 800));
    let Place { writer, shelf } = &place;
    writer.store.maintain(&writer.todo).unwrap();
    assert_eq!(writer.store.doctor(&writer.todo, false).unwrap(), []);
    let kinds = |repair| {
        let findings = writer.store.doctor(&writer.todo, repair).unwrap();
        findings.iter().map(|found| (found.kind, found.repaired)).collect::<Vec<_>>()
    };
    // A payload is lost, comes back as another, and is longer.
    let whole = shelf.texts.lock().remove(&2).unwrap();
    assert_eq!(kinds(false), [(FindingKind::IndexDiffers, false)]);
    let other = String::from_utf8(whole.clone()).unwrap().replace("E-5150", "E-5151");
    shelf.texts.lock().insert(2, other.into_bytes());
    assert_eq!(kinds(true), [(FindingKind::IndexDiffers, true)]);
    assert_eq!(kinds(false), []);
    assert_eq!(numbers(&place.ask("E-5151")), [2]);
    shelf.texts.lock().insert(2, whole);
    assert_eq!(kinds(true), [(FindingKind::IndexDiffers, true)]);
    assert_eq!(numbers(&place.ask("E-5150")), [2]);
}

/// A log that names something in every third line.
fn log_of(name: &str, lines: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let line = |n: usize| {
        let subject = if n.is_multiple_of(3) { name } else { "nothing" };
        format!("{n} INFO poll {} {subject} pending\n", random.line(3))
    };
    (1..=lines).map(line).collect()
}

/// Reading one file again and again makes its words neither common nor loud.
#[test]
fn bs7_a_payload_of_several_blocks_counts_once() {
    let mut place = Place::in_memory();
    place.writer.lines(&["supper was late", "retry_limit_77 caps at eleven"]);
    place.block("read the notes", 1, &log_with("the lease of quay-9, ticket T-5519", 300));
    let file = log_with("const LIMIT = retry_limit_77(11); lease of quay-9", 437);
    for take in 1..=8 {
        place.block(&format!("read it, take {take}"), 2, &file);
        place.writer.lines(&[&format!("lunch {take} was soup")]);
    }
    let hits = place.ask("retry_limit_77");
    assert_eq!(numbers(&hits), [2, 18], "{}", hits[0]);
    assert!(hits.iter().all(|hit| hit.exact), "{}", hits[1]);
    let also: Vec<u32> = hits[1].passages[0].also_in.iter().map(|id| id.n()).collect();
    assert_eq!(also, [16, 14, 12]);
    let hits = place.ask("which lease of quay-9?");
    let mut blocks = numbers(&hits);
    blocks.sort_unstable();
    assert_eq!(blocks, [3, 18], "one hit for each payload");
    // If the newest may not be returned, another block that carries it is.
    let todo = &place.writer.todo;
    let searcher = place.writer.store.searcher(todo).unwrap();
    let newest = hits.iter().find(|hit| hit.block.header.block_id.n() == 18).unwrap();
    let newest = Timestamp::parse(&newest.block.header.create_time).unwrap();
    let request = SearchRequest::new("retry_limit_77").until(Timestamp(newest.0 - 1));
    assert_eq!(numbers(&searcher.search(&request).unwrap())[..2], [2, 16]);
}

/// A block that says it in its own words precedes the logs that are full of it.
#[test]
fn bs7_a_name_in_a_log_does_not_drive_out_the_block_that_tells_it() {
    for (polls, lines) in [(1, 1_500), (6, 1_500), (2, 12)] {
        let mut place = Place::in_memory();
        place.writer.lines(&["order-8812 goes to the Hansen family, leave it at the side gate"]);
        for n in 0..40 {
            place.writer.lines(&[&format!("lunch number {n} is soup with bread")]);
        }
        for n in 1..=polls {
            place.block(&format!("poll the queue, {n}"), n, &log_of("order-8812", lines, n));
        }
        for query in ["order-8812", "status of order-8812", "订单 order-8812"] {
            let hits = place.ask(query);
            assert_eq!(numbers(&hits)[0], 1, "{polls} {query}: {}", hits[0]);
            assert!(hits[0].exact, "{}", hits[0]);
        }
        if lines == 12 {
            // If it is as rare among passages, the one that says more goes first.
            place.block("poll again", 99, &log_with("order-8812 refused by courier", 500));
            assert_eq!(numbers(&place.ask("order-8812 courier refused"))[0], 42 + polls as u32);
        }
    }
}

#[test]
fn bs7_coloured_words_are_found() {
    let mut place = Place::in_memory();
    let text = log_with("\u{1b}[1;31mpanicked\u{1b}[0m at \u{1b}[31mE-4417\u{1b}[0m", 611);
    place.block("run it", 1, &text);
    place.writer.lines(&["and what is for lunch?", "soup, as every day"]);
    for query in ["panicked", "E-4417"] {
        assert_eq!(numbers(&place.ask(query)), [1], "{query}");
    }
}

/// What cannot be read now is named and tried again, and the rest is searched. An index remembers what it lacks, and is
/// rebuilt once that can be read.
#[test]
fn r4_bs7_a_payload_that_cannot_be_read_now_is_named_and_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    for (index, is_indexed_without) in [(None, false), (Some("a"), false), (Some("b"), true)] {
        let index = index.map(|name| dir.path().join(name));
        let mut place = Place::new(index.as_deref(), eager());
        place.block("read the log", 1, &log_with("lease expired", 611));
        place.block("and another", 2, &log_with("quota exceeded", 300));
        let (store, todo) = (&place.writer.store, &place.writer.todo);
        let answer = |store: &BlockStore, query: &str| {
            let request = SearchRequest::new(query).cutoff(0.675);
            let answer = store.searcher(todo).unwrap().answer(&request).unwrap();
            let told = answer.not_searched.parts.iter().map(ToString::to_string).collect();
            (numbers(&answer.hits), told)
        };
        let check = |store: &BlockStore, query: &str, found: &[u32], told: &[&str]| {
            let told = told.iter().map(|told| (*told).to_owned()).collect::<Vec<_>>();
            assert_eq!(answer(store, query), (found.to_vec(), told), "{query} {index:?}");
        };
        *place.shelf.fails.lock() = BTreeSet::from([1]);
        if is_indexed_without {
            assert_eq!(store.maintain(todo).unwrap().indexed, 2);
        }
        let text = place.shelf.texts.lock()[&1].clone();
        let name = PayloadRef::local(1, Check::of(&text)).to_string();
        let told = format!("{name} cannot be read now");
        check(store, "lease expired", &[], &[&told]);
        check(store, "quota exceeded", &[2], &[&told]);
        // It is found by those that know the index, and by those that open it now.
        *place.shelf.fails.lock() = BTreeSet::new();
        let reader = place.reader(index.as_deref(), eager());
        for store in [store, &reader] {
            check(store, "lease expired", &[1], &[]);
        }
        let done = store.maintain(todo).unwrap();
        assert_eq!(done.dropped.is_some(), is_indexed_without);
        assert_eq!(done.indexed, if index.is_some() { 2 } else { 0 });
        check(store, "lease expired", &[1], &[]);
        *place.shelf.read.lock() = 0;
        check(&place.reader(index.as_deref(), eager()), "lease expired", &[1], &[]);
        assert_eq!(*place.shelf.read.lock() == 0, index.is_some(), "the index holds it");
        assert_eq!(store.doctor(todo, false).unwrap(), []);
    }
}

/// A search tries at most a megabyte of what could not be read again, and each payload in its turn; others that search the
/// todo do not wait for that.
#[test]
fn r4_bs7_a_search_tries_again_no_more_than_a_megabyte() {
    const PAYLOADS: u64 = 6;
    let mut place = Place::in_memory();
    place.shelf.fails.lock().extend(1..=PAYLOADS);
    for n in 1..=PAYLOADS {
        let text = format!("needle-{n}\n{}", log_with("lease expired", 40).repeat(30));
        assert!(text.len() > 1 << 20);
        place.block("read the log", n, &text);
    }
    let is_found = &|| place.ask("needle-4").iter().any(|hit| !hit.passages.is_empty());
    assert!(!is_found());
    place.shelf.refused.lock().clear();
    (0..PAYLOADS).for_each(|_| assert!(!is_found()));
    let refused = std::mem::take(&mut *place.shelf.refused.lock());
    assert_eq!(refused.len() as u64, PAYLOADS, "one for each search");
    assert!(refused.iter().all(|(_, bytes)| *bytes <= 1 << 20));
    let tried = refused.iter().map(|(n, _)| *n).collect::<BTreeSet<_>>();
    assert_eq!(tried, (1..=PAYLOADS).collect());

    let gate = place.shelf.gate.lock();
    std::thread::scope(|scope| {
        scope.spawn(|| place.ask("needle-4"));
        while place.shelf.refused.lock().is_empty() {
            std::thread::yield_now();
        }
        let (done, beside) = std::sync::mpsc::channel();
        scope.spawn(move || done.send(is_found()));
        let found = beside.recv_timeout(std::time::Duration::from_secs(60));
        drop(gate);
        assert_eq!(found, Ok(false), "a search waits for the other's payloads");
    });

    place.shelf.fails.lock().remove(&4);
    assert!((0..PAYLOADS).any(|_| is_found()));
}

/// Of a payload that is damaged in its middle, the part before the damage is found, on disk and in memory; and once it
/// is whole again all of it, each passage once.
#[test]
fn r4_bs7_what_stands_behind_the_damage_is_found_once_it_is_repaired() {
    let dir = tempfile::tempdir().unwrap();
    for index in [None, Some(dir.path())] {
        let mut place = Place::new(index, eager());
        let text = format!("{}needle-2\n", log_with("needle-1", 40).repeat(30));
        place.block("read the log", 1, &text);
        place.writer.lines(&["and what is for lunch?"]);
        let whole = place.shelf.texts.lock().get(&1).cloned().unwrap();
        assert!(whole.len() > 1 << 20, "it is read in two parts");
        place.shelf.texts.lock().insert(1, whole[..whole.len() - 1].to_vec());
        let (store, todo) = (&place.writer.store, &place.writer.todo);
        store.maintain(todo).unwrap();
        let ask = |query: &str| {
            let request = SearchRequest::new(query).cutoff(0.675);
            let answer = store.searcher(todo).unwrap().answer(&request).unwrap();
            (numbers(&answer.hits), answer.not_searched.parts.len())
        };
        assert_eq!(ask("needle-1"), (vec![1], 1));
        assert_eq!(ask("needle-2"), (vec![], 1));
        place.shelf.texts.lock().insert(1, whole);
        for _ in 0..2 {
            assert_eq!(ask("needle-1"), (vec![1], 0));
            assert_eq!(ask("needle-2"), (vec![1], 0));
            let hits = place.ask("needle-1 needle-2");
            let mut starts: Vec<u64> = hits[0].passages.iter().map(|p| p.bytes.start).collect();
            starts.dedup();
            assert_eq!(starts.len(), 3);
            store.maintain(todo).unwrap();
        }
        assert_eq!(store.doctor(todo, false).unwrap(), []);
    }
}

/// In memory passages take no more than their bound, and the newest payloads are searched.
#[test]
fn bs7_where_memory_is_short_the_newest_payloads_are_searched() {
    let config = IndexConfig::default().with_cache_bytes(2 << 20);
    let mut place = Place::new(None, config);
    let unique = |n: u64| -> String {
        (0..4_000).map(|i| format!("request {n}x{i}y{} served\n", i * 7_919)).collect()
    };
    for n in 1..=12 {
        place.block(&format!("read it, {n}"), n, &format!("{}needle-{n}\n", unique(n)));
        let newest = place.ask(&format!("needle-{n}"));
        assert_eq!(numbers(&newest)[..1], [n as u32], "{n}");
    }
    assert!(place.ask("needle-1").iter().all(|hit| hit.passages.is_empty()));
    // What found no room is named, the rest counted.
    let (store, todo) = (&place.writer.store, &place.writer.todo);
    let answer = store.searcher(todo).unwrap().answer(&SearchRequest::new("needle-1")).unwrap();
    let text = place.shelf.texts.lock()[&1].clone();
    let oldest = UnsearchedPart::Payload(PayloadRef::local(1, Check::of(&text)));
    let parts = answer.not_searched.parts;
    assert!(parts.iter().any(|told| told.part == oldest), "{parts:?}");
    assert!(parts.iter().all(|told| told.why == WhyUnsearched::NoRoom), "{parts:?}");
}

/// A batch ends with much text too, and the next is left for another time if that is requested.
#[test]
fn bs7_much_payload_text_is_indexed_in_batches() {
    let dir = tempfile::tempdir().unwrap();
    let mut place = Place::new(Some(dir.path()), eager());
    let text = "many words fill this payload \n".repeat((16 << 20) / 30);
    for n in 1..=3 {
        place.block("dump it all", n, &format!("{text}needle-{n}"));
    }
    let (store, todo) = (&place.writer.store, &place.writer.todo);
    store.stop_building();
    assert_eq!(store.maintain(todo).unwrap().indexed, 2);
    assert_eq!(store.index_lag(todo).unwrap(), 1);
    assert_eq!(store.maintain(todo).unwrap().indexed, 1);
    assert_eq!(numbers(&place.ask("needle-1")), [1]);
    assert_eq!(numbers(&place.ask("needle-3")), [3]);
}

/// A large index waits for more than a small one does.
#[test]
fn bs7_an_index_catches_up_by_a_part_of_what_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let config = IndexConfig::default().with_index_after_passages(10);
    let mut place = Place::new(Some(dir.path()), config);
    place.block("much", 1, &log(20_000, 1));
    let indexed = |place: &Place| place.writer.store.maintain(&place.writer.todo).unwrap().indexed;
    assert_eq!(indexed(&place), 1);
    place.block("more", 2, &log(1_000, 2));
    assert_eq!(indexed(&place), 0);
    // What it holds already is not more.
    place.block("much again", 1, &log(20_000, 1));
    assert_eq!(indexed(&place), 0);
    place.block("much more", 4, &log(4_000, 3));
    assert_eq!(indexed(&place), 3);
}
