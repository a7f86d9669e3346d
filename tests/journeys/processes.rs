//! R10: several processes on one store.

use crate::crash::{child_memory, spawn, spawn_on};
use crate::story::{engines, exchange, open, options, todo};
use foldback::{Engine, ErrorKind, Memory, Mode};
use foldback_core::TodoId;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Exchanges that each writer records.
const EXCHANGES: usize = 30;

#[test]
fn r10_two_processes_write_and_search_one_store() {
    if let Some(memory) = child_memory() {
        return write_and_search(&memory);
    }
    let dir = tempdir().unwrap();
    drop(open(dir.path()));
    let own = "processes::r10_two_processes_write_and_search_one_store";
    let children = [spawn(own, dir.path()), spawn(own, dir.path())];
    for mut child in children {
        let lines: Vec<String> =
            BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
        assert!(child.wait().unwrap().success(), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("peer done")), "{lines:?}");
    }
    let memory = open(dir.path());
    // Both wrote the shared todo, taking turns; nothing is lost or doubled.
    let shared = memory.conversations().export(&todo("shared")).unwrap();
    assert_eq!(shared.messages.len(), 2 * EXCHANGES * 4);
    let mut texts: Vec<_> = shared.messages.iter().map(|m| m.json().to_owned()).collect();
    texts.sort();
    let mut expected: Vec<_> = memory
        .todos(None, 10)
        .unwrap()
        .iter()
        .filter(|id| id.as_str() != "shared")
        .flat_map(said)
        .collect();
    expected.sort();
    assert_eq!(texts, expected);
    let checkup = memory.maintenance().doctor().unwrap();
    assert_eq!(checkup.findings, Vec::<String>::new());
}

fn said(own: &TodoId) -> Vec<String> {
    (0..EXCHANGES)
        .flat_map(|n| exchange(n, own.as_str(), own.as_str()))
        .map(|message| message.json().to_owned())
        .collect()
}

/// Writes a todo of this process and a shared one, and searches what it wrote.
fn write_and_search(memory: &Memory) {
    let own = todo(&format!("peer-{}", std::process::id()));
    let mut session = memory.session(&own).unwrap();
    let mut shared = memory.session(&todo("shared")).unwrap();
    for n in 0..EXCHANGES {
        for message in exchange(n, own.as_str(), own.as_str()) {
            session.record(message.clone()).unwrap();
            shared.record(message).unwrap();
        }
        // Words that only the newest block contains find that block at once.
        let Some(block) = memory.blocks(&own, session.blocks().saturating_sub(1), 1).unwrap().pop()
        else {
            continue;
        };
        let n = block.range.last().0 / 4;
        let query = serde_json::json!({ "query": format!("step {n}"), "k": 3 }).to_string();
        let found = memory.recall(&own, "search_block", &query).unwrap();
        let id = block.header.block_id.to_string();
        assert!(found.text.contains(&id), "{id} is not found by step {n}: {}", found.text);
    }
    session.close(foldback::Close::Switch).unwrap();
    shared.close(foldback::Close::Switch).unwrap();
    println!("peer done");
}

/// R10: if only one process at a time is served, the others get an error within a second, in every
/// mode; a holder that is killed blocks nobody.
#[test]
fn r10_the_second_process_at_an_exclusive_store_hears_so() {
    if let Some(memory) = child_memory() {
        return hold(&memory);
    }
    [Engine::Redb, Engine::Sled].into_iter().for_each(check_second);
}

fn check_second(engine: Engine) {
    let dir = tempdir().unwrap();
    let options = |mode| options().with_engine(engine).with_mode(mode);
    for turn in 0..3 {
        let own = "processes::r10_the_second_process_at_an_exclusive_store_hears_so";
        let mut holder = spawn_on(engine, own, dir.path());
        let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("held")), "turn {turn}");
        let refused = [Mode::ReadWrite, Mode::ReadOnly].map(|mode| {
            let begun = Instant::now();
            (Memory::open(dir.path(), options(mode)).err(), begun.elapsed())
        });
        // A holder that a failed test leaves behind would keep the output of the run open.
        holder.kill().unwrap();
        holder.wait().unwrap();
        for (refused, took) in refused {
            let refused = refused.unwrap();
            // Within a second on a machine that is not busy.
            assert!(took < Duration::from_secs(10), "it took {took:?}");
            assert_eq!(refused.kind(), ErrorKind::Locked, "{refused}");
            assert!(refused.to_string().contains("when that process has ended"), "{refused}");
        }
        let memory = Memory::open(dir.path(), options(Mode::ReadOnly)).unwrap();
        assert_eq!(memory.len(&todo("held")).unwrap(), 4 * (turn + 1));
        assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    }
}

/// Records an exchange and keeps the store until it is killed.
fn hold(memory: &Memory) {
    let mut session = memory.session(&todo("held")).unwrap();
    session.record_all(exchange(0, "held", "有人在用").to_vec()).unwrap();
    println!("held");
    loop {
        std::thread::park();
    }
}

/// R10, law 4: threads of one process write, search, check, compact and copy one store at once, on
/// each engine.
#[test]
fn r10_threads_write_search_compact_and_copy_one_store() {
    for engine in engines() {
        let dir = tempdir().unwrap();
        let options = || options().with_engine(engine);
        let memory = Memory::open(&dir.path().join("store"), options()).unwrap();
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|who| {
                    let memory = &memory;
                    scope.spawn(move || {
                        let own = todo(&format!("thread-{who}"));
                        let mut session = memory.session(&own).unwrap();
                        for n in 0..EXCHANGES {
                            let result = format!("{own} 的第 {n} 行\n").repeat(1 + n % 7 * 90);
                            session
                                .record_all(exchange(n, own.as_str(), &result).to_vec())
                                .unwrap();
                            let query = serde_json::json!({ "query": own.as_str() }).to_string();
                            let found = memory.recall(&own, "search_block", &query).unwrap();
                            assert!(!found.is_error, "{engine}: {}", found.text);
                        }
                    })
                })
                .collect();
            let mut copies = 0;
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) || copies < 2 {
                // A SQLite reader may keep old pages in use; then compacting says so.
                match memory.maintenance().compact() {
                    Ok(()) => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Locked, "{engine}: {error}"),
                }
                let copy = dir.path().join(format!("copy-{copies}"));
                memory.maintenance().backup(&copy).unwrap();
                let copy = Memory::open(&copy, options()).unwrap();
                assert_eq!(
                    copy.maintenance().doctor().unwrap().findings,
                    Vec::<String>::new(),
                    "{engine}"
                );
                copies += 1;
            }
        });
        for who in 0..3 {
            let messages = memory.len(&todo(&format!("thread-{who}"))).unwrap();
            assert_eq!(messages, 4 * EXCHANGES as u64, "{engine}");
        }
        assert_eq!(
            memory.maintenance().doctor().unwrap().findings,
            Vec::<String>::new(),
            "{engine}"
        );
    }
}
