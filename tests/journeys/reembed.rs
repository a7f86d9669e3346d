//! A store changes its embedder: every vector is made again, in the background, and nothing is ever
//! compared with what another model made.

use crate::crash::spawn;
use crate::story::{exchange, options, todo};
use foldback::core::{EmbedError, Embedder, Message, Scale, Vectors};
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

/// A cheap embedder: words, and characters of scripts without spaces, hashed into few dimensions.
/// It can be made slow, and counts the texts that it was given.
struct Hashed {
    id: &'static str,
    pause: Duration,
    texts: Arc<AtomicUsize>,
}

impl Hashed {
    fn new(id: &'static str) -> Self {
        Self { id, pause: Duration::ZERO, texts: Arc::default() }
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
    let mut options = Options { embedder, ..options() };
    options.index.index_after_blocks = 16;
    options.index.hnsw_after_vectors = 64;
    options
}

fn open(dir: &Path, embedder: Hashed) -> Memory {
    Memory::open(dir, with(Some(Arc::new(embedder)))).unwrap()
}

/// What a store remembers of an embedder that only these tests can make.
fn choice() -> Choice {
    Choice::Model("hashed".to_owned())
}

/// A small English todo, a Chinese one with payloads, and a large one with an index, all with the
/// built-in embedder's vectors. Gives the number of messages.
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
    memory.index_now().unwrap();
    2 + 12 + 240
}

/// The best block for a question, and what became of the vectors.
fn ask(memory: &Memory, id: &str, question: &str) -> (String, String) {
    let hits = memory.search(&todo(id), &SearchRequest::new(question)).unwrap();
    let hit = hits.first().unwrap_or_else(|| panic!("nothing answers {question}"));
    let first = memory.messages(&todo(id), hit.block.range.as_u64()).unwrap();
    (first[0].text().into_owned(), format!("{:?}", hit.explanation.vectors))
}

#[test]
fn every_todo_is_embedded_again_and_progress_rises_to_the_end() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    let nothing = EmbeddingProgress { done: 0, messages };
    assert_eq!(memory.embedding_progress().unwrap(), nothing);
    let (_, vectors) = ask(&memory, "large", "module13");
    assert!(vectors.contains("OtherModel"), "{vectors}");

    memory.choose_embedder(&choice()).unwrap();
    let mut seen = Vec::new();
    let end = memory.reembed(|progress| seen.push(progress.done)).unwrap();
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
    memory.index_now().unwrap();
    assert!(ask(&memory, "large", "marker042 stands").1.contains("Used"));
    assert_eq!(memory.doctor(false).unwrap().findings, Vec::<String>::new());
    // Nothing is done twice.
    let counting = Hashed::new("hashed-a");
    let texts = counting.texts.clone();
    drop(memory);
    assert!(open(dir.path(), counting).reembed(|_| {}).unwrap().is_done());
    assert_eq!(texts.load(Ordering::Relaxed), 0);
}

#[test]
fn it_happens_in_the_background_while_a_store_is_open() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let memory = open(dir.path(), Hashed::slow("hashed-a"));
    memory.choose_embedder(&choice()).unwrap();
    let mut rises = vec![0];
    while rises.last() != Some(&messages) {
        // The conversation goes on, and is searched by words and what vectors there are.
        assert!(ask(&memory, "large", "marker007").0.contains("module7"));
        let done = memory.embedding_progress().unwrap().done;
        rises.push(done);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(rises.is_sorted(), "{rises:?}");
    assert!(rises.iter().any(|done| *done > 0 && *done < messages), "{rises:?}");
}

/// R1: what was embedded before a kill stays, and the next opening goes on from there.
#[test]
fn r1_a_killed_process_is_gone_on_from() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let mut worker = spawn("reembed::worker", dir.path());
    let lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    let reached = lines
        .filter_map(|line| line.unwrap().strip_prefix("done ")?.parse::<u64>().ok())
        .find(|done| *done > messages / 2)
        .unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let embedder = Hashed::new("hashed-a");
    let texts = embedder.texts.clone();
    // Opening is enough: the work goes on by itself.
    let memory = open(dir.path(), embedder);
    assert!(memory.reembed(|_| {}).unwrap().is_done());
    let left = texts.load(Ordering::Relaxed) as u64;
    assert!(left > 0 && left < messages, "{left} texts, {reached} were done of {messages}");
    for id in ["english", "chinese", "large"] {
        let found = memory.search(&todo(id), &SearchRequest::new("port module 订单")).unwrap();
        let vectors = format!("{:?}", found[0].explanation.vectors);
        assert!(vectors.contains("Used"), "{id}: {vectors}");
    }
    assert_eq!(memory.doctor(false).unwrap().findings, Vec::<String>::new());
}

/// R10: two processes embed no message twice.
#[test]
fn r10_two_processes_share_the_work() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let children = [spawn("reembed::worker", dir.path()), spawn("reembed::worker", dir.path())];
    let mut texts = 0;
    for mut child in children {
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            texts += line.strip_prefix("texts ").map_or(0, |n| n.parse::<u64>().unwrap());
        }
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(texts, messages, "each message is one text of this embedder");
    assert!(open(dir.path(), Hashed::new("hashed-a")).embedding_progress().unwrap().is_done());
}

/// Embeds a store again, slowly, and says how far it is. Runs only as a child.
#[test]
fn worker() {
    let Some(dir) = std::env::var_os("FOLDBACK_TEST_STORE") else { return };
    let embedder = Hashed::slow("hashed-a");
    let texts = embedder.texts.clone();
    let memory = open(Path::new(&dir), embedder);
    memory.choose_embedder(&choice()).unwrap();
    memory.reembed(|progress| println!("done {}", progress.done)).unwrap();
    println!("texts {}", texts.load(Ordering::Relaxed));
}

#[test]
fn a_store_whose_embedder_is_not_there_is_searched_by_words() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    memory.choose_embedder(&choice()).unwrap();
    memory.reembed(|_| {}).unwrap();
    drop(memory);

    let memory = Memory::open(dir.path(), with(None)).unwrap();
    let trouble = memory.embedder_trouble().unwrap().to_string();
    assert!(trouble.contains("hashed"), "{trouble}");
    let (text, vectors) = ask(&memory, "chinese", "订单物流");
    assert!(text.contains("订单物流") && vectors.contains("NotAsked"), "{vectors}");
    // It is recorded all the same, and embedded when the embedder is back.
    let mut session = memory.session(&todo("english")).unwrap();
    session.record(Message::user("备份服务器的端口是九千。")).unwrap();
    session.close(Close::End).unwrap();
    drop((session, memory));
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    assert!(memory.reembed(|_| {}).unwrap().is_done());
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
    new.choose_embedder(&choice()).unwrap();
    new.reembed(|_| {}).unwrap();
    for id in ["english", "large"] {
        let found = old.search(&todo(id), &SearchRequest::new("port module")).unwrap();
        let vectors = format!("{:?}", found[0].explanation.vectors);
        assert!(vectors.contains("OtherModel"), "{id}: {vectors}");
        assert!(found.iter().all(|hit| hit.cosine == 0.0));
    }
    let mut session = old.session(&todo("english")).unwrap();
    session.record(Message::user("The backup server moved to port 9000.")).unwrap();
    session.close(Close::End).unwrap();
    assert!(!new.embedding_progress().unwrap().is_done());
    // Whoever has not the store's embedder leaves its vectors alone.
    assert!(!old.reembed(|_| {}).unwrap().is_done());
    assert!(new.reembed(|_| {}).unwrap().is_done());
    let (text, vectors) = ask(&new, "english", "backup server moved");
    assert!(text.contains("9000") && vectors.contains("Used"), "{text} {vectors}");
}

#[test]
fn the_last_choice_wins_and_every_vector_is_of_it() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let first = open(dir.path(), Hashed::slow("hashed-a"));
    first.choose_embedder(&choice()).unwrap();
    while first.embedding_progress().unwrap().done < messages / 4 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // While that is under way, somebody else chooses another.
    let second = open(dir.path(), Hashed::new("hashed-b"));
    second.choose_embedder(&choice()).unwrap();
    assert!(second.reembed(|_| {}).unwrap().is_done());
    assert!(!first.reembed(|_| {}).unwrap().is_done());
    assert_eq!(first.embedding_progress().unwrap().done, 0, "none of the first is left");
    assert!(ask(&second, "large", "module13").1.contains("Used"));
    assert_eq!(second.doctor(false).unwrap().findings, Vec::<String>::new());
}

/// S9: a todo that is forgotten while it is embedded again leaves no vector behind.
#[test]
fn s9_nothing_is_embedded_of_what_was_forgotten() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    let memory = open(dir.path(), Hashed::slow("hashed-a"));
    let no = memory.find(&todo("large")).unwrap().no();
    memory.choose_embedder(&choice()).unwrap();
    while memory.embedding_progress().unwrap().done < 80 {
        std::thread::sleep(Duration::from_millis(5));
    }
    memory.forget(&todo("large")).unwrap();
    let end = memory.reembed(|_| {}).unwrap();
    assert_eq!(end, EmbeddingProgress { done: 14, messages: 14 });
    drop(memory);
    let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadOnly).unwrap();
    for space in [Space::Vector, Space::Index, Space::Message] {
        assert_eq!(kv.scan(space, no, 0..Key::N_END, 1).unwrap(), Vec::new(), "{space}");
    }
}

/// BL5: a measured scale is kept with the model's id, and used from the next opening on.
#[test]
fn bl5_a_measured_scale_is_used() {
    let dir = tempdir().unwrap();
    let scale = Scale { same_topic: 0.31, answering: 0.22 };
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    assert_eq!(memory.embedder().same_topic(), 0.5);
    memory.set_scale("hashed-a", scale).unwrap();
    memory.set_scale("hashed-b", Scale { same_topic: 0.9, answering: 0.8 }).unwrap();
    drop(memory);
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    let found = (memory.embedder().same_topic(), memory.embedder().answering());
    assert_eq!(found, (scale.same_topic, scale.answering));
    assert_eq!(memory.scale("hashed-a").unwrap(), Some(scale));
    drop(memory);
    assert_eq!(open(dir.path(), Hashed::new("hashed-b")).embedder().same_topic(), 0.9);
}
