//! The todos that a store holds, each with the small number that its records are keyed by.

mod copy;

use crate::{Batch, Delete, Error, Expect, FORGOTTEN_HEAD, Key, Kv, Space, retry};
use foldback_core::TodoId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// A todo that exists in a store. Only a [`Registry`] creates one, so that no record can be read
/// without the todo's id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Todo {
    no: u32,
    id: TodoId,
}

impl Todo {
    /// Returns the todo's id.
    #[must_use]
    pub fn id(&self) -> &TodoId {
        &self.id
    }

    /// Returns the number that the todo's records are keyed by. It is never assigned again, even if
    /// the todo is forgotten and another one with the same id is created.
    #[must_use]
    pub fn no(&self) -> u32 {
        self.no
    }
}

/// The todos of one store.
///
/// A todo is found by a hash of its id, so the cost does not grow with the number of todos, and the
/// registry keeps nothing in memory.
#[derive(Clone)]
pub struct Registry {
    kv: Arc<dyn Kv>,
    /// How many todos there may be.
    most: Option<u32>,
    /// Held by the thread that is creating a todo. All new todos change one head, so that threads without turns would
    /// refuse each other most of the time.
    turn: Arc<Mutex<()>>,
}

/// A turn is not waited for longer than this, because a store that does not answer holds up every thread by itself.
const TURN: Duration = Duration::from_secs(1);

/// The registry's own records are keyed by this number; its head counts the todos ever created.
pub(crate) const REGISTRY: u32 = 0;

/// Attached data is split into pieces of this many bytes, so that no value is large.
const PIECE: usize = 1 << 20;

impl Registry {
    /// Returns the registry of this store.
    #[must_use]
    pub fn new(kv: Arc<dyn Kv>) -> Self {
        Self { kv, most: None, turn: Arc::default() }
    }

    /// Sets how many todos there may be; `None`, the default, for any number. Those that were forgotten do not count.
    #[must_use]
    pub fn with_most(mut self, most: Option<u32>) -> Self {
        self.most = most;
        self
    }

    /// Returns the todo with this id, if there is one.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn find(&self, id: &TodoId) -> Result<Option<Todo>, Error> {
        let names = self.names(id)?;
        Ok(names.into_iter().find(|todo| todo.id == *id))
    }

    /// Returns the todo with this id, and creates it if there is none. `info` is stored with a new
    /// todo; an existing one keeps its own. Several processes may call this at once.
    ///
    /// # Errors
    /// When the store fails or is full, and [`Error::TooManyTodos`] when there are [as many](Self::with_most) as there
    /// may be.
    pub fn create(&self, id: &TodoId, info: &[u8]) -> Result<Todo, Error> {
        self.create_with(id, info, |_| Vec::new())
    }

    /// Like [`create`](Self::create); the records that `begin` returns for the number of a new todo
    /// are written in the same transaction.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        &self,
        id: &TodoId,
        info: &[u8],
        begin: impl Fn(u32) -> Vec<(Key, Vec<u8>)>,
    ) -> Result<Todo, Error> {
        if let Some(todo) = self.find(id)? {
            return Ok(todo);
        }
        let _turn = self.turn.try_lock_for(TURN);
        // Another process may create a todo meanwhile, perhaps the same one.
        retry(|| {
            let head = self.kv.head(REGISTRY)?;
            let mut names = self.names(id)?;
            if let Some(todo) = names.iter().find(|todo| todo.id == *id) {
                return Ok(todo.clone());
            }
            if let Some(most) = self.most
                && head >= u64::from(most)
                && self.list(0, most as usize)?.len() >= most as usize
            {
                return Err(Error::TooManyTodos { most });
            }
            // The greatest number that fits a key limits the todos of a store.
            let no = u32::try_from(head + 1).unwrap_or(u32::MAX);
            let todo = Todo { no, id: id.clone() };
            names.push(todo.clone());
            let mut put = begin(no);
            put.extend([
                (name_key(self.kv.as_ref(), id)?, write_names(&names)),
                (own_key(no), record(id, info)),
            ]);
            let batch = Batch {
                expect: Some(Expect { todo: REGISTRY, head, next: head + 1 }),
                put,
                delete: Vec::new(),
            };
            self.kv.commit(batch)?;
            Ok(todo)
        })
    }

    /// Returns the info that is stored with the todo.
    ///
    /// # Errors
    /// When the store fails, or the record is missing or damaged.
    pub fn info(&self, todo: &Todo) -> Result<Vec<u8>, Error> {
        let key = own_key(todo.no);
        let value = self.kv.get(key)?.unwrap_or_default();
        match parse(&value) {
            Some((_, info)) => Ok(info.to_vec()),
            None => Err(corrupt(key)),
        }
    }

    /// Returns the data attached to the todo, or an empty value. Unlike the info it may be large,
    /// and [`list`](Self::list) does not read it.
    ///
    /// # Errors
    /// When the store fails or a record is damaged.
    pub fn attached(&self, todo: &Todo) -> Result<Vec<u8>, Error> {
        let pieces = self.kv.scan(Space::Todo, todo.no, 0..Key::N_END, usize::MAX)?;
        let mut attached = Vec::with_capacity(pieces.iter().map(|(_, piece)| piece.len()).sum());
        pieces.into_iter().for_each(|(_, piece)| attached.extend(piece));
        Ok(attached)
    }

    /// Replaces the todo's `info` and `attached` in one transaction.
    ///
    /// # Errors
    /// When the store fails, and [`Error::Conflict`] when the todo's head is not `head`, because
    /// the todo was written to or forgotten meanwhile; then nothing changes.
    pub fn set(&self, todo: &Todo, head: u64, info: &[u8], attached: &[u8]) -> Result<(), Error> {
        self.set_with(todo, head, info, attached, Batch::default())
    }

    /// Like [`set`](Self::set), with the puts and deletions of `beside` in the same transaction.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_with(
        &self,
        todo: &Todo,
        head: u64,
        info: &[u8],
        attached: &[u8],
        beside: Batch,
    ) -> Result<(), Error> {
        let key = own_key(todo.no);
        let pieces = (0..).zip(attached.chunks(PIECE));
        let pieces =
            pieces.map(|(n, piece)| (Key { space: Space::Todo, todo: todo.no, n }, piece.to_vec()));
        self.kv.commit(Batch {
            expect: Some(Expect { todo: todo.no, head, next: head }),
            put: std::iter::once((key, record(&todo.id, info)))
                .chain(pieces)
                .chain(beside.put)
                .collect(),
            delete: std::iter::once(Delete::todo(Space::Todo, todo.no))
                .chain(beside.delete)
                .collect(),
        })
    }

    /// Returns up to `limit` todos with numbers above `after`, in the order of their creation.
    ///
    /// # Errors
    /// When the store fails or a record is damaged.
    pub fn list(&self, after: u32, limit: usize) -> Result<Vec<Todo>, Error> {
        let listed = self.list_with_info(after, limit)?;
        Ok(listed.into_iter().map(|(todo, _)| todo).collect())
    }

    /// Like [`list`](Self::list), each with its info.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn list_with_info(&self, after: u32, limit: usize) -> Result<Vec<(Todo, Vec<u8>)>, Error> {
        let from = u64::from(after) + 1;
        self.kv
            .scan(Space::Todo, REGISTRY, from..u64::from(u32::MAX), limit)?
            .into_iter()
            .map(|(n, value)| {
                let no = u32::try_from(n).unwrap_or(u32::MAX);
                let (id, info) = parse(&value).ok_or_else(|| corrupt(own_key(no)))?;
                Ok((Todo { no, id }, info.to_vec()))
            })
            .collect()
    }

    /// Returns the number of each todo that holds anything, with its head or
    /// [`DAMAGED_HEAD`](crate::DAMAGED_HEAD), in one read, however many there are. Forgotten todos are
    /// not included.
    ///
    /// # Errors
    /// When the store fails.
    pub fn heads(&self) -> Result<Vec<(u32, u64)>, Error> {
        let made = match self.kv.head(REGISTRY) {
            // In that case the last registered todo is the last one.
            Err(Error::CorruptHead { .. }) => match self.kv.last(Space::Todo, REGISTRY) {
                Err(Error::Corrupt { key, .. }) => key.n,
                last => last?.map_or(0, |(n, _)| n),
            },
            made => made?,
        };
        let made = u32::try_from(made).unwrap_or(u32::MAX);
        let mut heads = self.kv.heads(REGISTRY + 1..made.saturating_add(1))?;
        heads.retain(|(_, head)| *head != FORGOTTEN_HEAD);
        Ok(heads)
    }

    /// Removes the todo from the registry, together with `delete` (its records elsewhere), in one transaction.
    /// Its number then has the [head](FORGOTTEN_HEAD) that no writer expects, so that a writer that still
    /// holds the todo gets a conflict.
    ///
    /// # Errors
    /// When the store fails; then nothing is gone, or, if the [disk is full](Kv::erase), only some of the
    /// records: the todo is half deleted, and can be removed again.
    pub fn remove(&self, todo: &Todo, mut delete: Vec<Delete>) -> Result<(), Error> {
        let name = name_key(self.kv.as_ref(), &todo.id)?;
        delete.push(Delete::one(own_key(todo.no)));
        delete.push(Delete::todo(Space::Todo, todo.no));
        // Records that others write to the todo meanwhile are deleted too.
        retry(|| {
            let head = self.kv.head(todo.no)?;
            let mut names = self.names(&todo.id)?;
            let held = names.len();
            names.retain(|other| other.no != todo.no);
            let (mut put, mut delete) = (Vec::new(), delete.clone());
            // If another process has removed the todo, its name may be that of a new one by now.
            if names.len() < held {
                if names.is_empty() {
                    delete.push(Delete::one(name));
                } else {
                    put.push((name, write_names(&names)));
                }
            }
            let expect = Some(Expect { todo: todo.no, head, next: FORGOTTEN_HEAD });
            self.kv.erase(Batch { expect, put, delete })
        })
    }

    /// Returns the todos whose ids share a hash with `id`: hardly ever more than one.
    fn names(&self, id: &TodoId) -> Result<Vec<Todo>, Error> {
        let key = name_key(self.kv.as_ref(), id)?;
        let Some(value) = self.kv.get(key)? else { return Ok(Vec::new()) };
        read_names(&value).ok_or_else(|| corrupt(key))
    }
}

/// Returns the key of the registry's record of a todo.
pub(crate) fn own_key(todo: u32) -> Key {
    Key { space: Space::Todo, todo: REGISTRY, n: u64::from(todo) }
}

/// Returns 63 bits of the id's hash; in an encrypted store, of a keyed hash that reveals nothing about the id.
fn name_key(kv: &dyn Kv, id: &TodoId) -> Result<Key, Error> {
    let id = id.as_str().as_bytes();
    let hash = match kv.cipher(REGISTRY)? {
        Some(cipher) => {
            let digest = cipher.digest(id);
            digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
        }
        None => xxhash_rust::xxh3::xxh3_64(id),
    };
    let todo = (hash >> 33) as u32;
    Ok(Key { space: Space::Name, todo, n: hash & 0xffff_ffff })
}

/// Returns whether a todo is found by the id that it is registered with.
pub(crate) fn is_found(kv: &dyn Kv, no: u32, record: &[u8]) -> Result<bool, Error> {
    let Some((id, _)) = parse(record) else { return Ok(false) };
    let names = kv.get(name_key(kv, &id)?)?.unwrap_or_default();
    Ok(read_names(&names).is_some_and(|names| names.iter().any(|todo| todo.no == no)))
}

fn write_names(names: &[Todo]) -> Vec<u8> {
    let mut out = Vec::new();
    for todo in names {
        out.extend_from_slice(format!("{} {}\n", todo.no, todo.id).as_bytes());
    }
    out
}

fn read_names(value: &[u8]) -> Option<Vec<Todo>> {
    std::str::from_utf8(value)
        .ok()?
        .lines()
        .map(|line| {
            let (no, id) = line.split_once(' ')?;
            Some(Todo { no: no.parse().ok()?, id: TodoId::new(id).ok()? })
        })
        .collect()
}

/// Encodes a todo's record: its id, a line break, and its info.
fn record(id: &TodoId, info: &[u8]) -> Vec<u8> {
    let mut out = id.as_str().as_bytes().to_vec();
    out.push(b'\n');
    out.extend_from_slice(info);
    out
}

fn parse(value: &[u8]) -> Option<(TodoId, &[u8])> {
    let end = value.iter().position(|&b| b == b'\n')?;
    let id = std::str::from_utf8(value.get(..end)?).ok()?;
    Some((TodoId::new(id).ok()?, value.get(end + 1..)?))
}

fn corrupt(key: Key) -> Error {
    Error::Corrupt { key, detail: "it is not the record of a todo".to_owned() }
}

#[cfg(test)]
mod tests;
