//! Sealed stores against an attacker who writes the engine's records.

use foldback_core::TodoId;
use foldback_kv::{
    Batch, Delete, EncryptionKey, Error, Expect, Finding, Key, Kv, Mode, Registry, Space, Todo,
    seal,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// An engine whose records lie open.
struct Open {
    inner: Arc<dyn Kv>,
    records: Mutex<BTreeMap<Key, Vec<u8>>>,
}

impl Open {
    fn new() -> Arc<Self> {
        Arc::new(Self { inner: foldback_kv::memory(), records: Mutex::default() })
    }

    fn records(&self) -> BTreeMap<Key, Vec<u8>> {
        self.records.lock().unwrap().clone()
    }

    /// Puts a record, or takes it away, as an attacker does.
    fn force(&self, key: Key, value: Option<&Vec<u8>>) {
        let mut batch = Batch::default();
        match value {
            Some(value) => batch.put.push((key, value.clone())),
            None => batch.delete.push(Delete::one(key)),
        }
        self.commit(batch).unwrap();
    }

    /// Puts all records back as they were.
    fn restore(&self, records: &BTreeMap<Key, Vec<u8>>) {
        for key in self.records().keys().filter(|key| !records.contains_key(key)) {
            self.force(*key, None);
        }
        records.iter().for_each(|(key, value)| self.force(*key, Some(value)));
    }

    fn force_head(&self, todo: u32, next: u64) {
        let expect = Some(Expect { todo, head: self.inner.head(todo).unwrap(), next });
        self.commit(Batch { expect, ..Batch::default() }).unwrap();
    }
}

impl Kv for Open {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        self.inner.commit(batch.clone())?;
        let mut records = self.records.lock().unwrap();
        for Delete { space, todo, range } in batch.delete {
            records.retain(|key, _| {
                !(key.space == space && key.todo == todo && range.contains(&key.n))
            });
        }
        records.extend(batch.put);
        Ok(())
    }
    fn head(&self, todo: u32) -> Result<u64, Error> {
        self.inner.head(todo)
    }
    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get(key)
    }
    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.inner.scan(space, todo, range, limit)
    }
    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        self.inner.last(space, todo)
    }
    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        self.inner.heads(todos)
    }
    fn changed(&self) -> Result<u64, Error> {
        self.inner.changed()
    }
    fn compact(&self) -> Result<(), Error> {
        self.inner.compact()
    }
    fn backup(&self, dir: &Path) -> Result<(), Error> {
        self.inner.backup(dir)
    }
    fn check(&self) -> Result<Vec<Finding>, Error> {
        self.inner.check()
    }
}

fn key() -> EncryptionKey {
    EncryptionKey::new([7; 32])
}

fn sealed(engine: &Arc<Open>) -> Arc<dyn Kv> {
    seal(engine.clone(), None, Mode::ReadWrite, &key()).unwrap()
}

/// Spaces in which a record may be written over, and those in which each is written once.
const OVER: [Space; 6] =
    [Space::Session, Space::Plan, Space::Grant, Space::Sent, Space::Parked, Space::Index];
const ONCE: [Space; 5] =
    [Space::Message, Space::Block, Space::Vector, Space::Payload, Space::PayloadBytes];

const CANARY: &str = "canary-金丝雀";

/// A round of writing in a todo.
fn write(kv: &dyn Kv, todo: &Todo, round: u64) {
    let key = |space, n| Key { space, todo: todo.no(), n };
    let value = |space: Space| format!("{CANARY} {space} {} {round}", todo.id()).into_bytes();
    let mut put: Vec<_> = OVER.into_iter().map(|space| (key(space, 0), value(space))).collect();
    put.extend(ONCE.into_iter().map(|space| (key(space, round), value(space))));
    put.push((key(Space::Grant, 10 + round), value(Space::Grant)));
    // The previous grant is revoked.
    let delete = round.checked_sub(1).map(|before| Delete::one(key(Space::Grant, 10 + before)));
    let expect = Some(Expect { todo: todo.no(), head: round, next: round + 1 });
    kv.commit(Batch { expect, put, delete: delete.into_iter().collect() }).unwrap();
    let shared = Key { space: Space::Meta, todo: 0, n: 1 };
    kv.commit(Batch { put: vec![(shared, value(Space::Meta))], ..Batch::default() }).unwrap();
}

struct Written {
    engine: Arc<Open>,
    kv: Arc<dyn Kv>,
    todos: Vec<Todo>,
    /// The records after each round.
    rounds: Vec<BTreeMap<Key, Vec<u8>>>,
}

fn written() -> Written {
    let engine = Open::new();
    let kv = sealed(&engine);
    let registry = Registry::new(kv.clone());
    let todos: Vec<Todo> = ["canary-a", "canary-b"]
        .map(|id| registry.create(&TodoId::new(id).unwrap(), b"canary").unwrap())
        .to_vec();
    let mut rounds = Vec::new();
    for round in 0..3 {
        todos.iter().for_each(|todo| write(kv.as_ref(), todo, round));
        registry
            .set(&todos[0], round + 1, format!("info {round}").as_bytes(), b"attached")
            .unwrap();
        rounds.push(engine.records());
    }
    Written { engine, kv, todos, rounds }
}

/// The result of reading a record through the sealing, by every way to reach it.
fn is_noticed(kv: &dyn Kv, key: Key) -> bool {
    let whole = kv.scan(key.space, key.todo, 0..Key::N_END, usize::MAX);
    let (one, last) = (kv.get(key), kv.last(key.space, key.todo));
    let is_corrupt = |error: &Error| matches!(error, Error::Corrupt { .. });
    let noticed = one.as_ref().is_err_and(is_corrupt);
    assert_eq!(noticed, whole.as_ref().is_err_and(is_corrupt), "{key}: {one:?} and {whole:?}");
    let is_given = matches!(last, Ok(Some((n, _))) if n == key.n);
    assert!(!(noticed && is_given), "{key}: the last record is given unnoticed");
    noticed
}

/// The sealing's own records, which nobody reads by themselves.
fn is_own(key: Key) -> bool {
    (Key::TODO_END - 16..Key::TODO_END - 13).contains(&key.todo)
}

#[test]
fn s14_nothing_that_was_written_is_in_an_engine_s_records() {
    let Written { engine, kv, todos, .. } = written();
    for (key, record) in engine.records() {
        for word in ["canary", "金丝雀", "info", "attached"] {
            let found = record.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "{word} is in {key}");
        }
    }
    assert_eq!(kv.check().unwrap(), []);
    let nonces: BTreeSet<Vec<u8>> =
        engine.records().values().map(|record| record[1..25].to_vec()).collect();
    assert_eq!(nonces.len(), engine.records().len(), "no nonce is used twice");
    // The key of a todo is deleted with it, and any remains of its records no longer open.
    let before = engine.records();
    Registry::new(kv.clone()).remove(&todos[0], Vec::new()).unwrap();
    let message = Key { space: Space::Message, todo: todos[0].no(), n: 0 };
    engine.force(message, before.get(&message));
    assert!(matches!(kv.get(message), Err(Error::Corrupt { .. })));
    assert!(matches!(sealed(&engine).get(message), Err(Error::Corrupt { .. })));
    let others = Key { todo: todos[1].no(), ..message };
    assert!(kv.get(others).unwrap().is_some());
}

#[test]
fn s14_changed_swapped_and_cut_records_are_noticed() {
    let Written { engine, kv, .. } = written();
    let other = written().engine.records();
    let (whole, mut tried) = (engine.records(), 0);
    for (key, record) in &whole {
        let mut forged: Vec<Vec<u8>> = whole
            .iter()
            .filter(|(other, _)| *other != key)
            .map(|(_, record)| record.clone())
            .collect();
        forged.extend([
            record[..record.len() - 1].to_vec(),
            Vec::new(),
            [record.as_slice(), b"x"].concat(),
        ]);
        forged.extend((0..record.len()).step_by(7).map(|at| {
            let mut flipped = record.clone();
            flipped[at] ^= 4;
            flipped
        }));
        // The record of another store at the same place, with the same key of the caller's.
        forged.extend(other.get(key).cloned());
        for forged in forged {
            engine.force(*key, Some(&forged));
            tried += 1;
            if is_own(*key) {
                let opened = seal(engine.clone(), None, Mode::ReadOnly, &self::key());
                let found = opened.map(|kv| kv.check().unwrap());
                assert!(!found.is_ok_and(|found| found.is_empty()), "{key}");
            } else {
                assert!(is_noticed(kv.as_ref(), *key), "{key}");
            }
        }
        engine.force(*key, Some(record));
    }
    assert!(tried > 2_000, "{tried}");
    assert_eq!(kv.check().unwrap(), []);
}

#[test]
fn s14_older_writings_of_a_record_are_noticed() {
    let Written { engine, kv, rounds, .. } = written();
    let (whole, mut tried) = (engine.records(), 0);
    let older: Vec<(Key, Vec<u8>)> =
        rounds.iter().flatten().map(|(k, r)| (*k, r.clone())).collect();
    for (key, record) in older.iter().filter(|(key, record)| whole.get(key) != Some(record)) {
        engine.force(*key, Some(record));
        tried += 1;
        assert!(is_own(*key) || is_noticed(kv.as_ref(), *key), "{key}");
        assert_ne!(kv.check().unwrap(), [], "{key}");
        engine.force(*key, whole.get(key));
    }
    // Six records of two todos, one of the store, what was taken back, and what the sealing notes itself.
    assert!(tried > 30, "{tried}");
    assert_eq!(kv.check().unwrap(), []);
}

#[test]
fn s14_records_that_are_taken_away_and_heads_that_are_moved_are_found() {
    let Written { engine, kv, todos, rounds } = written();
    let whole = engine.records();
    let found = |what: &str| assert_ne!(kv.check().unwrap(), [], "{what}");
    // A missing record of those that are written once shows in their numbers, which the crates above check.
    let once = |key: &Key| ONCE.contains(&key.space) && key.todo < 9;
    for (key, record) in whole.iter().filter(|(key, _)| !once(key)) {
        engine.force(*key, None);
        found(&format!("{key} is gone"));
        engine.force(*key, Some(record));
    }
    for todo in &todos {
        for head in [1, 2, 9] {
            engine.force_head(todo.no(), head);
            assert!(matches!(kv.head(todo.no()), Err(Error::CorruptHead { .. })));
            found("a head was moved");
        }
        engine.force_head(todo.no(), 3);
        assert_eq!(kv.head(todo.no()).unwrap(), 3);
    }
    // A whole todo as it was, with its key, its ledger and its head: each of its records is sound.
    let of_todo = |key: &Key| {
        key.todo == todos[1].no()
            || is_own(*key) && key.n == u64::from(todos[1].no()) && key.todo != Key::TODO_END - 14
    };
    let mut mixed = whole.clone();
    mixed.retain(|key, _| !of_todo(key));
    mixed.extend(rounds[0].iter().filter(|(key, _)| of_todo(key)).map(|(k, r)| (*k, r.clone())));
    engine.restore(&mixed);
    engine.force_head(todos[1].no(), 1);
    let message = Key { space: Space::Message, todo: todos[1].no(), n: 0 };
    assert!(kv.get(message).unwrap().is_some());
    found("a todo is of an earlier time");
    engine.restore(&whole);
    engine.force_head(todos[1].no(), 3);
    assert_eq!(kv.check().unwrap(), []);
}

#[test]
fn s14_a_store_opens_with_its_key_alone() {
    let Written { engine, kv, todos, .. } = written();
    let wrong = EncryptionKey::new([8; 32]);
    let open = |key: &EncryptionKey| seal(engine.clone(), None, Mode::ReadWrite, key);
    assert!(matches!(open(&wrong), Err(Error::WrongKey { .. })));
    foldback_kv::change_key(engine.as_ref(), Path::new(""), &key(), &wrong).unwrap();
    assert!(matches!(open(&key()), Err(Error::WrongKey { .. })));
    let again = open(&wrong).unwrap();
    let message = Key { space: Space::Message, todo: todos[0].no(), n: 0 };
    assert_eq!(again.get(message).unwrap(), kv.get(message).unwrap());
    assert_eq!(again.check().unwrap(), []);
    let plain = foldback_kv::memory();
    plain
        .commit(Batch {
            put: vec![(message, Vec::new())],
            expect: Some(Expect { todo: 1, head: 0, next: 1 }),
            ..Batch::default()
        })
        .unwrap();
    assert!(matches!(seal(plain, None, Mode::ReadWrite, &wrong), Err(Error::NotEncrypted { .. })));
}

/// Concurrent writers and readers: no reader takes an unfinished write for an attack.
#[test]
fn s14_writers_raise_no_alarm() {
    let engine = Open::new();
    let kv = sealed(&engine);
    let at = |n| Key { space: Space::Session, todo: 3, n };
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    kv.get(at(0)).unwrap();
                    kv.scan(Space::Session, 3, 0..9, 9).unwrap();
                    kv.last(Space::Session, 3).unwrap();
                    kv.head(3).unwrap();
                    assert_eq!(kv.check().unwrap(), []);
                }
            });
        }
        for head in 0..2_000u64 {
            let expect = Some(Expect { todo: 3, head, next: head + 1 });
            let (put, gone) = (
                vec![(at(0), head.to_le_bytes().to_vec()), (at(head % 3), vec![1])],
                at(1 + (head + 1) % 2),
            );
            kv.commit(Batch { expect, put, delete: vec![Delete::one(gone)] }).unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// A sealed batch that depends on a record is written if the record has that value, and then alone.
#[test]
fn s14_a_sealed_batch_depends_on_a_record() {
    let kv = sealed(&Open::new());
    let at = Key { space: Space::Session, todo: 1, n: 0 };
    let put = |value: &str, held: &str| {
        let batch = Batch { put: vec![(at, value.into())], ..Batch::default() };
        kv.commit_if(batch, Some((at, held.into())))
    };
    assert!(matches!(put("one", "其他"), Err(Error::Changed { key }) if key == at));
    kv.commit(Batch { put: vec![(at, b"one".to_vec())], ..Batch::default() }).unwrap();
    assert!(matches!(put("two", "其他"), Err(Error::Changed { key }) if key == at));
    put("two", "one").unwrap();
    assert_eq!(kv.get(at).unwrap(), Some(b"two".to_vec()));
}
