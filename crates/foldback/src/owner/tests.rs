//! One list over everything in a store.

use crate::{AllTodosRequest, Close, Memory, Mode, Options, Origin, SearchRequest};
use foldback_core::{Message, TodoId};
use foldback_transcript::{Conversation, read_bytes};
use std::path::{Path, PathBuf};

const TODOS: usize = 12;

fn id(n: usize) -> TodoId {
    TodoId::new(&format!("talk-{n}")).unwrap()
}

fn options() -> Options {
    let mut options = Options::default();
    options.index.batch_blocks = 1;
    options
}

fn messages(n: usize) -> Vec<Message> {
    let said = [
        format!("The harbor log of day {n} is here: 第{n}天的港口日志。"),
        format!("Berth {n} was taken by the barge KESTREL-{n}."),
        "What was the weather?".to_owned(),
        format!("Fog until noon, 大雾到中午, and {n} knots of wind."),
    ];
    let pair = |(at, text): (usize, &String)| match at % 2 {
        0 => Message::user(text),
        _ => Message::assistant(text),
    };
    said.iter().enumerate().map(pair).collect()
}

fn filled(dir: &Path) -> Memory {
    let memory = Memory::open(dir, options()).unwrap();
    for n in 0..TODOS {
        record(&memory, n);
    }
    memory
}

fn record(memory: &Memory, n: usize) {
    let mut session = memory.session(&id(n)).unwrap();
    session.record_all(messages(n)).unwrap();
    session.close(Close::End).unwrap();
}

/// The todos of the hits, the best first, and how many messages were not searched.
fn found(memory: &Memory, query: &str) -> (Vec<String>, u64) {
    let request = AllTodosRequest::new(SearchRequest::new(query));
    let answer = memory.owner().search(&request).unwrap();
    let todos = answer.hits.iter().map(|hit| hit.block.header.todo_id.to_string()).collect();
    (todos, answer.waiting)
}

fn volumes(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir.join("index/all")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

#[track_caller]
fn check(memory: &Memory) {
    for (query, todo) in [
        ("KESTREL-7", "talk-7"),
        ("第3天的港口日志", "talk-3"),
        ("which day had 11 knots of wind", "talk-11"),
    ] {
        assert_eq!(found(memory, query).0[0], todo, "{query}");
    }
}

#[test]
fn everything_is_found_with_the_index_and_without() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    (0..TODOS).for_each(|n| record(&memory, n));
    assert_eq!(volumes(dir.path()), [] as [PathBuf; 0], "too little to be worth a volume");
    check(&memory);
    let queries = ["KESTREL-7", "fog and wind", "大雾", "the harbor log"];
    let before = queries.map(|query| found(&memory, query));
    let done = memory.owner().index(|_, _| {}).unwrap();
    assert!(done.indexed >= TODOS as u64 && volumes(dir.path()).len() == 1, "{done:?}");
    check(&memory);
    assert_eq!(queries.map(|query| found(&memory, query)), before, "the same, with the index");
    // Deleted, it comes back; another process reads the same.
    let index = dir.path().join("index");
    // The background may be writing there.
    while std::fs::remove_dir_all(&index).is_err() && index.exists() {}
    assert_eq!(queries.map(|query| found(&memory, query)), before);
    memory.owner().index(|_, _| {}).unwrap();
    let reader = Memory::open(dir.path(), Options::default().with_mode(Mode::ReadOnly)).unwrap();
    assert_eq!(queries.map(|query| found(&reader, query)), before);
    // What is recorded later is found at once, by both.
    record(&memory, 90);
    for memory in [&memory, &reader] {
        let (todos, waiting) = found(memory, "KESTREL-90");
        assert_eq!((todos[0].as_str(), waiting), ("talk-90", 0));
    }
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

#[test]
fn an_exhaustive_search_finds_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let memory = filled(dir.path());
    memory.owner().index(|_, _| {}).unwrap();
    for query in ["KESTREL-7 in the fog", "大雾", "the harbor log of day 5"] {
        let request = AllTodosRequest::new(SearchRequest::new(query).k(10));
        let ids = |request: &AllTodosRequest<'_>| {
            let hits = memory.owner().search(request).unwrap().hits;
            hits.iter().map(|hit| hit.block.header.block_id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids(&request), ids(&request.exhaustive()), "{query}");
    }
}

/// Volumes of a few blocks make way for larger ones.
#[test]
fn small_volumes_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    for n in 0..40 {
        record(&memory, n);
        memory.owner().index(|_, _| {}).unwrap();
        assert!(volumes(dir.path()).len() < 6, "{:?}", volumes(dir.path()));
    }
    check(&memory);
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// S9: what is forgotten is in no file of the index, and what was beside it is found as before.
#[test]
fn s9_a_forgotten_todo_leaves_the_index_over_all() {
    let dir = tempfile::tempdir().unwrap();
    let memory = filled(dir.path());
    memory.owner().index(|_, _| {}).unwrap();
    let before = volumes(dir.path());
    memory.maintenance().forget(&id(7)).unwrap();
    let is_left = |path: &PathBuf| path.exists();
    assert!(!before.is_empty() && !before.iter().any(is_left), "files that held it");
    assert!(found(&memory, "KESTREL-7").0.iter().all(|todo| todo != "talk-7"));
    memory.owner().index(|_, _| {}).unwrap();
    assert!(!volumes(dir.path()).is_empty() && !before.iter().any(is_left));
    assert_eq!(found(&memory, "KESTREL-8").0[0], "talk-8");
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// S9: a process that is killed between the records and the volumes leaves data that no search returns
/// and the next upkeep removes.
#[test]
fn s9_what_a_killed_forgetting_leaves_is_never_answered() {
    let dir = tempfile::tempdir().unwrap();
    let memory = filled(dir.path());
    memory.owner().index(|_, _| {}).unwrap();
    let all = dir.path().join("index/all");
    let aside = dir.path().join("aside");
    std::fs::rename(&all, &aside).unwrap();
    memory.maintenance().forget(&id(7)).unwrap();
    drop(memory);
    std::fs::remove_dir_all(&all).ok();
    std::fs::rename(&aside, &all).unwrap();
    let reader = Memory::open(dir.path(), Options::default().with_mode(Mode::ReadOnly)).unwrap();
    assert!(found(&reader, "KESTREL-7").0.iter().all(|todo| todo != "talk-7"));
    let findings = reader.maintenance().doctor().unwrap().findings;
    assert!(findings.len() == 1 && findings[0].contains("a todo that is gone"), "{findings:?}");
    drop(reader);
    let memory = Memory::open(dir.path(), options()).unwrap();
    memory.maintenance().repair().unwrap();
    memory.maintenance().index().unwrap();
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    assert_eq!(found(&memory, "KESTREL-8").0[0], "talk-8");
}

/// R1: whatever a killed writer leaves is ignored and removed.
#[test]
fn r1_a_volume_that_was_cut_short_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    (0..TODOS).for_each(|n| record(&memory, n));
    memory.owner().index(|_, _| {}).unwrap();
    let whole = volumes(dir.path());
    let half = dir.path().join("index/all/77");
    std::fs::create_dir_all(half.join("tantivy")).unwrap();
    std::fs::write(half.join("vectors.i8"), b"half").unwrap();
    check(&memory);
    record(&memory, 60);
    memory.owner().index(|_, _| {}).unwrap();
    assert!(!half.exists() && volumes(dir.path()) != whole);
    check(&memory);
}

/// R4: no flipped byte of a volume changes what is found.
#[test]
fn r4_a_damaged_volume_is_passed_over_and_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let memory = filled(dir.path());
    memory.owner().index(|_, _| {}).unwrap();
    drop(memory);
    let [volume] = volumes(dir.path()).try_into().unwrap();
    let mut files = vec![volume.join("vectors.i8"), dir.path().join("index/all/catalogue")];
    let tantivy = std::fs::read_dir(volume.join("tantivy")).unwrap();
    let tantivy = tantivy.map(|entry| entry.unwrap().path());
    // tantivy's list of its own files is not read, nor is a lock.
    let is_read = |path: &PathBuf| {
        path.extension().is_some_and(|e| e != "lock") && !path.ends_with(".managed.json")
    };
    files.extend(tantivy.filter(is_read));
    for path in files {
        let whole = std::fs::read(&path).unwrap();
        if whole.is_empty() {
            continue;
        }
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x20;
        std::fs::write(&path, &flipped).unwrap();
        let reader =
            Memory::open(dir.path(), Options::default().with_mode(Mode::ReadOnly)).unwrap();
        check(&reader);
        let findings = reader.maintenance().doctor().unwrap().findings;
        assert_eq!(findings.len(), 1, "{}: {findings:?}", path.display());
        drop(reader);
        std::fs::write(&path, &whole).unwrap();
    }
    let memory = Memory::open(dir.path(), options()).unwrap();
    std::fs::write(volume.join("vectors.i8"), b"words").unwrap();
    let repaired = memory.maintenance().repair().unwrap().findings;
    assert!(repaired.len() == 1 && repaired[0].ends_with("(repaired)"), "{repaired:?}");
    memory.maintenance().index().unwrap();
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    check(&memory);
}

/// R4: a volume that can no longer be read is made again without being asked to.
#[test]
fn r4_upkeep_makes_a_damaged_volume_again() {
    let dir = tempfile::tempdir().unwrap();
    let memory = filled(dir.path());
    memory.owner().index(|_, _| {}).unwrap();
    let [volume] = volumes(dir.path()).try_into().unwrap();
    drop(memory);
    std::fs::write(volume.join("vectors.i8"), b"words").unwrap();
    let memory = Memory::open(dir.path(), options()).unwrap();
    // A search finds out.
    check(&memory);
    memory.owner().index(|_, _| {}).unwrap();
    assert!(!volumes(dir.path()).contains(&volume), "it is still there");
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    check(&memory);
}

#[test]
fn what_is_beyond_the_bound_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::in_memory(Options::default()).unwrap();
    let on_disk = Memory::open(dir.path(), Options::default()).unwrap();
    for memory in [&memory, &on_disk] {
        let mut session = memory.session(&id(0)).unwrap();
        for n in 0..700 {
            session.record_all(messages(n)).unwrap();
            session.close(Close::End).unwrap();
        }
    }
    // What is in no index is searched up to the limit, the newest first.
    let (todos, waiting) = found(&memory, "KESTREL-699");
    assert_eq!(todos[0], "talk-0");
    assert!((400..=2_400).contains(&waiting), "{waiting}");
    on_disk.owner().index(|_, _| {}).unwrap();
    assert_eq!(found(&on_disk, "KESTREL-3").1, 0);
}

fn imported(memory: &Memory, todo: &str, text: &str) {
    let conversation: Conversation = read_bytes(text.as_bytes()).unwrap().next().unwrap().unwrap();
    memory.conversations().import(&TodoId::new(todo).unwrap(), &conversation).unwrap();
}

#[test]
fn sources_folders_and_times_bound_what_is_found() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let codex = r#"{"timestamp":"2025-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"c","timestamp":"2025-03-01T10:00:00.000Z","cwd":"/home/me/harbor/log","originator":"codex","cli_version":"0.50.0","instructions":null}}
{"timestamp":"2025-03-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Why is the lighthouse test flaky? 灯塔"}]}}
{"timestamp":"2025-03-01T10:00:02.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"The lighthouse test reads the clock."}]}}
"#;
    imported(&memory, "codex", codex);
    imported(&memory, "talk", r#"[{"role":"user","content":"The lighthouse is white. 灯塔"}]"#);
    let run = TodoId::new("run").unwrap();
    let mut session = memory.session(&run).unwrap();
    session.record(Message::user("Paint the lighthouse. 灯塔")).unwrap();
    session.close(Close::End).unwrap();
    let origin =
        Origin { source: Some("run".to_owned()), folder: Some("/home/me/paint".to_owned()) };
    memory.conversations().set_origin(&run, &origin).unwrap();
    let found = |request: AllTodosRequest<'_>| {
        let hits = memory.owner().search(&request).unwrap().hits;
        let mut todos: Vec<_> =
            hits.iter().map(|hit| hit.block.header.todo_id.to_string()).collect();
        todos.sort();
        todos
    };
    let all = AllTodosRequest::new(SearchRequest::new("lighthouse 灯塔").k(10));
    assert_eq!(found(all), ["codex", "run", "talk"]);
    assert_eq!(found(all.source("codex")), ["codex"]);
    assert_eq!(found(all.source("Chat-Completions")), ["talk"]);
    assert_eq!(found(all.source("cod")), [] as [&str; 0]);
    assert_eq!(found(all.folder(Path::new("/home/me/harbor"))), ["codex"]);
    assert_eq!(found(all.folder(Path::new("/home/me"))), ["codex", "run"]);
    assert_eq!(found(all.folder(Path::new("/home/m"))), [] as [&str; 0]);
    let until = foldback_core::Timestamp::parse("2025-03-02T00:00:00Z").unwrap();
    let before = SearchRequest::new("lighthouse 灯塔").k(10).until(until);
    assert_eq!(found(AllTodosRequest::new(before)), ["codex"]);
    let after = SearchRequest::new("lighthouse 灯塔").k(10).since(until);
    assert_eq!(found(AllTodosRequest::new(after)), ["run", "talk"]);
}

/// A process that is about to end looks for nothing more to index: among very many todos that takes long.
#[test]
fn a_stopped_indexer_examines_no_todo() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), options()).unwrap();
    let all_todos = &memory.shared.all_todos;
    all_todos.stop();
    (0..TODOS).for_each(|n| record(&memory, n));
    let done = all_todos.catch_up(true, |_, _| {}).unwrap();
    assert_eq!((done.indexed, done.waiting), (0, 0));
}
