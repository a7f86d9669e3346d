//! Copies of indexes in a store that several machines use.

use crate::fixture::{Bag, MODEL, Random, Writer, ask, eager, numbers};
use foldback_blockstore::{BlockStore, FindingKind, IndexConfig, SearchRequest, VectorSide};
use foldback_core::{Embedder, SeqNo};
use foldback_kv::{
    Batch, Cipher, Delete, EncryptionKey, Error, Finding, Key, Kv, Mode, Registry, Space, Todo,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A machine's way to a store that it shares with others. It counts what it reads.
struct Machine {
    kv: Arc<dyn Kv>,
    /// Taken for commits that depend on a record, if the engine does not compare it.
    turn: Option<Arc<Mutex<()>>>,
    /// The records of blocks, messages and vectors that were read.
    read: AtomicUsize,
    /// How many more commits are let through.
    commits: AtomicUsize,
}

impl Machine {
    fn new(kv: Arc<dyn Kv>, turn: Option<Arc<Mutex<()>>>) -> Arc<Self> {
        let (read, commits) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        Arc::new(Self { kv, turn, read, commits })
    }

    /// Machines that share a store in memory.
    fn together<const N: usize>() -> [Arc<Self>; N] {
        let (kv, turn) = (foldback_kv::memory(), Arc::new(Mutex::new(())));
        std::array::from_fn(|_| Self::new(kv.clone(), Some(turn.clone())))
    }

    fn take_read(&self) -> usize {
        self.read.swap(0, Ordering::Relaxed)
    }
}

impl Kv for Machine {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        self.commit_if(batch, None)
    }
    fn commit_if(&self, batch: Batch, held: Option<(Key, Vec<u8>)>) -> Result<(), Error> {
        let left = self.commits.load(Ordering::Relaxed);
        if left == 0 {
            return Err(Error::Unreachable { path: "store".into(), detail: "cut off".to_owned() });
        }
        self.commits.store(left - usize::from(left < usize::MAX), Ordering::Relaxed);
        let Some(turn) = &self.turn else { return self.kv.commit_if(batch, held) };
        let _turn = turn.lock().unwrap();
        match held {
            Some((key, value)) if self.kv.get(key)?.as_ref() != Some(&value) => {
                Err(Error::Changed { key })
            }
            _ => self.kv.commit(batch),
        }
    }
    fn head(&self, todo: u32) -> Result<u64, Error> {
        self.kv.head(todo)
    }
    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        self.kv.heads(todos)
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
        let found = self.kv.scan(space, todo, range, limit)?;
        if [Space::Block, Space::Message, Space::Vector].contains(&space) {
            self.read.fetch_add(found.len(), Ordering::Relaxed);
        }
        Ok(found)
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
    fn cipher(&self, todo: u32) -> Result<Option<Cipher>, Error> {
        self.kv.cipher(todo)
    }
    fn shares_derived(&self) -> bool {
        true
    }
}

/// The records of a todo's copy, the head and the chunks.
fn records(kv: &dyn Kv, todo: &Todo) -> BTreeMap<u64, Vec<u8>> {
    kv.scan(Space::Index, todo.no(), 1..Key::N_END, usize::MAX).unwrap().into_iter().collect()
}

fn put(kv: &dyn Kv, todo: &Todo, n: u64, value: Vec<u8>) {
    let key = Key { space: Space::Index, todo: todo.no(), n };
    kv.commit(Batch { put: vec![(key, value)], ..Batch::default() }).unwrap();
}

/// A store on a machine with a folder of its own.
fn on(machine: &Arc<Machine>, dir: &Path) -> BlockStore {
    BlockStore::open(machine.clone(), Some(dir.into()), eager()).unwrap()
}

/// Writes a todo on one machine, with its index and its copy.
fn write(machine: &Arc<Machine>, dir: &Path) -> Writer {
    let mut writer = Writer::on(machine.clone(), Some(dir), eager(), "t");
    writer.fill(7, 60).lines(&["the canary sings", "金丝雀在唱歌，港口的灯亮了"]);
    assert!(writer.store.maintain(&writer.todo).unwrap().published);
    writer
}

/// Searches a store that knows nothing of the todo. Returns how many records of blocks it read to find out.
#[track_caller]
fn read_by_first_search(machine: &Arc<Machine>, store: &BlockStore, todo: &Todo) -> usize {
    machine.take_read();
    let searcher = store.searcher(todo).unwrap();
    let read = machine.take_read();
    let last = store.last_block(todo).unwrap().unwrap().header.block_id.n();
    assert_eq!(searcher.blocks(), last);
    assert_eq!(numbers(&ask(store, todo, "金丝雀", 1)), [last]);
    read
}

/// What two machines share, one writes and the other takes.
fn a_copy_is_taken(machines: [Arc<Machine>; 2]) {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [one, other] = machines;
    let mut writer = write(&one, here.path());
    let todo = writer.todo.clone();
    let store = on(&other, there.path());
    assert_eq!(read_by_first_search(&other, &store, &todo), 0);
    assert!(there.path().join("1/tantivy/meta.json").exists(), "it is in the folder from now on");
    assert_eq!(store.doctor(&todo, false).unwrap(), []);
    let hits = |store: &BlockStore| ask(store, &todo, "the canary sings in the harbour", 9);
    assert_eq!(hits(&store), hits(&writer.store));

    // What follows it is read; and an update is as good as the first copy.
    let before = records(one.as_ref(), &todo);
    writer.lines(&["两只金丝雀飞走了"]);
    let later = tempfile::tempdir().unwrap();
    assert_eq!(read_by_first_search(&other, &on(&other, later.path()), &todo), 3);
    assert!(writer.store.maintain(&todo).unwrap().published);
    let after = records(one.as_ref(), &todo);
    let kept = before.keys().filter(|n| **n > 1 && after.get(n) == before.get(n)).count();
    assert!(kept > 0 && after.len() > before.len(), "an update adds to what is there");
    let last = tempfile::tempdir().unwrap();
    let store = on(&other, last.path());
    assert_eq!(read_by_first_search(&other, &store, &todo), 0);
    assert_eq!(store.doctor(&todo, false).unwrap(), []);
    assert!(!writer.store.maintain(&todo).unwrap().published, "nothing has changed");

    // The machine that took it goes on with it, and the first one takes it back.
    let mut second = Writer::on(other.clone(), Some(last.path()), eager(), "t");
    second.lines(&["三只金丝雀回来了"]);
    assert!(second.store.maintain(&todo).unwrap().published);
    let again = tempfile::tempdir().unwrap();
    assert_eq!(read_by_first_search(&one, &on(&one, again.path()), &todo), 0);
    assert_eq!(one.check().unwrap(), []);

    // It is forgotten with everything else.
    Registry::new(one.clone()).remove(&todo, writer.store.forget(&todo)).unwrap();
    assert_eq!(records(other.as_ref(), &todo), BTreeMap::new());
    assert!(!second.store.maintain(&todo).unwrap().published);
    assert_eq!(records(other.as_ref(), &todo), BTreeMap::new());
    assert_eq!(one.check().unwrap(), []);
}

#[test]
fn a_copy_is_taken_from_any_shared_store() {
    a_copy_is_taken(Machine::together());
}

#[test]
fn a_copy_in_an_encrypted_store_is_taken() {
    let (kv, key) = (foldback_kv::memory(), EncryptionKey::new([7; 32]));
    let machines = [(); 2].map(|()| {
        let kv = foldback_kv::seal(kv.clone(), None, Mode::ReadWrite, &key).unwrap();
        Machine::new(kv, None)
    });
    a_copy_is_taken(machines);
}

/// PG12: a machine takes the index that another one built from the database, and reads none of its blocks; plain,
/// encrypted, and of a tenant.
#[cfg(feature = "postgres")]
#[test]
fn pg12_a_machine_takes_the_index_of_another() {
    use foldback_kv::{Server as Address, open_with};
    use foldback_testkit::postgres::Server;
    let name = "pg12_a_machine_takes_the_index_of_another";
    let Some(server) = Server::start(name) else { return };
    let folders = tempfile::tempdir().unwrap();
    let key = EncryptionKey::new([7; 32]);
    let acme = foldback_core::TenantId::new("acme").unwrap();
    for (n, (key, tenant)) in
        [(None, None), (Some(&key), None), (None, Some(acme))].into_iter().enumerate()
    {
        let address = Address::new(server.database());
        if let Some(tenant) = &tenant {
            address.add_tenant(tenant).unwrap();
        }
        let address = address.with_tenant(tenant);
        let machines = ["one", "other"].map(|name| {
            let dir = folders.path().join(format!("{n}-{name}"));
            let kv = open_with(&dir, address.clone(), Mode::ReadWrite, key).unwrap();
            assert!(kv.shares_derived());
            Machine::new(kv, None)
        });
        a_copy_is_taken(machines);
    }
}

/// A copy that is not whole, not of this format, or not of this truth is ignored, and written anew.
#[test]
fn a_copy_that_cannot_be_used_is_written_anew() {
    type Spoil = fn(&dyn Kv, &Todo, BTreeMap<u64, Vec<u8>>);
    let spoil: [(&str, Spoil); 5] = [
        ("a chunk is missing", |kv, todo, all| {
            let key = Key { space: Space::Index, todo: todo.no(), n: *all.keys().last().unwrap() };
            kv.commit(Batch { delete: vec![Delete::one(key)], ..Batch::default() }).unwrap();
        }),
        ("a chunk is damaged", |kv, todo, mut all| {
            let (n, mut chunk) = all.pop_last().unwrap();
            let middle = chunk.len() / 2;
            chunk[middle] ^= 1;
            put(kv, todo, n, chunk);
        }),
        ("a chunk is cut off", |kv, todo, mut all| {
            let (n, mut chunk) = all.pop_last().unwrap();
            chunk.pop();
            put(kv, todo, n, chunk);
        }),
        ("the head is cut off", |kv, todo, mut all| {
            let mut head = all.remove(&1).unwrap();
            head.pop();
            put(kv, todo, 1, head);
        }),
        ("the format is an older one", |kv, todo, mut all| {
            let mut head = all.remove(&1).unwrap();
            head[4] -= 1;
            put(kv, todo, 1, head);
        }),
    ];
    for (what, spoil) in spoil {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [one, other] = Machine::together();
        let mut writer = write(&one, here.path());
        let todo = writer.todo.clone();
        spoil(one.as_ref(), &todo, records(one.as_ref(), &todo));
        let store = on(&other, there.path());
        assert!(read_by_first_search(&other, &store, &todo) > 100, "{what}");
        assert!(!there.path().join("1/tantivy").exists(), "{what}: nothing of it stays");
        writer.lines(&["金丝雀又唱歌了"]);
        assert!(writer.store.maintain(&todo).unwrap().published, "{what}");
        let later = tempfile::tempdir().unwrap();
        assert_eq!(read_by_first_search(&other, &on(&other, later.path()), &todo), 0, "{what}");
    }
}

/// A copy that a later program wrote stays as it is, and is not used.
#[test]
fn a_copy_of_a_later_program_is_left_alone() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [one, other] = Machine::together();
    let mut writer = write(&one, here.path());
    let todo = writer.todo.clone();
    let mut head = records(one.as_ref(), &todo).remove(&1).unwrap();
    head[4] += 1;
    put(one.as_ref(), &todo, 1, head);
    let before = records(one.as_ref(), &todo);
    assert!(read_by_first_search(&other, &on(&other, there.path()), &todo) > 100);
    writer.lines(&["金丝雀又唱歌了"]);
    assert!(!writer.store.maintain(&todo).unwrap().published);
    assert_eq!(records(one.as_ref(), &todo), before);
}

/// A copy that holds more blocks than the truth is not taken.
#[test]
fn a_copy_that_is_ahead_of_the_truth_is_not_taken() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [one, other] = Machine::together();
    let writer = write(&one, here.path());
    let todo = writer.todo.clone();
    let last = writer.store.last_block(&todo).unwrap().unwrap().header.block_id.n();
    let gone = Delete { space: Space::Block, todo: todo.no(), range: u64::from(last)..Key::N_END };
    one.commit(Batch { delete: vec![gone], ..Batch::default() }).unwrap();
    let store = on(&other, there.path());
    assert_eq!(store.searcher(&todo).unwrap().blocks(), last - 1);
    assert!(!there.path().join("1/tantivy").exists());
}

/// A copy whose blocks are not those of the truth stays neither in the folder nor in the store.
#[test]
fn a_copy_of_another_truth_is_removed() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [one, other] = Machine::together();
    let writer = write(&one, here.path());
    let todo = writer.todo.clone();
    let last = u64::from(writer.store.last_block(&todo).unwrap().unwrap().header.block_id.n());
    let at = |n: u64| Key { space: Space::Block, todo: todo.no(), n };
    let earlier = one.get(at(last - 1)).unwrap().unwrap();
    one.commit(Batch { put: vec![(at(last), earlier)], ..Batch::default() }).unwrap();
    let store = on(&other, there.path());
    assert_eq!(store.searcher(&todo).unwrap().blocks_on_disk(), 0);
    assert!(!there.path().join("1/tantivy").exists());
    assert_eq!(records(other.as_ref(), &todo), BTreeMap::new());
    let made = store.maintain(&todo).unwrap();
    assert!(made.indexed > 0 && made.published && !made.ahead, "{made:?}");
    let findings = store.doctor(&todo, false).unwrap();
    assert!(findings.iter().all(|found| found.kind == FindingKind::Block), "{findings:?}");
}

/// Two machines that build the same index, each on its own, and publish it at once, leave one copy that is whole.
#[test]
fn two_writers_leave_a_whole_copy() {
    for round in 0..6 {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [one, other, reader] = Machine::together();
        let mut writer = Writer::on(one.clone(), None, IndexConfig::default(), "t");
        writer.fill(round, 200).lines(&["金丝雀"]);
        let todo = writer.todo.clone();
        let stores = [on(&one, folders[0].path()), on(&other, folders[1].path())];
        let published = std::thread::scope(|scope| {
            let both = stores.each_ref().map(|store| {
                let todo = &todo;
                scope.spawn(move || store.maintain(todo).unwrap().published)
            });
            both.map(|thread| thread.join().unwrap())
        });
        assert!(published.contains(&true), "{published:?}");
        let store = on(&reader, folders[2].path());
        assert_eq!(read_by_first_search(&reader, &store, &todo), 0);
        assert_eq!(store.doctor(&todo, false).unwrap(), []);
    }
}

/// What a writer leaves that is interrupted goes with the next copy; until then the earlier one counts, or none.
#[test]
fn what_an_interrupted_writer_leaves_is_removed() {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let [one, other] = Machine::together();
    let mut writer = write(&one, folders[0].path());
    let todo = writer.todo.clone();
    // An index of several megabytes, which takes several commits.
    writer.embedder = None;
    let mut random = Random::new(7);
    for _ in 0..5_000 {
        let words: Vec<_> = (0..40).map(|_| format!("w{:x}", random.below(1 << 60))).collect();
        writer.say(&words.join(" ")).close();
    }
    writer.lines(&["金丝雀"]);
    let before = records(one.as_ref(), &todo);
    one.commits.store(1, Ordering::Relaxed);
    assert!(!writer.store.maintain(&todo).unwrap().published, "the index is there all the same");
    assert!(writer.store.searcher(&todo).unwrap().blocks_on_disk() > 5_000);
    one.commits.store(usize::MAX, Ordering::Relaxed);
    let left = records(one.as_ref(), &todo);
    assert!(left.len() > before.len(), "some chunks are there");
    let store = on(&other, folders[1].path());
    assert!(read_by_first_search(&other, &store, &todo) > 5_000);
    assert!(store.searcher(&todo).unwrap().blocks_on_disk() > 0, "the earlier copy counts");
    assert_eq!(store.doctor(&todo, false).unwrap(), []);

    assert!(on(&one, folders[0].path()).maintain(&todo).unwrap().published);
    let now: Vec<u64> = records(one.as_ref(), &todo).into_keys().skip(1).collect();
    assert!(now.len() > left.len() && now.is_sorted_by(|a, b| a + 1 == *b), "{now:?}");
    let store = on(&other, folders[2].path());
    assert_eq!(read_by_first_search(&other, &store, &todo), 0);

    // Chunks that no head names.
    let head = Key { space: Space::Index, todo: todo.no(), n: 1 };
    one.commit(Batch { delete: vec![Delete::one(head)], ..Batch::default() }).unwrap();
    put(one.as_ref(), &todo, 500, b"left".to_vec());
    writer.lines(&["金丝雀、金丝雀、金丝雀"]);
    assert!(writer.store.maintain(&todo).unwrap().published);
    assert!(!records(one.as_ref(), &todo).contains_key(&500));
    let store = on(&other, folders[3].path());
    assert_eq!(read_by_first_search(&other, &store, &todo), 0);
    assert_eq!(one.check().unwrap(), []);
}

/// A damaged copy is a finding of the doctor, who removes it.
#[test]
fn the_doctor_removes_a_damaged_copy() {
    let dir = tempfile::tempdir().unwrap();
    let [one] = Machine::together();
    let mut writer = write(&one, dir.path());
    let todo = writer.todo.clone();
    assert_eq!(writer.store.doctor(&todo, true).unwrap(), []);
    let (n, mut chunk) = records(one.as_ref(), &todo).pop_last().unwrap();
    chunk[9] ^= 1;
    put(one.as_ref(), &todo, n, chunk);
    for repair in [false, true] {
        let findings = writer.store.doctor(&todo, repair).unwrap();
        let found: Vec<_> = findings.iter().map(|found| (found.kind, found.repaired)).collect();
        assert_eq!(found, [(FindingKind::IndexDamaged, repair)]);
    }
    assert_eq!(records(one.as_ref(), &todo), BTreeMap::new());
    assert_eq!(writer.store.doctor(&todo, false).unwrap(), []);
    writer.lines(&["金丝雀又唱歌了"]);
    assert!(writer.store.maintain(&todo).unwrap().published);
    // In a store that is not shared, nothing takes it.
    let store = BlockStore::open(one.kv.clone(), Some(dir.path().into()), eager()).unwrap();
    assert_eq!(store.doctor(&todo, true).unwrap(), []);
    assert_eq!(records(one.as_ref(), &todo), BTreeMap::new());
}

/// A todo that is forgotten while its index is being published leaves no record of it.
#[test]
fn forgetting_wins_over_a_writer() {
    for round in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = Machine::together();
        let mut writer = Writer::on(one.clone(), Some(dir.path()), eager(), "t");
        writer.fill(round, 100).commit();
        let todo = writer.todo.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(writer.store.maintain(&todo)));
            std::thread::sleep(std::time::Duration::from_millis(round * 4));
            Registry::new(other.clone()).remove(&todo, writer.store.forget(&todo)).unwrap();
        });
        assert_eq!(records(one.as_ref(), &todo), BTreeMap::new());
    }
}

/// An engine that is not shared gets no copy.
#[test]
fn an_engine_in_a_folder_gets_no_copy() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::on_disk(dir.path(), eager());
    writer.fill(7, 60).commit();
    assert!(!writer.store.maintain(&writer.todo).unwrap().published);
    assert_eq!(records(writer.kv.as_ref(), &writer.todo), BTreeMap::new());
}

/// R11, PG12: vectors that one machine replaced are not searched on another, whose folder has an index of the old ones.
#[test]
fn r11_an_index_of_replaced_vectors_is_made_again_on_every_machine() {
    let [one, two] = Machine::together();
    let (dir, other_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writer = write(&one, dir.path());
    let (store, todo) = (&writer.store, &writer.todo);
    let asked = |store: &BlockStore, embedder: &Bag| {
        let vectors = embedder.embed(&["word1 word2"]).unwrap();
        let request = SearchRequest::new("word1 word2").vector(embedder, vectors.row(0).unwrap());
        let searcher = store.searcher(todo).unwrap();
        let side = searcher.search(&request).unwrap()[0].explanation.vectors.clone();
        (searcher.blocks_on_disk() > 0, side)
    };
    let other = on(&two, other_dir.path());
    assert_eq!(asked(&other, &MODEL), (true, VectorSide::Used), "it took the copy");

    let messages = store.last_block(todo).unwrap().unwrap().range.last().0 + 1;
    let stored = store.messages(todo, 0..messages).unwrap();
    let new = Bag("other-48");
    let texts = stored.iter().map(|stored| new.embed(&[&format!("{:?}", stored.pieces)]).unwrap());
    let vectors: Vec<_> = (0..).map(SeqNo).zip(texts).collect();
    store.replace_vectors(todo, new.0, &vectors, messages).unwrap();
    assert!(store.finish_vectors(todo, &|| false).unwrap());

    assert_eq!(asked(&other, &new), (false, VectorSide::Used), "the old index is not searched");
    assert_eq!(other.doctor(todo, false).unwrap(), Vec::new());
    let made = other.maintain(todo).unwrap();
    let dropped = made.dropped.as_deref();
    assert_eq!(dropped, Some("its vectors were replaced on another machine"), "{made:?}");
    assert!(made.published);
    assert_eq!(asked(&other, &new), (true, VectorSide::Used));
    // A node that knew it before the replacement and is asked for the first time since.
    assert_eq!(asked(store, &new).1, VectorSide::Used);
}
