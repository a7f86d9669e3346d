//! A store changes its embedder: every vector is recomputed in the background, and no vector is ever
//! compared with another model's.

mod choice;

use crate::crash::{child_store, spawn};
use crate::story::{exchange, options, todo};
use foldback::core::{EmbedError, Embedder, Message, Vectors};
use foldback::embedder::{Choice, StaticEmbedder};
use foldback::{Close, EmbeddingProgress, Engine, Memory, Mode, Options, SearchRequest};
use foldback_kv::{Key, Space};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::tempdir;

const DIM: usize = 24;

/// The number of blocks by which an index is behind when it catches up.
const BATCH_BLOCKS: u32 = 4;

/// A cheap embedder: words, and characters of scripts without spaces, hashed into few dimensions.
/// It can be made slow, and counts the texts that it was given.
struct Hashed {
    id: &'static str,
    pause: Duration,
    /// It refuses texts that contain this word.
    refused: Option<&'static str>,
    texts: Arc<AtomicUsize>,
}

impl Hashed {
    fn new(id: &'static str) -> Self {
        Self { id, pause: Duration::ZERO, refused: None, texts: Arc::default() }
    }

    fn slow(id: &'static str) -> Self {
        Self { pause: Duration::from_millis(4), ..Self::new(id) }
    }
}

impl Embedder for Hashed {
    fn model_id(&self) -> &str {
        self.id
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn same_topic(&self) -> f32 {
        0.5
    }

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        let mut values = Vec::new();
        for text in texts {
            if self.refused.is_some_and(|word| text.contains(word)) {
                let message = "index out of range".to_owned();
                return Err(EmbedError { model: self.id.to_owned(), message });
            }
            self.texts.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(self.pause);
            let mut row = [0.0f32; DIM];
            let is_word = |c: char| c.is_alphanumeric() && c.is_ascii();
            let words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
            let words = words.map(str::to_lowercase);
            let others = text.chars().filter(|c| !c.is_ascii()).map(String::from);
            for word in words.chain(others) {
                let hash = word.bytes().fold(17usize, |hash, byte| hash * 31 + usize::from(byte));
                row[hash % DIM] += 1.0;
            }
            let norm = row.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-9);
            values.extend(row.map(|value| value / norm));
        }
        Ok(Vectors::new(DIM, values).unwrap())
    }
}

/// Small thresholds, so that the large todo has an index on disk and a graph.
fn with(embedder: Option<Arc<dyn Embedder>>) -> Options {
    let mut options = options().with_embedder(embedder);
    options.index.index_after_blocks = 16;
    options.index.batch_blocks = BATCH_BLOCKS;
    options.index.hnsw_after_vectors = 64;
    options
}

fn open(dir: &Path, embedder: Hashed) -> Memory {
    Memory::open(dir, with(Some(Arc::new(embedder)))).unwrap()
}

/// What a store remembers about an embedder that only these tests can create.
fn choice() -> Choice {
    Choice::Custom("hashed".to_owned())
}

/// A small English todo, a Chinese one with payloads, and a large one with an index, all with the
/// built-in embedder's vectors. Returns the number of messages.
fn fill(dir: &Path) -> u64 {
    let memory = Memory::open(dir, with(None)).unwrap();
    let mut session = memory.session(&todo("english")).unwrap();
    session.record(Message::user("Which port does the staging server use?")).unwrap();
    session.record(Message::assistant("The staging server listens on port 8443.")).unwrap();
    session.close(Close::End).unwrap();
    let mut session = memory.session(&todo("chinese")).unwrap();
    for n in 0..3 {
        let result = format!("第{n}行：订单已经发货，预计明天送达。\n").repeat(400);
        session.record_all(exchange(n, "订单物流", &result).to_vec()).unwrap();
    }
    session.close(Close::End).unwrap();
    let mut session = memory.session(&todo("large")).unwrap();
    for n in 0..60 {
        let result = format!("marker{n:03} stands here");
        session.record_all(exchange(n, &format!("module{n}"), &result).to_vec()).unwrap();
    }
    session.close(Close::End).unwrap();
    memory.maintenance().index().unwrap();
    2 + 12 + 240
}

/// The best block for a question, and the state of the vectors.
fn ask(memory: &Memory, id: &str, question: &str) -> (String, String) {
    let hits = memory.search(&todo(id), &SearchRequest::new(question)).unwrap().hits;
    let hit = hits.first().unwrap_or_else(|| panic!("nothing answers {question}"));
    let first = memory.messages(&todo(id), hit.block.range.as_u64()).unwrap();
    (first[0].text().into_owned(), format!("{:?}", hit.explanation.vectors))
}

/// A question that the embedder refuses is answered by its words, by the search and by the model's tool,
/// and the search says so.
#[test]
fn a_question_that_cannot_be_embedded_is_answered_by_words() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    let refusing = Hashed { refused: Some("staging"), ..Hashed::new("hashed") };
    let memory = Memory::open(dir.path(), with(Some(Arc::new(refusing)))).unwrap();
    let search = |question| memory.search(&todo("english"), &SearchRequest::new(question)).unwrap();
    assert_eq!(search("Which port?").by_words_alone, None);
    let answer = search("Which port does staging use?");
    let why = answer.by_words_alone.clone().unwrap();
    assert!(why.to_string().contains("index out of range"), "{why}");
    assert_eq!(answer.hits[0].block.header.block_id.to_string(), "b_english_001");
    assert_eq!(answer.hits[0].cosine, 0.0);
    assert_eq!(answer.by_meaning(), Err(why));
    let recalled = memory.recall(&todo("english"), "search_block", r#"{"query": "staging port"}"#);
    assert!(recalled.unwrap().text.contains("8443"));
}

#[test]
fn every_todo_is_embedded_again_and_progress_rises_to_the_end() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    let nothing = EmbeddingProgress { done: 0, messages };
    assert_eq!(memory.embedding().progress().unwrap(), nothing);
    let (_, vectors) = ask(&memory, "large", "module13");
    assert!(vectors.contains("OtherModel"), "{vectors}");

    memory.embedding().choose(&choice()).unwrap();
    let mut seen = Vec::new();
    let end = memory.embedding().reembed(|progress| seen.push(progress.done)).unwrap();
    assert!(end.is_done() && end.messages == messages, "{end:?}");
    assert!(seen.is_sorted() && seen.iter().all(|done| *done <= messages), "{seen:?}");
    for (id, question, answer) in [
        ("english", "staging server port", "Which port"),
        ("chinese", "订单什么时候送达", "订单物流"),
        ("large", "please look at module13", "module13"),
    ] {
        let (text, vectors) = ask(&memory, id, question);
        assert!(text.contains(answer), "{question}: {text}");
        assert!(vectors.contains("Used"), "{question}: {vectors}");
    }
    memory.maintenance().index().unwrap();
    assert!(ask(&memory, "large", "marker042 stands").1.contains("Used"));
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    // Nothing is done twice.
    let counting = Hashed::new("hashed-a");
    let texts = counting.texts.clone();
    drop(memory);
    assert!(open(dir.path(), counting).embedding().reembed(|_| {}).unwrap().is_done());
    assert_eq!(texts.load(Ordering::Relaxed), 0);
}

#[test]
fn it_happens_in_the_background_while_a_store_is_open() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let memory = open(dir.path(), Hashed::slow("hashed-a"));
    memory.embedding().choose(&choice()).unwrap();
    let mut rises = vec![0];
    while rises.last() != Some(&messages) {
        // The conversation continues, and is searched by words and the existing vectors.
        assert!(ask(&memory, "large", "marker007").0.contains("module7"));
        let done = memory.embedding().progress().unwrap().done;
        rises.push(done);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(rises.is_sorted(), "{rises:?}");
    assert!(rises.iter().any(|done| *done > 0 && *done < messages), "{rises:?}");
}

/// R1: what was embedded before a kill is kept, and the next opening continues from there.
#[test]
fn r1_a_killed_process_is_gone_on_from() {
    if let Some(store) = child_store() {
        return embed_again(&store);
    }
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let mut worker = spawn(EMBEDS_AGAIN, dir.path());
    let lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    let reached = lines
        .filter_map(|line| line.unwrap().strip_prefix("done ")?.parse::<u64>().ok())
        .find(|done| *done > messages / 2)
        .unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let embedder = Hashed::new("hashed-a");
    let texts = embedder.texts.clone();
    // Opening is enough: the work continues by itself.
    let memory = open(dir.path(), embedder);
    assert!(memory.embedding().reembed(|_| {}).unwrap().is_done());
    let left = texts.load(Ordering::Relaxed) as u64;
    assert!(left > 0 && left < messages, "{left} texts, {reached} were done of {messages}");
    for id in ["english", "chinese", "large"] {
        let found = memory.search(&todo(id), &SearchRequest::new("port module 订单")).unwrap().hits;
        let vectors = format!("{:?}", found[0].explanation.vectors);
        assert!(vectors.contains("Used"), "{id}: {vectors}");
    }
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// R10: two processes embed no message twice.
#[test]
fn r10_two_processes_share_the_work() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let children = [spawn(EMBEDS_AGAIN, dir.path()), spawn(EMBEDS_AGAIN, dir.path())];
    let mut texts = 0;
    for mut child in children {
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            texts += line.strip_prefix("texts ").map_or(0, |n| n.parse::<u64>().unwrap());
        }
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(texts, messages, "each message is one text of this embedder");
    assert!(open(dir.path(), Hashed::new("hashed-a")).embedding().progress().unwrap().is_done());
}

/// The test that embeds a store again in another process.
const EMBEDS_AGAIN: &str = "reembed::r1_a_killed_process_is_gone_on_from";

/// Embeds a store again, slowly, and prints its progress.
fn embed_again(store: &Path) {
    let embedder = Hashed::slow("hashed-a");
    let texts = embedder.texts.clone();
    let memory = open(store, embedder);
    memory.embedding().choose(&choice()).unwrap();
    memory.embedding().reembed(|progress| println!("done {}", progress.done)).unwrap();
    println!("texts {}", texts.load(Ordering::Relaxed));
}

#[test]
fn a_store_whose_embedder_is_not_there_is_searched_by_words() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    memory.embedding().choose(&choice()).unwrap();
    memory.embedding().reembed(|_| {}).unwrap();
    drop(memory);

    let memory = Memory::open(dir.path(), with(None)).unwrap();
    let trouble = memory.embedding().trouble().unwrap().to_string();
    assert!(trouble.contains("hashed"), "{trouble}");
    let (text, vectors) = ask(&memory, "chinese", "订单物流");
    assert!(text.contains("订单物流") && vectors.contains("NotAsked"), "{vectors}");
    // It is recorded all the same, and embedded when the embedder is back.
    let mut session = memory.session(&todo("english")).unwrap();
    session.record(Message::user("备份服务器的端口是九千。")).unwrap();
    session.close(Close::End).unwrap();
    drop((session, memory));
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    assert!(memory.embedding().reembed(|_| {}).unwrap().is_done());
    assert!(ask(&memory, "english", "备份服务器").1.contains("Used"));
}

#[test]
fn another_embedder_compares_nothing_and_what_it_records_is_embedded_again() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    // It was open before the change, and has searched.
    let old = Memory::open(dir.path(), with(Some(Arc::new(StaticEmbedder::new())))).unwrap();
    assert!(ask(&old, "large", "module13").1.contains("Used"));
    let new = open(dir.path(), Hashed::new("hashed-a"));
    new.embedding().choose(&choice()).unwrap();
    new.embedding().reembed(|_| {}).unwrap();
    for id in ["english", "large"] {
        let found = old.search(&todo(id), &SearchRequest::new("port module")).unwrap().hits;
        let vectors = format!("{:?}", found[0].explanation.vectors);
        assert!(vectors.contains("OtherModel"), "{id}: {vectors}");
        assert!(found.iter().all(|hit| hit.cosine == 0.0));
    }
    let mut session = old.session(&todo("english")).unwrap();
    session.record(Message::user("The backup server moved to port 9000.")).unwrap();
    session.close(Close::End).unwrap();
    assert!(!new.embedding().progress().unwrap().is_done());
    // A process without the store's embedder leaves its vectors alone.
    assert!(!old.embedding().reembed(|_| {}).unwrap().is_done());
    assert!(new.embedding().reembed(|_| {}).unwrap().is_done());
    let (text, vectors) = ask(&new, "english", "backup server moved");
    assert!(text.contains("9000") && vectors.contains("Used"), "{text} {vectors}");
}

/// S9: a todo that is forgotten while it is embedded again leaves no vector behind.
#[test]
fn s9_nothing_is_embedded_of_what_was_forgotten() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    let memory = open(dir.path(), Hashed::slow("hashed-a"));
    let no = memory.find(&todo("large")).unwrap().no();
    memory.embedding().choose(&choice()).unwrap();
    while memory.embedding().progress().unwrap().done < 80 {
        std::thread::sleep(Duration::from_millis(5));
    }
    memory.maintenance().forget(&todo("large")).unwrap();
    let end = memory.embedding().reembed(|_| {}).unwrap();
    assert_eq!(end, EmbeddingProgress { done: 14, messages: 14 });
    drop(memory);
    let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadOnly).unwrap();
    for space in [Space::Vector, Space::Index, Space::Message] {
        assert_eq!(kv.scan(space, no, 0..Key::N_END, 1).unwrap(), Vec::new(), "{space}");
    }
}

/// A store whose process was killed in the middle of replacing the vectors of its large todo, whose
/// index is not maintained meanwhile.
fn killed_half_way(dir: &Path) {
    fill(dir);
    let mut worker = spawn(EMBEDS_AGAIN, dir);
    let lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    let reached = |line: &std::io::Result<String>| {
        let done = line.as_ref().unwrap().strip_prefix("done ").map(|n| n.parse::<u64>().unwrap());
        done.is_some_and(|done| done > 100)
    };
    assert!({ lines }.any(|line| reached(&line)));
    worker.kill().unwrap();
    worker.wait().unwrap();
}

/// Records into the large todo, and returns how many of its blocks are not indexed in the end: a thread
/// of the memory may be abandoning the replacement meanwhile.
fn index_lag_after_more(memory: &Memory) -> u64 {
    let mut session = memory.session(&todo("large")).unwrap();
    for n in 60..90 {
        let result = format!("marker{n:03} stands here");
        session.record_all(exchange(n, &format!("module{n}"), &result).to_vec()).unwrap();
    }
    session.close(Close::End).unwrap();
    let lag = || {
        memory.maintenance().index().unwrap();
        memory.maintenance().doctor().unwrap().index_lag
    };
    for _ in 0..200 {
        if lag() < u64::from(BATCH_BLOCKS) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    lag()
}

/// R1: an abandoned replacement does not keep the todo without an index.
#[test]
fn r1_an_unfinished_replacement_is_given_up_when_words_alone_are_chosen() {
    let dir = tempdir().unwrap();
    killed_half_way(dir.path());
    let none: Arc<dyn Embedder> = Choice::WordsOnly.load().unwrap();
    let memory = Memory::open(dir.path(), with(Some(none))).unwrap();
    memory.embedding().choose(&Choice::WordsOnly).unwrap();
    assert!(index_lag_after_more(&memory) < u64::from(BATCH_BLOCKS));
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// R1: the same if the store is opened by a process without the embedder.
#[test]
fn r1_an_unfinished_replacement_is_given_up_where_its_model_is_gone() {
    let dir = tempdir().unwrap();
    killed_half_way(dir.path());
    let memory = Memory::open(dir.path(), with(None)).unwrap();
    assert!(memory.embedding().trouble().unwrap().to_string().contains("hashed"));
    memory.maintenance().repair().unwrap();
    assert!(index_lag_after_more(&memory) < u64::from(BATCH_BLOCKS));
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    drop(memory);
    // And it resumes when the embedder is back.
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    assert!(memory.embedding().reembed(|_| {}).unwrap().is_done());
    assert!(ask(&memory, "large", "module88").1.contains("Used"));
}

/// C3: a damaged progress record of a todo breaks no search and stops no other todo.
#[test]
fn c3_a_damaged_note_of_the_progress_is_made_again() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    memory.embedding().choose(&choice()).unwrap();
    memory.embedding().reembed(|_| {}).unwrap();
    let no = memory.find(&todo("english")).unwrap().no();
    drop(memory);
    let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let key = Key { space: Space::Index, todo: no, n: 0 };
    let put = vec![(key, b"no record".to_vec())];
    kv.commit(foldback_kv::Batch { put, ..Default::default() }).unwrap();
    drop(kv);
    let memory = open(dir.path(), Hashed::new("hashed-b"));
    assert!(ask(&memory, "english", "staging server port").0.contains("Which port"));
    let found = memory.maintenance().doctor().unwrap().findings;
    assert!(found.iter().any(|found| found.contains("english")), "{found:?}");
    memory.maintenance().repair().unwrap();
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    memory.embedding().choose(&choice()).unwrap();
    assert!(memory.embedding().reembed(|_| {}).unwrap().is_done());
    for id in ["english", "chinese", "large"] {
        let found = memory.search(&todo(id), &SearchRequest::new("port module 订单")).unwrap().hits;
        assert!(format!("{:?}", found[0].explanation.vectors).contains("Used"), "{id}");
    }
}

/// A text that the model refuses is skipped, and named on request.
#[test]
fn a_text_that_is_refused_stops_nothing() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    let embedder = Hashed { refused: Some("8443"), ..Hashed::new("hashed-a") };
    let memory = open(dir.path(), embedder);
    memory.embedding().choose(&choice()).unwrap();
    assert!(memory.embedding().reembed(|_| {}).unwrap().is_done());
    assert!(ask(&memory, "large", "module13").1.contains("Used"));
    let failures = memory.embedding().failures().unwrap().unwrap();
    assert_eq!(failures.messages, 1);
    for part in ["message 1 of todo english", "index out of range"] {
        assert!(failures.last.contains(part), "{}", failures.last);
        let found = memory.maintenance().doctor().unwrap().findings;
        assert!(found.iter().any(|found| found.contains(part)), "{found:?}");
    }
    // It is found by its words.
    assert!(ask(&memory, "english", "who listens?").0.contains("Which port"));
    memory.maintenance().repair().unwrap();
    assert!(memory.maintenance().doctor().unwrap().is_clean());
    drop(memory);
    // A model that refuses everything is useless: that is an error, and nothing is done.
    let embedder = Hashed { refused: Some(""), ..Hashed::new("hashed-b") };
    let memory = open(dir.path(), embedder);
    memory.embedding().choose(&choice()).unwrap();
    let error = memory.embedding().reembed(|_| {}).unwrap_err().to_string();
    assert!(error.contains("index out of range"), "{error}");
    assert!(memory.embedding().failures().unwrap().unwrap().last.contains("index out of range"));
}

/// Messages recorded without vectors are searched no worse than by words alone.
#[test]
fn an_answer_without_vectors_is_found_among_others_with_them() {
    let dir = tempdir().unwrap();
    let id = todo("harbor");
    let talk = |n: usize| {
        let text = format!("The harbor office answers question {n} about the ferry to the island.");
        Message::user(&text)
    };
    let memory = Memory::open(dir.path(), with(None)).unwrap();
    let mut session = memory.session(&id).unwrap();
    session.record_all((0..24).map(talk).collect()).unwrap();
    session.close(Close::End).unwrap();
    drop((session, memory));
    let none: Arc<dyn Embedder> = Choice::WordsOnly.load().unwrap();
    let memory = Memory::open(dir.path(), with(Some(none))).unwrap();
    let mut session = memory.session(&id).unwrap();
    let answer = "Tickets for dogs on the ferry cost nine crowns, 狗票九克朗.";
    session.record(Message::user(answer)).unwrap();
    session.close(Close::End).unwrap();
    drop((session, memory));
    // Read-only, so that nothing computes the vectors.
    let memory = Memory::open(dir.path(), with(None).with_mode(Mode::ReadOnly)).unwrap();
    let question = "What do tickets for dogs on the ferry to the island cost?";
    let (text, vectors) = ask(&memory, "harbor", question);
    assert!(vectors.contains("Used"), "{vectors}");
    assert_eq!(text, answer);
}
