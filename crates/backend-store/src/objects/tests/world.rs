//! A store whose payloads are in an object store in memory.

use super::*;
use crate::{Meta, Pending};
use foldback_core::TodoId;
use foldback_kv::{Batch, Expect, Kv, Todo};
use futures::TryStreamExt as _;

pub(super) const ID: CopyId = [7; 16];

pub(super) struct World {
    pub(super) memory: Arc<InMemory>,
    pub(super) kv: Arc<dyn Kv>,
    pub(super) store: BackendStore,
    pub(super) todo: Todo,
}

impl World {
    pub(super) fn new() -> Self {
        Self::on(foldback_kv::memory())
    }

    pub(super) fn on(kv: Arc<dyn Kv>) -> Self {
        let memory = Arc::new(InMemory::new());
        let store = store_on(&memory, &kv);
        let todo = create(&kv, "todo001");
        Self { memory, kv, store, todo }
    }

    /// The same store, as another process has it open.
    pub(super) fn another_process(&self) -> BackendStore {
        store_on(&self.memory, &self.kv)
    }

    pub(super) fn another(&self, id: &str) -> Todo {
        create(&self.kv, id)
    }

    pub(super) fn put(&self, bytes: &[u8]) -> Meta {
        self.put_in(&self.todo, bytes)
    }

    pub(super) fn put_in(&self, todo: &Todo, bytes: &[u8]) -> Meta {
        let head = self.kv.head(todo.no()).unwrap();
        let mut pending = self.store.begin(todo).unwrap();
        let prepared = self.store.prepare_stream(&mut pending, bytes).unwrap();
        self.commit(head, pending);
        prepared.meta
    }

    pub(super) fn commit(&self, head: u64, pending: Pending) {
        let expect = Some(Expect { todo: pending.todo().no(), head, next: head + 1 });
        self.kv.commit(Batch { expect, put: pending.into_puts(), delete: vec![] }).unwrap();
    }

    /// The prefix of every object of the store.
    pub(super) fn base(&self) -> Path {
        Path::from(text(&ID))
    }

    /// The paths of all todos' objects.
    pub(super) fn paths(&self) -> Vec<Path> {
        let found = block_on(self.memory.list(Some(&self.base())).try_collect::<Vec<_>>()).unwrap();
        let paths = found.into_iter().map(|object| object.location);
        paths.filter(|path| !matches!(path.filename(), Some("clock" | "STORE"))).collect()
    }

    /// The paths of the objects with the bytes of a payload.
    pub(super) fn paths_of(&self, n: u64) -> Vec<Path> {
        let hash = text(&self.store.meta(&self.todo, n).unwrap().hash);
        self.paths().into_iter().filter(|path| path.to_string().contains(&hash)).collect()
    }

    pub(super) fn read(&self, path: &Path) -> Vec<u8> {
        block_on(async { self.memory.get(path).await.unwrap().bytes().await.unwrap().to_vec() })
    }

    pub(super) fn replace(&self, path: &Path, bytes: Option<Vec<u8>>) {
        match bytes {
            Some(bytes) => drop(block_on(self.memory.put(path, PutPayload::from(bytes))).unwrap()),
            None => block_on(self.memory.delete(path)).unwrap(),
        }
    }

    /// What a writer leaves that is killed within an upload: its note, and a part.
    pub(super) fn killed_upload(&self) -> (Path, String) {
        let objects = objects_in(&self.memory);
        let name = FileName { todo: self.todo.no(), hash: [3; 32], copy: Some([4; 16]) };
        let path = objects.client.path(&name);
        let id = block_on(self.memory.create_multipart(&path)).unwrap();
        objects.client.note(name.todo, &path, &id).unwrap();
        block_on(self.memory.put_part(&path, &id, 0, PutPayload::from_static(b"forget me")))
            .unwrap();
        (path, id)
    }
}

pub(super) fn service(memory: &Arc<InMemory>) -> Service {
    Service { store: memory.clone(), prefix: String::new(), shown: "memory://".to_owned() }
}

pub(super) fn objects_in(memory: &Arc<InMemory>) -> Objects {
    Objects::open(service(memory), &ID, None).unwrap()
}

fn store_on(memory: &Arc<InMemory>, kv: &Arc<dyn Kv>) -> BackendStore {
    BackendStore::with_files(kv.clone(), Box::new(objects_in(memory)), BackendConfig::default())
}

fn create(kv: &Arc<dyn Kv>, id: &str) -> Todo {
    Registry::new(kv.clone()).create(&TodoId::new(id).unwrap(), b"").unwrap()
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Bytes that do not compress (splitmix64).
pub(super) fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::with_capacity(size + 8);
    while out.len() < size {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        out.extend((z ^ (z >> 31)).to_le_bytes());
    }
    out.truncate(size);
    out
}
