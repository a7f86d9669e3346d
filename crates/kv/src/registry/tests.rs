//! Todos that are created, found, limited in number and removed.

use super::*;
use crate::{Engine, Finding, Mode};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

fn registry() -> Registry {
    let dir = tempfile::tempdir().unwrap();
    Registry::new(crate::open(dir.path(), Engine::Memory, Mode::ReadWrite).unwrap())
}

#[test]
fn a_todo_is_made_once_and_found_by_its_id() {
    let registry = registry();
    let id = TodoId::new("a").unwrap();
    assert_eq!(registry.find(&id).unwrap(), None);
    let todo = registry.create(&id, b"first").unwrap();
    assert_eq!(registry.create(&id, b"second").unwrap(), todo);
    assert_eq!(registry.find(&id).unwrap(), Some(todo.clone()));
    assert_eq!(registry.info(&todo).unwrap(), b"first");
    registry.set(&todo, 0, b"third", b"").unwrap();
    assert_eq!(registry.info(&todo).unwrap(), b"third");
    assert_eq!(registry.list(0, 2).unwrap(), [todo]);
}

#[test]
fn what_is_attached_is_kept_in_pieces_and_goes_with_its_todo() {
    let registry = registry();
    let [a, b] = ["a", "b"].map(|id| registry.create(&TodoId::new(id).unwrap(), b"").unwrap());
    let large: Vec<u8> = (0..2 * PIECE + 7).map(|i| (i % 251) as u8).collect();
    assert_eq!(registry.attached(&a).unwrap(), b"");
    registry.set(&a, 0, b"info", &large).unwrap();
    registry.set(&b, 0, b"", b"of b").unwrap();
    assert_eq!(registry.attached(&a).unwrap(), large);
    let pieces = |todo: &Todo| registry.kv.scan(Space::Todo, todo.no(), 0..9, 9).unwrap().len();
    assert_eq!(pieces(&a), 3);
    // A writer that has not seen the latest write changes nothing.
    let late = registry.set(&a, 7, b"late", b"late");
    assert!(matches!(late, Err(Error::Conflict { .. })), "{late:?}");
    assert_eq!((registry.info(&a).unwrap(), pieces(&a)), (b"info".to_vec(), 3));
    // A shorter value leaves nothing of a longer one.
    registry.set(&a, 0, b"info", &large[..PIECE]).unwrap();
    assert_eq!((registry.attached(&a).unwrap(), pieces(&a)), (large[..PIECE].to_vec(), 1));
    registry.remove(&a, Vec::new()).unwrap();
    assert_eq!(pieces(&a), 0);
    assert!(registry.set(&a, 0, b"", b"again").is_err(), "it is forgotten");
    assert_eq!(registry.attached(&b).unwrap(), b"of b");
    assert_eq!(registry.list(0, 10).unwrap(), [b]);
}

/// R10: of a limited number of todos, none is added beyond it; a forgotten one makes room.
#[test]
fn r10_no_todo_is_added_beyond_the_limit() {
    let limited = registry().with_most(Some(2));
    let [a, b, c] = ["a", "b", "c"].map(|id| TodoId::new(id).unwrap());
    let first = limited.create(&a, b"").unwrap();
    limited.create(&b, b"").unwrap();
    let refused = limited.create(&c, b"");
    assert!(matches!(refused, Err(Error::TooManyTodos { most: 2 })), "{refused:?}");
    let said = Error::TooManyTodos { most: 1 }.to_string();
    assert!(said.starts_with("the store may hold at most 1 todo (memory.max_todos"), "{said}");
    assert_eq!(limited.create(&a, b"").unwrap(), first, "one that is there is no new one");
    limited.remove(&first, Vec::new()).unwrap();
    limited.create(&c, b"").unwrap();
    assert!(limited.create(&a, b"").is_err());
}

#[test]
fn a_number_is_never_given_out_again() {
    let registry = registry();
    let (a, b) = (TodoId::new("a").unwrap(), TodoId::new("b").unwrap());
    let first = registry.create(&a, b"").unwrap();
    registry.remove(&first, Vec::new()).unwrap();
    assert_eq!(registry.find(&a).unwrap(), None);
    // Whether a writer saw it empty, with something in it, or as it is now.
    for (head, next) in [(0, 1), (0, 0), (7, 8)] {
        let stale = Some(Expect { todo: first.no(), head, next });
        let late = registry.kv.commit(Batch { expect: stale, ..Batch::default() });
        assert!(matches!(late, Err(Error::Conflict { .. })), "a forgotten todo takes no more");
    }
    assert_eq!(registry.kv.head(first.no()).unwrap(), FORGOTTEN_HEAD);
    assert_eq!(registry.kv.heads(0..9).unwrap(), [(REGISTRY, 1)], "and leaves nothing");
    registry.remove(&first, Vec::new()).unwrap();
    let again = registry.create(&a, b"").unwrap();
    let other = registry.create(&b, b"").unwrap();
    assert_ne!(first.no(), again.no());
    let expect = Some(Expect { todo: other.no(), head: 0, next: 7 });
    registry.kv.commit(Batch { expect, ..Batch::default() }).unwrap();
    assert_eq!(registry.heads().unwrap(), [(other.no(), 7)], "neither forgotten nor empty ones");
    assert_eq!(registry.list(0, 10).unwrap(), [again.clone(), other]);
    assert_eq!(registry.list(again.no(), 10).unwrap().len(), 1);
}

/// A store in which another process may create a todo right before the first commit.
struct Contested {
    kv: Arc<dyn Kv>,
    overtaken_by: Mutex<Option<TodoId>>,
    /// The commits that came too late.
    conflicts: AtomicUsize,
}

impl Contested {
    fn new(kv: Arc<dyn Kv>, overtaken_by: Option<TodoId>) -> Self {
        Self { kv, overtaken_by: Mutex::new(overtaken_by), conflicts: AtomicUsize::new(0) }
    }
}

impl Kv for Contested {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        if let Some(id) = self.overtaken_by.lock().take() {
            Registry::new(self.kv.clone()).create(&id, b"")?;
        }
        let committed = self.kv.commit(batch);
        let is_late = matches!(committed, Err(Error::Conflict { .. }));
        self.conflicts.fetch_add(usize::from(is_late), Ordering::Relaxed);
        committed
    }
    fn head(&self, todo: u32) -> Result<u64, Error> {
        let head = self.kv.head(todo);
        // Long enough for another thread to commit.
        std::thread::sleep(Duration::from_millis(1));
        head
    }
    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        self.kv.get(key)
    }
    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.kv.scan(space, todo, range, limit)
    }
    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        self.kv.last(space, todo)
    }
    fn changed(&self) -> Result<u64, Error> {
        self.kv.changed()
    }
    fn compact(&self) -> Result<(), Error> {
        self.kv.compact()
    }
    fn backup(&self, dir: &Path) -> Result<(), Error> {
        self.kv.backup(dir)
    }
    fn check(&self) -> Result<Vec<Finding>, Error> {
        self.kv.check()
    }
}

/// PG2: of two processes that forget a todo, the second one leaves a new todo of the same name as it is.
#[test]
fn pg2_forgetting_twice_spares_a_new_todo_of_the_same_name() {
    let (kv, id) = (crate::memory(), TodoId::new("a").unwrap());
    let registry = Registry::new(kv.clone());
    let old = registry.create(&id, b"").unwrap();
    registry.remove(&old, Vec::new()).unwrap();
    let second = Contested::new(kv, Some(id.clone()));
    Registry::new(Arc::new(second)).remove(&old, Vec::new()).unwrap();
    let new = registry.find(&id).unwrap().expect("the new todo is found by its name");
    assert_eq!(registry.list(0, 9).unwrap(), [new]);
}

/// Threads that create todos at once take turns instead of refusing each other's commits.
#[test]
fn threads_that_create_todos_take_turns() {
    let kv = Arc::new(Contested::new(crate::memory(), None));
    let registry = Registry::new(kv.clone());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let registry = registry.clone();
            scope.spawn(move || {
                for n in 0..8 {
                    registry.create(&TodoId::new(&format!("{thread}-{n}")).unwrap(), b"").unwrap();
                }
            });
        }
    });
    assert_eq!(registry.list(0, 99).unwrap().len(), 32);
    assert_eq!(kv.conflicts.load(Ordering::Relaxed), 0);
}
