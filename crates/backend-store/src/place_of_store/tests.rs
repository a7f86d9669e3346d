//! Stores whose payloads are in a folder elsewhere.

#![cfg(all(unix, feature = "objects"))]

use crate::folder::{Folder, hex};
use crate::payload_files::PayloadFiles as _;
use crate::place_note::{NOTES, PlaceNote};
use crate::{BackendConfig, BackendStore, Error, Meta, PayloadPlace};
use foldback_core::TodoId;
use foldback_kv::{Batch, Expect, Kv, Mode, Registry, Todo};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

struct World {
    dir: tempfile::TempDir,
    kv: Arc<dyn Kv>,
    todo: Todo,
}

impl World {
    fn new() -> Self {
        let kv = foldback_kv::memory();
        let todo = TodoId::new("todo001").unwrap();
        let todo = Registry::new(kv.clone()).create(&todo, b"").unwrap();
        Self { dir: tempfile::tempdir().unwrap(), kv, todo }
    }

    fn open(&self, place: Option<&str>, mode: Mode) -> Result<BackendStore, Error> {
        self.open_in("store/payloads", place, mode)
    }

    fn open_in(&self, own: &str, place: Option<&str>, mode: Mode) -> Result<BackendStore, Error> {
        let place = place.map(|name| {
            let address = format!("file://{}", self.dir.path().join(name).display());
            address.parse::<PayloadPlace>().unwrap()
        });
        let own = self.dir.path().join(own);
        BackendStore::open_at(self.kv.clone(), own, place.as_ref(), mode, BackendConfig::default())
    }

    fn put(&self, store: &BackendStore, bytes: &[u8]) -> Meta {
        let head = self.kv.head(self.todo.no()).unwrap();
        let mut pending = store.begin(&self.todo).unwrap();
        let prepared = store.prepare(&mut pending, bytes).unwrap();
        let expect = Some(Expect { todo: self.todo.no(), head, next: head + 1 });
        self.kv.commit(Batch { expect, put: pending.into_puts(), delete: vec![] }).unwrap();
        prepared.meta
    }

    fn note(&self) -> Option<PlaceNote> {
        PlaceNote::read(self.kv.as_ref()).unwrap()
    }

    #[track_caller]
    fn refused(&self, place: Option<&str>, why: &str) {
        match self.open(place, Mode::ReadWrite).map(drop) {
            Err(Error::Config { what }) => assert!(what.contains(why), "{what}"),
            other => panic!("{other:?}"),
        }
    }
}

fn bytes() -> Vec<u8> {
    (0..200_000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect()
}

#[test]
fn bs9_a_store_keeps_its_payloads_at_one_place() {
    let world = World::new();
    let store = world.open(Some("elsewhere"), Mode::ReadWrite).unwrap();
    world.put(&store, &bytes());
    assert!(!world.dir.path().join("store").exists());
    world.refused(None, "name that place (--payloads file:///");
    world.refused(Some("other"), "there are none of it");
    let again = world.open(Some("elsewhere"), Mode::ReadOnly).unwrap();
    assert!(again.get(&world.todo, 1).unwrap() == bytes());

    // A place that was moved is the same place.
    std::fs::rename(world.dir.path().join("elsewhere"), world.dir.path().join("other")).unwrap();
    let moved = world.open(Some("other"), Mode::ReadWrite).unwrap();
    assert!(moved.get(&world.todo, 1).unwrap() == bytes());
    world.refused(Some("elsewhere"), "/other, and there are none of it at file:///");
    world.refused(None, "/other)");
    moved.remove_files(&world.todo).unwrap();
    assert!(matches!(moved.get(&world.todo, 1), Err(Error::Corrupt { n: 1, .. })));
}

#[test]
fn bs9_a_folder_that_is_not_mounted_is_no_empty_place() {
    let world = World::new();
    world.put(&world.open(Some("mounted"), Mode::ReadWrite).unwrap(), &bytes());
    let (mounted, away) = (world.dir.path().join("mounted"), world.dir.path().join("away"));
    std::fs::rename(&mounted, &away).unwrap();
    std::fs::create_dir(&mounted).unwrap();
    world.refused(Some("mounted"), "there are none of it at");
    assert_eq!(std::fs::read_dir(&mounted).unwrap().count(), 0);
}

#[test]
fn bs9_a_process_that_knows_no_place_leaves_the_payloads_of_others_alone() {
    let world = World::new();
    let [early, reader] =
        [Mode::ReadWrite, Mode::ReadOnly].map(|mode| world.open(None, mode).unwrap());
    let meta = world.put(&world.open(Some("elsewhere"), Mode::ReadWrite).unwrap(), &bytes());
    for store in [&early, &reader] {
        let error = store.get(&world.todo, meta.n).unwrap_err();
        assert!(matches!(&error, Error::Config { what } if what.contains("open it again")));
    }
    let mut pending = early.begin(&world.todo).unwrap();
    let error = early.prepare(&mut pending, &bytes()[..]).map(drop).unwrap_err();
    assert!(matches!(error, Error::Config { .. }), "{error}");
    assert_eq!(early.meta(&world.todo, meta.n).unwrap(), meta);
}

#[test]
fn bs9_two_stores_at_one_place_share_nothing() {
    let (one, two) = (World::new(), World::new());
    let place = one.dir.path().join("elsewhere").display().to_string();
    let place: PayloadPlace = format!("file://{place}").parse().unwrap();
    let open = |world: &World| {
        let own = world.dir.path().join("payloads");
        let config = BackendConfig::default();
        BackendStore::open_at(world.kv.clone(), own, Some(&place), Mode::ReadWrite, config).unwrap()
    };
    let stores = [open(&one), open(&two)];
    one.put(&stores[0], &bytes());
    two.put(&stores[1], &bytes());
    stores[0].remove_files(&one.todo).unwrap();
    assert!(stores[1].get(&two.todo, 1).unwrap() == bytes());
}

#[test]
fn bs9_what_is_in_the_folder_stays_readable_there() {
    let world = World::new();
    let before = world.put(&world.open(None, Mode::ReadWrite).unwrap(), &bytes());
    let store = world.open(Some("elsewhere"), Mode::ReadWrite).unwrap();
    assert!(store.get(&world.todo, before.n).unwrap() == bytes());
    let after = world.put(&store, &bytes()[1..]);
    assert_eq!(world.put(&store, &bytes()).n, before.n);
    let files = |name: &str| {
        let folder = Folder::new(world.dir.path().join(name));
        folder.list(world.todo.no()).unwrap().len()
    };
    let elsewhere = format!("elsewhere/{}", hex(&world.note().unwrap().id));
    assert_eq!((files("store/payloads"), files(&elsewhere)), (1, 1));
    // A sweep keeps both, and a copy has both.
    let later = SystemTime::now() + Duration::from_secs(90 * 24 * 3600);
    assert_eq!(store.sweep(&world.todo, Duration::ZERO, later).unwrap(), 0);
    let copy = world.dir.path().join("copy/payloads");
    assert_eq!(store.backup(&copy).unwrap(), 2);
    assert!(store.verify(&world.todo).unwrap().is_empty());
    // A machine whose folder has nothing of it finds what was put at the place, and can put the rest there.
    let place = Some("elsewhere");
    let other = world.open_in("other/payloads", place, Mode::ReadWrite).unwrap();
    assert!(other.get(&world.todo, after.n).unwrap() == bytes()[1..]);
    assert!(matches!(other.get(&world.todo, before.n), Err(Error::Corrupt { .. })));
    assert_eq!(world.put(&other, &bytes()).n, before.n);
    assert!(other.verify(&world.todo).unwrap().is_empty());
    store.remove_files(&world.todo).unwrap();
    assert_eq!((files("store/payloads"), files(&elsewhere)), (0, 0));
}

#[test]
fn bs9_a_copy_has_its_payloads_in_its_folder() {
    let world = World::new();
    let store = world.open(Some("elsewhere"), Mode::ReadWrite).unwrap();
    world.put(&store, &bytes());
    let copy = world.dir.path().join("copy/payloads");
    assert_eq!(store.backup(&copy).unwrap(), 1);
    assert!(copy.join("COPY").is_file());
    let copied = world.open_in("copy/payloads", None, Mode::ReadWrite).unwrap();
    store.remove_files(&world.todo).unwrap();
    assert!(copied.get(&world.todo, 1).unwrap() == bytes());
    let error = world.open_in("copy/payloads", Some("elsewhere"), Mode::ReadWrite).map(drop);
    assert!(error.unwrap_err().to_string().contains("is a copy"));
    // The copy of a copy is one, too.
    let second = world.dir.path().join("second/payloads");
    copied.backup(&second).unwrap();
    assert!(
        world.open_in("second/payloads", None, Mode::ReadOnly).unwrap().get(&world.todo, 1).is_ok()
    );
}

#[test]
fn bs9_one_damaged_note_of_two_is_enough() {
    let world = World::new();
    world.put(&world.open(Some("elsewhere"), Mode::ReadWrite).unwrap(), &bytes());
    let note = world.note();
    for key in NOTES {
        let value = world.kv.get(key).unwrap().unwrap();
        let put = vec![(key, b"nonsense".to_vec())];
        world.kv.commit(Batch { put, ..Batch::default() }).unwrap();
        assert_eq!(world.note(), note);
        world.kv.commit(Batch { put: vec![(key, value)], ..Batch::default() }).unwrap();
    }
    let put = NOTES.map(|key| (key, b"nonsense".to_vec())).to_vec();
    world.kv.commit(Batch { put, ..Batch::default() }).unwrap();
    let error = world.open(Some("elsewhere"), Mode::ReadWrite).map(drop).unwrap_err();
    assert!(error.to_string().contains("where payloads are kept"), "{error}");
}

#[test]
fn bs9_processes_that_open_a_new_store_at_once_agree() {
    let world = World::new();
    let stores: Vec<BackendStore> = std::thread::scope(|scope| {
        let open = || world.open(Some("elsewhere"), Mode::ReadWrite).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    world.put(&stores[0], &bytes());
    assert!(stores.iter().all(|store| store.get(&world.todo, 1).unwrap() == bytes()));
}

#[test]
fn bs9_of_two_places_that_are_named_at_once_one_is_the_store_s() {
    for _ in 0..20 {
        let world = World::new();
        let barrier = std::sync::Barrier::new(2);
        let opened: Vec<bool> = std::thread::scope(|scope| {
            let open = |place| {
                barrier.wait();
                world.open(Some(place), Mode::ReadWrite).is_ok()
            };
            let threads = ["one", "two"].map(|place| scope.spawn(move || open(place)));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(opened.iter().filter(|is_open| **is_open).count(), 1);
    }
}
