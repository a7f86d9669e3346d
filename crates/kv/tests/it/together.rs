//! Threads of one process that commit at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldback_kv::{Batch, Delete, Engine, Error, Expect, Key, Kv, Mode, Space, memory, open};
use foldback_testkit::{Random, effort};

use crate::folder::engines;

const THREADS: u64 = 8;
const TODOS: u32 = 3;

fn message(todo: u32, n: u64) -> Key {
    Key { space: Space::Message, todo, n }
}

/// A batch of a writer that has seen this head: a message, a state in place of the one before, and at times what a compaction
/// of the todo does.
fn step(random: &mut Random, writer: u64, todo: u32, head: u64) -> Batch {
    let value = format!("{writer} 写 {head} {}", random.below(1_000)).into_bytes();
    let mut delete = Vec::new();
    if random.below(5) == 0 {
        delete.push(Delete { space: Space::Message, todo, range: 0..head / 2 });
    }
    let state = Key { space: Space::Session, todo, n: 0 };
    Batch {
        expect: Some(Expect { todo, head, next: head + 1 }),
        put: vec![(message(todo, head), value.clone()), (state, value)],
        delete,
    }
}

/// The records of a space of a todo.
type Records = Vec<(u64, Vec<u8>)>;

/// Everything that the test writes, by todo and space.
fn contents(kv: &dyn Kv) -> Vec<(u32, u64, Records)> {
    let spaces = [Space::Message, Space::Session, Space::Block];
    let of = |todo, space| (todo, kv.head(todo).unwrap(), kv.scan(space, todo, 0..9_999, 9_999));
    let all = (0..=TODOS).flat_map(|todo| spaces.map(|space| of(todo, space)));
    all.map(|(todo, head, records)| (todo, head, records.unwrap())).collect()
}

/// R6: whatever threads commit at once, the store holds what a single thread leaves that commits only the acknowledged
/// batches, those of each todo in their order; and every batch that lost against another got a conflict.
#[test]
fn r6_commits_at_once_leave_what_was_acknowledged() {
    for engine in engines() {
        for seed in 0..u64::from(effort(8)) {
            let dir = tempfile::tempdir().unwrap();
            let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
            let (acknowledged, conflicts) = work(&kv, seed);
            let model = memory();
            for batch in acknowledged {
                model.commit(batch).unwrap();
            }
            assert_eq!(contents(&*kv), contents(&*model), "{engine}, seed {seed}");
            drop(kv);
            let again = open(dir.path(), engine, Mode::ReadWrite).unwrap();
            assert_eq!(contents(&*again), contents(&*model), "{engine}, seed {seed}, reopened");
            assert_eq!(again.check().unwrap(), [], "{engine}, seed {seed}");
            assert!(conflicts > 0, "{engine}, seed {seed}: nobody met another");
        }
    }
}

/// What threads committed, in the order of their todos' heads, and how often one came second.
fn work(kv: &Arc<dyn Kv>, seed: u64) -> (Vec<Batch>, usize) {
    let work = |writer: u64| {
        let mut random = Random::new(seed * THREADS + writer);
        let (mut acknowledged, mut conflicts) = (Vec::new(), 0);
        for n in 0..30 {
            let todo = 1 + random.below(TODOS as usize) as u32;
            let head = kv.head(todo).unwrap();
            let batch = step(&mut random, writer, todo, head);
            match kv.commit(batch.clone()) {
                Ok(()) => acknowledged.push(batch),
                Err(Error::Conflict { todo: of, expected, found }) => {
                    assert_eq!((of, expected), (todo, head));
                    assert!(found > head);
                    conflicts += 1;
                }
                Err(error) => panic!("{error}"),
            }
            // A batch that expects nothing is always accepted.
            let own = Key { space: Space::Block, todo: 0, n: writer * 100 + n };
            let batch = Batch { put: vec![(own, vec![n as u8; 9])], ..Batch::default() };
            kv.commit(batch.clone()).unwrap();
            acknowledged.push(batch);
            let large = vec![0; foldback_kv::MAX_VALUE_BYTES + 1];
            if n == 7 {
                let batch = Batch { put: vec![(own, large)], ..Batch::default() };
                assert!(matches!(kv.commit(batch), Err(Error::ValueTooLarge { .. })));
            }
        }
        (acknowledged, conflicts)
    };
    let all = std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|writer| scope.spawn(move || work(writer)));
        let threads = threads.collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let conflicts = all.iter().map(|(_, conflicts)| conflicts).sum();
    let mut ordered = BTreeMap::new();
    for (place, batch) in all.into_iter().flat_map(|(batches, _)| batches).enumerate() {
        let at = batch.expect.map_or((0, place as u64), |expect| (expect.todo, expect.head));
        assert!(ordered.insert(at, batch).is_none(), "two were taken at one head");
    }
    (ordered.into_values().collect(), conflicts)
}

/// P2: batches that wait while others have the store are committed in one transaction, and only a batch that conflicts
/// is refused.
#[test]
#[cfg(feature = "sqlite")]
fn p2_commits_that_wait_are_one() {
    let dir = tempfile::tempdir().unwrap();
    let kv = open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    kv.commit(Batch { put: vec![(message(1, 0), vec![0])], ..Batch::default() }).unwrap();
    // This process's own part of the number counts its transactions.
    let transactions = || kv.changed().unwrap() >> 32;
    let before = transactions();
    // Another process that writes.
    let other = std::fs::File::open(dir.path().join("LOCK")).unwrap();
    other.lock().unwrap();
    let begun = std::sync::atomic::AtomicU32::new(0);
    let expecting = |n: u32| {
        begun.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let expect = Some(Expect { todo: 1 + n / 4, head: 0, next: 7 });
        let put = vec![(message(2, u64::from(n)), vec![n as u8])];
        kv.commit(Batch { expect, put, delete: vec![] })
    };
    let taken = std::thread::scope(|scope| {
        let expecting = &expecting;
        let threads = (0..64).map(|n| scope.spawn(move || expecting(n))).collect::<Vec<_>>();
        while begun.load(std::sync::atomic::Ordering::SeqCst) < 64 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
        other.unlock().unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(transactions() - before < 16, "{} transactions of 64 commits", transactions() - before);
    let records = kv.scan(Space::Message, 2, 0..64, 64).unwrap();
    for (todo, answers) in (1_u32..).zip(taken.chunks(4)) {
        // Of each four that begin a todo, one comes first.
        let first = answers.iter().position(Result::is_ok).unwrap();
        for (at, answer) in answers.iter().enumerate().filter(|(at, _)| *at != first) {
            let conflict = Err(Error::Conflict { todo, expected: 0, found: 7 });
            assert_eq!(
                format!("{answer:?}"),
                format!("{:?}", conflict as Result<(), Error>),
                "{at}"
            );
        }
        let n = u64::from(todo - 1) * 4 + first as u64;
        assert!(records.contains(&(n, vec![n as u8])));
    }
    assert_eq!(records.len(), 16);
    assert_eq!(kv.lost().unwrap(), None);
}
