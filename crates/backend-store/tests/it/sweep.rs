//! Sweeps what crashes and forgetting leave behind.

use crate::world::{World, noise};
use foldback_backend_store::{BackendConfig, BackendStore, Error};
use foldback_kv::{Batch, Expect, Registry};
use std::{
    fs,
    time::{Duration, SystemTime},
};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn r1_sweeping_takes_orphans_and_nothing_else() {
    let world = World::new();
    let kept = noise(100_000, 1);
    world.put(&kept);
    world.put(b"a record");
    let mut pending = world.store.begin(&world.todo).unwrap();
    world.store.prepare(&mut pending, &noise(100_000, 2)).unwrap();
    drop(pending);
    let root = world.dir.path().join("payloads").join(world.todo.no().to_string());
    fs::write(root.join("new-77-1"), "cut short").unwrap();
    fs::write(root.join("notes.txt"), "of a person").unwrap();
    fs::write(root.join("ab"), "no folder").unwrap();
    let other = world.another("other");
    world.put_in(&other, &noise(100_000, 3));
    let all = world.files();

    // Young files belong to a writer that is still working.
    let now = SystemTime::now();
    assert_eq!(world.store.sweep(&world.todo, HOUR, now).unwrap(), 0);
    assert_eq!(world.files(), all);
    let later = now + HOUR + HOUR;
    assert_eq!(world.store.sweep(&other, HOUR, later).unwrap(), 0);
    assert_eq!(world.store.sweep(&world.todo, HOUR, later).unwrap(), 2);
    assert_eq!(world.store.sweep(&world.todo, HOUR, later).unwrap(), 0);
    assert_eq!(world.files().len(), all.len() - 2);
    assert!(world.get(1).unwrap() == kept);
    assert!(root.join("notes.txt").exists() && root.join("ab").exists());
}

#[test]
fn r1_an_orphan_that_is_used_again_is_young_again() {
    let world = World::new();
    let bytes = noise(100_000, 1);
    let prepare = || {
        let mut pending = world.store.begin(&world.todo).unwrap();
        world.store.prepare(&mut pending, &bytes).unwrap();
        pending
    };
    drop(prepare());
    let day = SystemTime::now() - 24 * HOUR;
    let file = world.files().remove(0);
    fs::File::options().write(true).open(&file).unwrap().set_modified(day).unwrap();
    let pending = prepare();
    assert_eq!(world.store.sweep(&world.todo, HOUR, SystemTime::now()).unwrap(), 0);
    world.kv.commit(Batch { put: pending.into_puts(), ..Batch::default() }).unwrap();
    assert!(world.get(1).unwrap() == bytes);
    // Once committed, a file may be of any age.
    fs::File::options().write(true).open(&file).unwrap().set_modified(day).unwrap();
    assert_eq!(world.store.sweep(&world.todo, HOUR, SystemTime::now()).unwrap(), 0);
}

#[test]
fn s9_forgetting_leaves_no_file_and_no_record() {
    let world = World::new();
    let other = world.another("other");
    for seed in 0..5 {
        world.put(&noise(100_000, seed));
        world.put(&noise(100, seed));
    }
    world.put_in(&other, &noise(100_000, 1));
    let deletes = world.store.forget(&world.todo);
    // The batch may never be committed, so until then nothing is removed.
    assert_eq!(world.store.verify(&world.todo).unwrap(), []);
    Registry::new(world.kv.clone()).remove(&world.todo, deletes).unwrap();
    assert_eq!(world.files().len(), 6);
    world.store.remove_files(&world.todo).unwrap();
    assert_eq!(world.files().len(), 1);
    assert!(matches!(world.get(1), Err(Error::NotFound { .. })));
    assert_eq!(world.store.verify(&world.todo).unwrap(), []);
    assert!(world.store.get(&other, 1).is_ok());
    // Forgetting a forgotten todo is not an error.
    world.store.remove_files(&world.todo).unwrap();
}

#[test]
fn s9_a_crash_before_the_files_are_removed_leaves_them_to_the_sweep() {
    let world = World::new();
    let other = world.another("other");
    world.put(&noise(100_000, 1));
    world.put_in(&other, &noise(100_000, 1));
    let registry = Registry::new(world.kv.clone());
    registry.remove(&world.todo, world.store.forget(&world.todo)).unwrap();
    assert_eq!(world.files().len(), 2);
    let lives = |no| Ok(no == other.no());
    assert_eq!(world.store.sweep_forgotten(lives).unwrap(), 1);
    assert_eq!(world.files().len(), 1);
    assert_eq!(world.store.verify(&other).unwrap(), []);
}

#[test]
fn s9_what_a_late_writer_left_of_a_forgotten_todo_is_swept() {
    let world = World::new();
    world.put_in(&world.another("other"), &noise(100_000, 1));
    world.put(&noise(100_000, 1));
    let mut late = world.store.begin(&world.todo).unwrap();
    let head = world.kv.head(world.todo.no()).unwrap();
    let registry = Registry::new(world.kv.clone());
    registry.remove(&world.todo, world.store.forget(&world.todo)).unwrap();
    world.store.remove_files(&world.todo).unwrap();
    world.store.prepare(&mut late, &noise(100_000, 2)).unwrap();
    let expect = Some(Expect { todo: world.todo.no(), head, next: head + 1 });
    assert!(world.kv.commit(Batch { expect, put: late.into_puts(), delete: vec![] }).is_err());
    assert_eq!(world.files().len(), 2);

    let lives = |no: u32| {
        let next = registry.list(no - 1, 1)?;
        Ok(next.first().is_some_and(|todo| todo.no() == no))
    };
    assert_eq!(world.store.sweep_forgotten(lives).unwrap(), 1);
    assert_eq!(world.files().len(), 1);
    assert_eq!(world.store.sweep_forgotten(lives).unwrap(), 0);
}

#[test]
fn a_backup_has_every_file() {
    let world = World::new();
    let other = world.another("other");
    world.put(&noise(300_000, 1));
    world.put(&"文字\n".repeat(100_000).into_bytes());
    world.put_in(&other, &noise(100_000, 1));
    let to = world.dir.path().join("backup").join("payloads");
    assert_eq!(world.store.backup(&to).unwrap(), 3);
    let copy = BackendStore::open(world.kv.clone(), Some(to), BackendConfig::default()).unwrap();
    assert_eq!(copy.verify(&world.todo).unwrap(), []);
    assert_eq!(copy.verify(&other).unwrap(), []);
    assert!(copy.get(&world.todo, 1).unwrap() == noise(300_000, 1));
}

#[test]
fn a_backup_goes_on_when_a_todo_is_forgotten_under_it() {
    let world = World::new();
    let kept = world.another("kept");
    world.put_in(&kept, &noise(100_000, 1));
    let todos: Vec<_> = (0..40).map(|i| world.another(&format!("gone{i}"))).collect();
    for todo in &todos {
        for seed in 0..3 {
            world.put_in(todo, &noise(70_000, seed));
        }
    }
    let to = world.dir.path().join("backup");
    std::thread::scope(|scope| {
        // From the last one on: the copy has seen that folder, but has not reached it.
        scope.spawn(|| {
            for todo in todos.iter().rev() {
                world.store.remove_files(todo).unwrap();
            }
        });
        world.store.backup(&to).unwrap();
    });
    let copy = BackendStore::open(world.kv.clone(), Some(to), BackendConfig::default()).unwrap();
    assert_eq!(copy.verify(&kept).unwrap(), []);
    let findings = copy.verify(&todos[39]).unwrap();
    assert!(findings.iter().all(|found| found.what == "its file is missing"), "{findings:?}");
}

#[test]
fn many_writers_of_one_payload_leave_one_file() {
    let world = World::new();
    let bytes = noise(500_000, 1);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                // Each with a store of its own, as processes have.
                let files = world.dir.path().join("payloads");
                let config = BackendConfig::default();
                let store = BackendStore::open(world.kv.clone(), Some(files), config).unwrap();
                loop {
                    let head = world.kv.head(world.todo.no()).unwrap();
                    let mut pending = store.begin(&world.todo).unwrap();
                    store.prepare(&mut pending, &bytes).unwrap();
                    let expect = Some(Expect { todo: world.todo.no(), head, next: head + 1 });
                    let put = pending.into_puts();
                    if world.kv.commit(Batch { expect, put, delete: vec![] }).is_ok() {
                        break;
                    }
                }
                assert!(store.get(&world.todo, 1).unwrap() == bytes);
            });
        }
    });
    assert_eq!(world.files().len(), 1);
    assert_eq!(world.store.usage(&world.todo).unwrap().payloads, 1);
}
