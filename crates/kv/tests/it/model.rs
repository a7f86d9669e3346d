//! Random batches against an ordered map.

use std::collections::BTreeMap;

use foldback_kv::{
    Batch, Delete, EncryptionKey, Engine, Error, Expect, FORGOTTEN_HEAD, Finding, Key, Kv, Mode,
    Space, Truth, open_with,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Commit(Batch),
    Compact,
    Reopen,
}

#[derive(Default)]
struct Model {
    records: BTreeMap<Key, Vec<u8>>,
    heads: BTreeMap<u32, u64>,
}

impl Model {
    fn head(&self, todo: u32) -> u64 {
        let made = self.heads.get(&0).copied().unwrap_or(0);
        let own = Key { space: Space::Todo, todo: 0, n: u64::from(todo) };
        match self.heads.get(&todo) {
            Some(head) => *head,
            None if todo == 0 || u64::from(todo) > made || self.records.contains_key(&own) => 0,
            None => FORGOTTEN_HEAD,
        }
    }

    /// Whether the batch is taken.
    fn commit(&mut self, batch: Batch) -> bool {
        if let Some(Expect { todo, head, next }) = batch.expect {
            if self.head(todo) != head {
                return false;
            }
            self.heads.insert(todo, next);
            self.heads.retain(|_, head| *head != 0);
        }
        for Delete { space, todo, range } in batch.delete {
            self.records.retain(|key, _| {
                !(key.space == space && key.todo == todo && range.contains(&key.n))
            });
        }
        self.records.extend(batch.put);
        true
    }

    fn compare(&self, kv: &dyn Kv) {
        for space in SPACES {
            for todo in TODOS {
                let expected: Vec<(u64, Vec<u8>)> = self
                    .records
                    .iter()
                    .filter(|(key, _)| key.space == space && key.todo == todo)
                    .map(|(key, value)| (key.n, value.clone()))
                    .collect();
                assert_eq!(kv.last(space, todo).unwrap(), expected.last().cloned());
                for (n, value) in &expected {
                    let key = Key { space, todo, n: *n };
                    assert_eq!(kv.get(key).unwrap().as_ref(), Some(value));
                }
                assert_eq!(kv.scan(space, todo, 0..Key::N_END, 100).unwrap(), expected);
                assert_eq!(kv.head(todo).unwrap(), self.head(todo), "head of {todo}");
            }
        }
    }
}

const SPACES: [Space; 4] = [Space::Meta, Space::Todo, Space::Message, Space::File];
const TODOS: [u32; 3] = [0, 1, Key::TODO_END - 1];

fn run(engine: Engine, steps: Vec<Step>) {
    run_with(engine.into(), steps.clone(), None);
    run_with(engine.into(), steps, Some(EncryptionKey::new([7; 32])));
}

/// Runs random steps on databases, each of which is new.
#[cfg(all(unix, feature = "postgres"))]
pub(crate) fn run_on_servers(new: impl Fn() -> Truth, count: u32) {
    use proptest::test_runner::TestRunner;
    let ran = TestRunner::new(cases(count)).run(&steps(), |steps| {
        run_with(new(), steps.clone(), None);
        run_with(new(), steps, Some(EncryptionKey::new([7; 32])));
        Ok(())
    });
    ran.unwrap();
}

fn run_with(truth: Truth, steps: Vec<Step>, key: Option<EncryptionKey>) {
    let dir = tempfile::tempdir().unwrap();
    let engine = truth.engine();
    let open = |mode| open_with(dir.path(), truth.clone(), mode, key.as_ref()).unwrap();
    let mut kv = open(Mode::ReadWrite);
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Commit(batch) => {
                let taken = match kv.commit(batch.clone()) {
                    Ok(()) => true,
                    Err(Error::Conflict { .. }) => false,
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(taken, model.commit(batch));
            }
            Step::Compact => kv.compact().unwrap(),
            Step::Reopen if engine == Engine::Memory => {}
            Step::Reopen => {
                drop(kv);
                kv = open(Mode::ReadWrite);
            }
        }
    }
    model.compare(&*kv);
    if engine != Engine::Memory {
        drop(kv);
        let kv = open(Mode::ReadOnly);
        model.compare(&*kv);
        let mut findings = kv.check().unwrap();
        // In a sealed store, registered records must be those of a todo, which these are not.
        let is_registered = |finding: &Finding| {
            matches!(finding, Finding::Record { key: Key { space: Space::Todo, todo: 0, .. }, .. })
        };
        findings.retain(|finding| key.is_none() || !is_registered(finding));
        assert_eq!(findings, []);
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..6_u64, Just(Key::N_END - 1)]
}

fn key() -> impl Strategy<Value = Key> {
    (prop::sample::select(&SPACES[..]), prop::sample::select(&TODOS[..]), number())
        .prop_map(|(space, todo, n)| Key { space, todo, n })
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (0..20_000_usize).prop_map(|size| vec![size as u8; size]),
        1 => "[折叠块a-c]{0,8}".prop_map(String::into_bytes),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    let delete = (key(), 0..8_u64).prop_map(|(key, more)| Delete {
        space: key.space,
        todo: key.todo,
        range: key.n..key.n + more,
    });
    let expect = (prop::sample::select(&TODOS[..]), 0..3_u64, 0..3_u64)
        .prop_map(|(todo, head, next)| Expect { todo, head, next });
    (
        prop::option::of(expect),
        prop::collection::vec((key(), value()), 0..5),
        prop::collection::vec(delete, 0..3),
    )
        .prop_map(|(expect, put, delete)| Batch { expect, put, delete })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => batch().prop_map(Step::Commit),
        1 => Just(Step::Compact),
        2 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..25)
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(200))]
    #[test]
    fn r6_memory_is_the_model(steps in steps()) {
        run(Engine::Memory, steps);
    }
}

#[cfg(feature = "sqlite")]
proptest! {
    #![proptest_config(cases(60))]
    #[test]
    fn r6_sqlite_is_the_model(steps in steps()) {
        run(Engine::Sqlite, steps);
    }
}

#[cfg(feature = "redb")]
proptest! {
    #![proptest_config(cases(40))]
    #[test]
    fn r6_redb_is_the_model(steps in steps()) {
        run(Engine::Redb, steps);
    }
}

#[cfg(feature = "sled")]
proptest! {
    #![proptest_config(cases(25))]
    #[test]
    fn r6_sled_is_the_model(steps in steps()) {
        run(Engine::Sled, steps);
    }
}
