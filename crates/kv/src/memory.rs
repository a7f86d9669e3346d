//! The engine for tests: ordered maps under one lock.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::{Batch, Engine, Error, Finding, Key, Kv, Mode, Space, missing_head};

/// Returns a new, empty store in memory, which is gone when its last handle is dropped.
pub fn memory() -> Arc<dyn Kv> {
    Arc::new(Memory::new(Mode::ReadWrite))
}

pub(crate) struct Memory {
    mode: Mode,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    records: BTreeMap<Key, Vec<u8>>,
    heads: BTreeMap<u32, u64>,
    commits: u64,
}

impl Memory {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, state: RwLock::default() }
    }
}

impl State {
    fn head(&self, todo: u32) -> u64 {
        let stored = |todo| self.heads.get(&todo).copied();
        stored(todo).unwrap_or_else(|| {
            let has = |key| Ok(self.records.contains_key(&key));
            let head = missing_head(todo, |todo| Ok(stored(todo).unwrap_or(0)), has);
            head.unwrap_or_else(|never: Infallible| match never {})
        })
    }
}

impl Kv for Memory {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        if self.mode == Mode::ReadOnly {
            return Err(Error::ReadOnly { path: PathBuf::from("(memory)") });
        }
        batch.check()?;
        if batch.is_empty() {
            return Ok(());
        }
        let mut state = self.state.write();
        if let Some(expect) = batch.expect {
            let found = state.head(expect.todo);
            if found != expect.head {
                return Err(Error::Conflict { todo: expect.todo, expected: expect.head, found });
            }
            match expect.stored() {
                None => state.heads.remove(&expect.todo),
                Some(next) => state.heads.insert(expect.todo, next),
            };
        }
        for delete in batch.delete {
            let Some(bounds) = bounds(delete.space, delete.todo, &delete.range)? else { continue };
            let gone: Vec<Key> = state.records.range(bounds).map(|(key, _)| *key).collect();
            for key in gone {
                state.records.remove(&key);
            }
        }
        state.records.extend(batch.put);
        state.commits += 1;
        Ok(())
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        Key { space: Space::Todo, todo, n: 0 }.check()?;
        Ok(self.state.read().head(todo))
    }

    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        if todos.is_empty() {
            return Ok(Vec::new());
        }
        let state = self.state.read();
        Ok(state.heads.range(todos).map(|(todo, head)| (*todo, *head)).collect())
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        key.check()?;
        Ok(self.state.read().records.get(&key).cloned())
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let Some(bounds) = bounds(space, todo, &range)? else { return Ok(Vec::new()) };
        let state = self.state.read();
        let records = state.records.range(bounds).take(limit);
        Ok(records.map(|(key, value)| (key.n, value.clone())).collect())
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let Some(bounds) = bounds(space, todo, &(0..Key::N_END))? else { return Ok(None) };
        let state = self.state.read();
        Ok(state.records.range(bounds).next_back().map(|(key, value)| (key.n, value.clone())))
    }

    fn changed(&self) -> Result<u64, Error> {
        Ok(self.state.read().commits)
    }

    fn compact(&self) -> Result<(), Error> {
        if self.mode == Mode::ReadOnly {
            return Err(Error::ReadOnly { path: PathBuf::from("(memory)") });
        }
        Ok(())
    }

    fn backup(&self, _dir: &Path) -> Result<(), Error> {
        Err(Error::Unsupported {
            engine: Engine::Memory.name(),
            what: "has nothing on disk to copy",
        })
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        Ok(Vec::new())
    }
}

fn bounds(
    space: Space,
    todo: u32,
    range: &Range<u64>,
) -> Result<Option<std::ops::RangeInclusive<Key>>, Error> {
    let key = |n: u32| Key { space, todo, n: u64::from(n) };
    Ok(Key::span(space, todo, range)?.map(|span| key(*span.start())..=key(*span.end())))
}
