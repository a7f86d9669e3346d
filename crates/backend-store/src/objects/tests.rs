//! Payloads in object stores that need no network.

mod failing;
#[cfg(feature = "objects-s3")]
mod s3_server;
mod world;

use super::*;
use crate::payload_files::conformance::{bytes_of, holds, named, put, try_put};
use crate::{BackendConfig, BackendStore};
use failing::Failing;
use foldback_kv::Registry;
use object_name::text;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::multipart::MultipartStore as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use std::io::ErrorKind;
use world::{ID, World, block_on, noise, objects_in, service};

/// More than two parts of an upload.
const LARGE: usize = 20 << 20;

#[test]
fn bs9_a_store_in_memory_is_a_place_for_files() {
    holds(&objects_in(&Arc::new(InMemory::new())), LARGE);
}

#[test]
fn bs9_a_store_without_uploads_in_parts_is_a_place_for_files() {
    let whole = Service { parts: None, ..service(&Arc::new(InMemory::new())) };
    holds(&Objects::open(whole, &ID, None).unwrap(), LARGE);
}

#[test]
fn bs9_a_local_file_system_is_a_place_for_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalFileSystem::new_with_prefix(dir.path()).unwrap();
    let store = store.with_fsync(true).with_automatic_cleanup(true);
    let service = Service {
        store: Arc::new(store),
        parts: None,
        prefix: "team/payloads".to_owned(),
        shown: "file://".to_owned(),
    };
    holds(&Objects::open(service, &ID, None).unwrap(), LARGE);
    assert!(dir.path().join("team/payloads").join(text(&ID)).join("STORE").is_file());
}

#[test]
fn bs9_payloads_come_back_and_every_read_is_checked() {
    let world = World::new();
    let (large, small) = (noise(LARGE, 1), noise(300_000, 2));
    for bytes in [&large, &small] {
        let meta = world.put(bytes);
        assert!(meta.in_file());
        assert!(world.store.get(&world.todo, meta.n).unwrap() == *bytes);
        let part = world.store.read_range(&world.todo, meta.n, 100_000..200_000).unwrap();
        assert!(part == bytes[100_000..200_000]);
    }
    assert_eq!(world.put(&small).n, 2, "equal bytes are stored once");
    assert!(world.store.verify(&world.todo).unwrap().is_empty());

    // One byte, an end, everything: damage is that of its payload.
    let [path] = <[Path; 1]>::try_from(world.paths_of(2)).unwrap();
    let whole = world.read(&path);
    let mut flipped = whole.clone();
    flipped[150_000] ^= 1;
    for (damaged, what) in [
        (Some(flipped), "do not match their checksum"),
        (Some(whole[..whole.len() - 1].to_vec()), "its file"),
        (Some(whole[..100].to_vec()), "its file is truncated"),
        (Some(Vec::new()), "its file is truncated"),
        (Some(noise(whole.len(), 9)), "its file"),
        (None, "its file is missing"),
    ] {
        world.replace(&path, damaged);
        let error = world.store.get(&world.todo, 2).unwrap_err();
        assert!(matches!(error, Error::Corrupt { n: 2, .. }), "{error}");
        let findings = world.store.verify(&world.todo).unwrap();
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().contains(what), "{} for {what}", findings[0]);
        assert!(world.store.get(&world.todo, 1).unwrap() == large);
    }

    // The same bytes make it whole again, under its number.
    assert_eq!(world.put(&small).n, 2);
    assert!(world.store.get(&world.todo, 2).unwrap() == small);
    assert!(world.store.verify(&world.todo).unwrap().is_empty());
}

#[test]
fn bs9_a_commit_that_failed_uses_its_object_again() {
    let world = World::new();
    let bytes = noise(200_000, 1);
    for _ in 0..3 {
        let mut pending = world.store.begin(&world.todo).unwrap();
        world.store.prepare(&mut pending, &bytes).unwrap();
    }
    assert_eq!(world.paths().len(), 1);
    world.put(&bytes);
    assert_eq!(world.paths().len(), 1);
    assert!(world.store.get(&world.todo, 1).unwrap() == bytes);
}

#[test]
fn bs9_a_sweep_never_takes_what_another_writer_puts_again() {
    let world = World::new();
    let bytes = noise(200_000, 1);
    // A process that ended before its commit.
    {
        let ended = world.another_process();
        let mut pending = ended.begin(&world.todo).unwrap();
        ended.prepare(&mut pending, &bytes).unwrap();
    }
    let orphan = world.paths();
    assert_eq!(orphan.len(), 1);
    // Another one stores the same bytes under a name of its own.
    let head = world.kv.head(world.todo.no()).unwrap();
    let mut pending = world.store.begin(&world.todo).unwrap();
    world.store.prepare(&mut pending, &bytes).unwrap();
    assert_eq!(world.paths().len(), 2);
    // A day is not over: neither is taken, however short an age is asked for.
    let now = SystemTime::now();
    assert_eq!(world.store.sweep(&world.todo, Duration::ZERO, now + GRACE / 2).unwrap(), 0);
    world.commit(head, pending);
    // A day later the orphan is taken, and the payload stays.
    assert_eq!(world.store.sweep(&world.todo, Duration::ZERO, now + GRACE * 2).unwrap(), 1);
    assert!(world.paths().iter().all(|path| !orphan.contains(path)));
    assert!(world.store.get(&world.todo, 1).unwrap() == bytes);
}

#[test]
fn bs9_ages_are_by_the_clock_of_the_service() {
    let memory = Arc::new(InMemory::new());
    let objects = objects_in(&memory);
    let there = objects.client.time_there(SystemTime::now() + GRACE).unwrap();
    let ahead = there.duration_since(SystemTime::now()).unwrap();
    assert!(ahead > GRACE - Duration::from_secs(60) && ahead <= GRACE);
}

#[test]
fn s9_forgetting_a_todo_removes_its_objects_and_the_parts_of_uploads() {
    let world = World::new();
    let other = world.another("other");
    for seed in 0..3 {
        world.put(&noise(200_000, seed));
    }
    world.put_in(&other, &noise(200_000, 1));
    // A writer that was killed within an upload.
    let (path, id) = world.killed_upload();
    assert!(block_on(world.memory.put_part(&path, &id, 1, PutPayload::from_static(b"x"))).is_ok());

    let deletes = world.store.forget(&world.todo);
    Registry::new(world.kv.clone()).remove(&world.todo, deletes).unwrap();
    world.store.remove_files(&world.todo).unwrap();
    assert_eq!(world.paths().len(), 1);
    assert!(world.store.get(&other, 1).is_ok());
    // No part is left, and none can be added.
    assert!(block_on(world.memory.put_part(&path, &id, 2, PutPayload::from_static(b"x"))).is_err());
    world.store.remove_files(&world.todo).unwrap();
}

#[test]
fn s9_what_a_late_writer_put_for_a_forgotten_todo_is_swept() {
    let world = World::new();
    let mut late = world.store.begin(&world.todo).unwrap();
    world.put(&noise(200_000, 1));
    let deletes = world.store.forget(&world.todo);
    Registry::new(world.kv.clone()).remove(&world.todo, deletes).unwrap();
    world.store.remove_files(&world.todo).unwrap();
    world.store.prepare(&mut late, &noise(200_000, 2)).unwrap();
    assert_eq!(world.paths().len(), 1);
    assert_eq!(world.store.sweep_forgotten(|_| Ok(false)).unwrap(), 1);
    assert!(world.paths().is_empty());
}

#[test]
fn bs9_the_parts_of_a_dead_writer_are_swept_and_those_of_a_live_one_stay() {
    let world = World::new();
    world.put(&noise(200_000, 1));
    let (path, id) = world.killed_upload();
    let now = SystemTime::now();
    assert_eq!(world.store.sweep(&world.todo, Duration::ZERO, now + GRACE / 2).unwrap(), 0);
    assert!(block_on(world.memory.put_part(&path, &id, 1, PutPayload::from_static(b"x"))).is_ok());
    assert_eq!(world.store.sweep(&world.todo, Duration::ZERO, now + GRACE * 2).unwrap(), 1);
    assert!(block_on(world.memory.put_part(&path, &id, 2, PutPayload::from_static(b"x"))).is_err());
    assert!(world.store.verify(&world.todo).unwrap().is_empty());
}

#[test]
fn bs9_an_upload_leaves_no_note_behind() {
    let memory = Arc::new(InMemory::new());
    let objects = objects_in(&memory);
    put(&objects, 1, [1; 32], &bytes_of(LARGE));
    assert_eq!(objects.client.list(1).unwrap().len(), 1);
}

/// Any request may fail: the payload is not acknowledged, what was put stays readable, and the same again works.
#[test]
fn bs9_a_request_that_fails_is_an_error_and_loses_nothing() {
    for size in [200_000, LARGE] {
        for fails in 0..12 {
            let failing = Arc::new(Failing::new());
            let service = Service {
                store: failing.clone(),
                parts: Some(failing.clone()),
                prefix: String::new(),
                shown: "s3://bucket".to_owned(),
            };
            let objects = Objects::open(service, &ID, None).unwrap();
            let first = put(&objects, 1, [1; 32], b"put before");
            failing.fail_after(fails);
            let bytes = bytes_of(size);
            let done = try_put(&objects, 1, [2; 32], &bytes);
            let was_hit = failing.was_hit();
            failing.work_again();
            if let Err(error) = &done {
                assert!(was_hit, "{error}");
                assert!(matches!(error, Error::Io { .. }), "{error}");
                assert!(error.to_string().contains("s3://bucket/"), "{error}");
            }
            let again = put(&objects, 1, [2; 32], &bytes);
            for (hash, stored, bytes) in
                [([1; 32], first, &b"put before"[..]), ([2; 32], again, &bytes[..])]
            {
                let mut file = objects.open(&named(1, hash, &stored)).unwrap().unwrap();
                let mut found = vec![0; bytes.len()];
                file.read_at(0, &mut found).unwrap();
                assert!(found == bytes);
            }
            objects.forget(1).unwrap();
            assert!(objects.client.list(1).unwrap().is_empty());
            assert_eq!(failing.parts(), 0, "request {fails} of {size} bytes");
            if !was_hit {
                break;
            }
        }
    }
}

#[test]
fn bs9_an_object_of_somebody_else_is_left_alone() {
    let world = World::new();
    world.put(&noise(200_000, 1));
    let todo = world.base();
    for name in ["notes.txt", "upload-of-a-person", "upload-00000000000000000000000000"] {
        let path = Path::from(format!("{todo}/{}/{name}", world.todo.no()));
        block_on(world.memory.put(&path, PutPayload::from_static(b"{\"object\":\"elsewhere\"}")))
            .unwrap();
    }
    let later = SystemTime::now() + GRACE * 2;
    // A note that says nothing is removed, and ends nothing.
    assert_eq!(world.store.sweep(&world.todo, Duration::ZERO, later).unwrap(), 1);
    assert_eq!(world.paths().len(), 3);
}

#[test]
fn bs9_a_backup_has_the_payloads_in_its_folder() {
    let world = World::new();
    let bytes = noise(LARGE, 1);
    world.put(&bytes);
    world.put(&noise(200_000, 2));
    // An orphan of the same bytes, under another name.
    {
        let ended = world.another_process();
        let mut pending = ended.begin(&world.todo).unwrap();
        ended.prepare(&mut pending, &noise(300_000, 3)).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("payloads");
    assert_eq!(world.store.backup(&folder).unwrap(), 2);
    let config = BackendConfig::default();
    let copy = BackendStore::open(world.kv.clone(), Some(folder), config).unwrap();
    assert!(copy.verify(&world.todo).unwrap().is_empty());
    assert!(copy.get(&world.todo, 1).unwrap() == bytes);
    // In the copy they have no random part, and are named by the same records.
    assert_eq!(copy.sweep(&world.todo, Duration::ZERO, SystemTime::now() + GRACE * 2).unwrap(), 0);
}

#[test]
fn bs9_an_error_names_the_object_and_what_was_refused() {
    let failing = Arc::new(Failing::new());
    let service = Service {
        store: failing.clone(),
        parts: None,
        prefix: "payloads".to_owned(),
        shown: "s3://bucket".to_owned(),
    };
    let objects = Objects::open(service, &ID, None).unwrap();
    failing.fail_after(0);
    let error = try_put(&objects, 7, [1; 32], b"bytes").unwrap_err();
    let Error::Io { doing, path, source } = &error else { panic!("{error}") };
    assert_eq!((*doing, source.kind()), ("write", ErrorKind::PermissionDenied));
    let shown = path.display().to_string();
    assert!(shown.starts_with(&format!(
        "s3://bucket/payloads/{}/7/{}-",
        text(&ID),
        text(&[1; 32])
    )));
}
