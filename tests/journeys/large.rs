//! A large todo goes through tantivy and HNSW and finds what the search in memory finds.

use crate::story::{engines, options, todo};
use foldback::{Close, Engine, Memory};
use foldback_core::Message;
use foldback_testkit::effort;
use tempfile::tempdir;

/// How many messages the todo has on an engine. On engines other than the default, a third of them
/// passes the same thresholds.
fn messages_on(engine: Engine) -> usize {
    if engine == Engine::Sqlite { effort(20_000).max(6_000) as usize } else { 6_000 }
}

fn line(n: usize) -> Message {
    const NOUNS: [&str; 8] =
        ["harbor", "ledger", "lantern", "orchard", "glacier", "violin", "quarry", "saddle"];
    const VERBS: [&str; 6] = ["paints", "counts", "repairs", "carries", "measures", "forgets"];
    let noun = NOUNS[n * 7 % NOUNS.len()];
    let verb = VERBS[n * 5 % VERBS.len()];
    let text = format!("The {noun} {verb} item-{n:05} near pier {}.", n % 97);
    if n.is_multiple_of(2) { Message::user(&text) } else { Message::assistant(&text) }
}

#[test]
fn c3_thousands_of_lines_are_found_as_in_memory() {
    engines().into_iter().for_each(check_found);
}

#[track_caller]
fn check_found(engine: Engine) {
    let count = messages_on(engine);
    let dir = tempdir().unwrap();
    let mut small = options().with_engine(engine);
    // Up to 255 blocks of 8 messages may be behind, and the smaller todo needs a graph all the same.
    small.index.hnsw_after_vectors = 3_000;
    let on_disk = Memory::open(dir.path(), small).unwrap();
    let mut never = options();
    never.index.index_after_blocks = u32::MAX;
    never.index.hnsw_after_vectors = usize::MAX;
    let in_memory = Memory::in_memory(never).unwrap();
    let id = todo("large");
    let messages: Vec<Message> = (0..count).map(line).collect();
    for memory in [&on_disk, &in_memory] {
        let mut session = memory.session(&id).unwrap();
        for batch in messages.chunks(500) {
            session.record_all(batch.to_vec()).unwrap();
        }
        session.close(Close::End).unwrap();
    }
    on_disk.maintenance().index().unwrap();
    let checkup = on_disk.maintenance().doctor().unwrap();
    assert!(checkup.is_clean(), "{:?}", checkup.findings);
    assert!(checkup.index_lag < 256, "{} blocks behind", checkup.index_lag);
    for part in ["tantivy", "hnsw"] {
        let mut files = Vec::new();
        let mut folders = vec![dir.path().join("index/1")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                files.push(path.display().to_string());
            }
        }
        assert!(files.iter().any(|file| file.contains(part)), "no {part} in {files:?}");
    }
    for n in (0..count).step_by(997) {
        for query in [format!("item-{n:05}"), line(n).text().into_owned()] {
            let arguments = serde_json::json!({ "query": query, "k": 1 }).to_string();
            let answer = |memory: &Memory| memory.recall(&id, "search_block", &arguments).unwrap();
            let (disk, plain) = (answer(&on_disk), answer(&in_memory));
            assert!(disk.text.contains(&format!("item-{n:05}")), "{query}: {}", disk.text);
            assert_eq!(disk.text, plain.text, "{query}");
        }
    }
}
