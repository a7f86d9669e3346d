//! A store's secret, whatever happens while it is made.

use super::*;
use foldback_kv::Finding;
use std::path::Path;
use std::sync::Arc;

type KvResult<T> = Result<T, KvError>;

/// A store of which the heads of some numbers are damaged, and in which something happens before each
/// commit.
struct Troubled {
    kv: Arc<dyn Kv>,
    damaged: Range<u32>,
    before_commit: fn(&dyn Kv) -> KvResult<()>,
}

impl Troubled {
    fn new() -> Self {
        Self { kv: foldback_kv::memory(), damaged: 0..0, before_commit: |_| Ok(()) }
    }

    fn secret(&self) -> Secret {
        secret_of(self, Mode::ReadWrite).unwrap()
    }
}

impl Kv for Troubled {
    fn commit(&self, batch: Batch) -> KvResult<()> {
        (self.before_commit)(self.kv.as_ref())?;
        self.kv.commit(batch)
    }

    fn head(&self, todo: u32) -> KvResult<u64> {
        if self.damaged.contains(&todo) {
            return Err(KvError::CorruptHead { todo, detail: "a flipped bit".to_owned() });
        }
        self.kv.head(todo)
    }

    fn get(&self, key: Key) -> KvResult<Option<Vec<u8>>> {
        self.kv.get(key)
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> KvResult<Vec<(u64, Vec<u8>)>> {
        self.kv.scan(space, todo, range, limit)
    }

    fn last(&self, space: Space, todo: u32) -> KvResult<Option<(u64, Vec<u8>)>> {
        self.kv.last(space, todo)
    }

    fn changed(&self) -> KvResult<u64> {
        self.kv.changed()
    }

    fn compact(&self) -> KvResult<()> {
        self.kv.compact()
    }

    fn backup(&self, dir: &Path) -> KvResult<()> {
        self.kv.backup(dir)
    }

    fn check(&self) -> KvResult<Vec<Finding>> {
        self.kv.check()
    }
}

/// S5: a store has one secret for all who open it, and no two stores have the same.
#[test]
fn s5_a_store_keeps_its_secret() {
    let (kv, other) = (foldback_kv::memory(), foldback_kv::memory());
    let of = |mode| secret_of(kv.as_ref(), mode).unwrap();
    let passing = of(Mode::ReadOnly);
    assert_ne!(of(Mode::ReadOnly), passing, "a store that is only read gets none");
    let own = of(Mode::ReadWrite);
    assert_eq!((of(Mode::ReadWrite), of(Mode::ReadOnly)), (own, own));
    assert_ne!(secret_of(other.as_ref(), Mode::ReadWrite).unwrap(), own);
    let cut = vec![(SECRET, vec![1; 9])];
    kv.commit(Batch { put: cut, ..Batch::default() }).unwrap();
    let new = of(Mode::ReadWrite);
    assert_ne!(new, own);
    assert_eq!(of(Mode::ReadWrite), new, "a damaged one is made anew, once");
}

/// S5: a process that finds that another made the secret between its look and its commit takes that one.
#[test]
fn s5_whoever_comes_second_takes_the_first_ones_secret() {
    let first = |kv: &dyn Kv| secret_of(kv, Mode::ReadWrite).map(drop).map_err(|e| panic!("{e}"));
    let store = Troubled { before_commit: first, ..Troubled::new() };
    let own = store.secret();
    assert_eq!(secret_of(store.kv.as_ref(), Mode::ReadOnly).unwrap(), own);
    assert_eq!(store.kv.head(MAKERS.end - 1).unwrap(), 1, "one was made");
}

/// S5: a damaged counter does not keep a store from getting a permanent secret; if all are damaged, it still opens.
#[test]
fn s5_a_damaged_counter_costs_no_secret() {
    let last = MAKERS.end - 1;
    let store = Troubled { damaged: last..last + 1, ..Troubled::new() };
    assert_eq!(store.secret(), store.secret());
    let store = Troubled { damaged: MAKERS, ..Troubled::new() };
    assert_ne!(store.secret(), store.secret(), "none is kept, and it opens");
}

/// S5: a store without a secret opens on a full disk.
#[test]
fn s5_a_full_disk_keeps_no_store_closed() {
    let full = |_: &dyn Kv| Err(KvError::Full { path: "store".into() });
    let store = Arc::new(Troubled { before_commit: full, ..Troubled::new() });
    assert_ne!(store.secret(), store.secret());
    assert_eq!(store.kv.get(SECRET).unwrap(), None);
    crate::Memory::open_on(store, None, crate::Options::default()).unwrap();
}
