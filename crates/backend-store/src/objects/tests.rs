//! Payloads in object stores that need no network.

mod failing;
#[cfg(feature = "objects-s3")]
mod http_server;
#[cfg(feature = "objects-s3")]
mod s3_server;
mod world;

use super::*;
use crate::folder::Folder;
use crate::payload_files::conformance::{bytes_of, holds, named, put, try_put};
use crate::{BackendConfig, BackendStore};
use failing::Failing;
use foldback_kv::{EncryptionKey, Mode, Registry};
use object_name::text;
use object_store::memory::InMemory;
use object_store::multipart::MultipartStore as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use std::io::ErrorKind;
use world::{ID, World, block_on, noise, objects_in};

/// More than two parts of an upload.
const LARGE: usize = 20 << 20;

fn objects_of(failing: &Arc<Failing>, prefix: &str) -> Objects {
    let (prefix, shown) = (prefix.to_owned(), "s3://bucket".to_owned());
    Objects::open(Service { store: failing.clone(), prefix, shown }, &ID, None).unwrap()
}

#[test]
fn bs9_a_store_in_memory_is_a_place_for_files() {
    holds(&objects_in(&Arc::new(InMemory::new())), LARGE);
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
            let objects = objects_of(&failing, "");
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

/// The object was put, or the upload completed, and the answer was lost: that is not a failure. Any other answer may be
/// lost, too.
#[test]
fn bs9_an_answer_that_is_lost_loses_nothing() {
    for (size, first_that_is_done) in [(200_000, 0), (LARGE, 5)] {
        for lost in 0..12 {
            let failing = Arc::new(Failing::new());
            let objects = objects_of(&failing, "");
            failing.lose_answer_after(lost);
            let bytes = bytes_of(size);
            let done = try_put(&objects, 1, [1; 32], &bytes);
            let was_hit = failing.was_hit();
            failing.work_again();
            match done {
                Err(error) => {
                    assert!(lost < first_that_is_done, "request {lost} of {size} bytes: {error}");
                    assert!(matches!(error, Error::Io { .. }), "{error}");
                }
                Ok(_) => assert_eq!(objects.list(1).unwrap().len(), 1),
            }
            let again = put(&objects, 1, [1; 32], &bytes);
            let mut file = objects.open(&named(1, [1; 32], &again)).unwrap().unwrap();
            let mut found = vec![0; bytes.len()];
            file.read_at(0, &mut found).unwrap();
            assert!(found == bytes);
            assert_eq!(failing.parts(), 0, "request {lost} of {size} bytes");
            objects.forget(1).unwrap();
            assert!(objects.client.list(1).unwrap().is_empty());
            if !was_hit {
                break;
            }
        }
    }
}

/// Another object under the name of a put whose answer was lost is not taken for its own.
#[test]
fn bs9_an_object_of_another_size_is_not_taken_for_the_own() {
    let memory = Arc::new(InMemory::new());
    let objects = objects_in(&memory);
    let path = Path::from("taken");
    block_on(memory.put(&path, PutPayload::from_static(b"another"))).unwrap();
    let error = objects.client.put_new(&path, PutPayload::from_static(b"own")).unwrap_err();
    assert!(error.to_string().contains("an object of 7 bytes is there, and not of 3"), "{error}");
}

/// Listing and removing may fail at any request: that is an error, and the same again works.
#[test]
fn bs9_a_forget_or_a_sweep_that_fails_works_again() {
    let later = SystemTime::now() + GRACE * 2;
    type Work = fn(&Objects, SystemTime) -> Result<(), Error>;
    let works: [Work; 3] = [
        |objects, _| objects.forget(1),
        |objects, later| objects.sweep(1, Duration::ZERO, later, &|_| false).map(drop),
        |objects, _| objects.list(1).map(drop).and_then(|()| objects.todos().map(drop)),
    ];
    for (which, work) in works.into_iter().enumerate() {
        for loses_answer in [false, true] {
            for n in 0..20 {
                let failing = Arc::new(Failing::new());
                let objects = objects_of(&failing, "");
                for hash in 1..4 {
                    put(&objects, 1, [hash; 32], b"bytes");
                }
                let kept = put(&objects, 2, [9; 32], b"of another todo");
                // What a writer leaves that is killed within an upload.
                let path = objects.client.path(&named(1, [8; 32], &kept));
                let id = block_on(failing.create_multipart(&path)).unwrap();
                objects.client.note(1, &path, &id).unwrap();
                block_on(failing.put_part(&path, &id, 0, PutPayload::from_static(b"x"))).unwrap();

                if loses_answer {
                    failing.lose_answer_after(n);
                } else {
                    failing.fail_after(n);
                }
                let done = work(&objects, later);
                let was_hit = failing.was_hit();
                failing.work_again();
                assert_eq!(done.is_err(), was_hit, "work {which}, request {n}: {done:?}");
                if let Err(error) = done {
                    assert!(matches!(error, Error::Io { .. }), "{error}");
                }
                work(&objects, later).unwrap();
                if which < 2 {
                    assert!(objects.client.list(1).unwrap().is_empty());
                    assert_eq!(failing.parts(), 0, "work {which}, request {n}");
                }
                assert_eq!(objects.list(2).unwrap(), [named(2, [9; 32], &kept)]);
                if !was_hit {
                    break;
                }
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
    let (large, small) = (noise(LARGE, 1), noise(200_000, 2));
    // Orphans of the same bytes, under other names. They are damaged, so that one in the copy would be noticed.
    for _ in 0..4 {
        let ended = world.another_process();
        let mut pending = ended.begin(&world.todo).unwrap();
        ended.prepare(&mut pending, &small).unwrap();
    }
    for orphan in world.paths() {
        world.replace(&orphan, Some(b"damaged".to_vec()));
    }
    world.put(&large);
    let meta = world.put(&small);
    assert_eq!(world.paths_of(meta.n).len(), 5);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("payloads");
    assert_eq!(world.store.backup(&folder).unwrap(), 2);
    let config = BackendConfig::default();
    let copy = BackendStore::open(world.kv.clone(), Some(folder), config).unwrap();
    assert!(copy.verify(&world.todo).unwrap().is_empty());
    assert!(copy.get(&world.todo, 1).unwrap() == large);
    // In the copy they have no random part, and are named by the same records.
    assert_eq!(copy.sweep(&world.todo, Duration::ZERO, SystemTime::now() + GRACE * 2).unwrap(), 0);
}

/// A todo was forgotten, and its objects are still there: a backup leaves them out, also where its key is gone.
#[test]
fn bs9_a_backup_leaves_out_what_a_forgotten_todo_left() {
    let key = EncryptionKey::new([7; 32]);
    let sealed = foldback_kv::seal(foldback_kv::memory(), None, Mode::ReadWrite, &key).unwrap();
    for world in [World::new(), World::on(sealed)] {
        let kept = world.another("kept");
        world.put(&noise(200_000, 1));
        world.put_in(&kept, &noise(200_000, 2));
        let deletes = world.store.forget(&world.todo);
        Registry::new(world.kv.clone()).remove(&world.todo, deletes).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("payloads");
        assert_eq!(world.store.backup(&folder).unwrap(), 1);
        let copy = BackendStore::open(world.kv.clone(), Some(folder), BackendConfig::default());
        assert!(copy.unwrap().get(&kept, 1).unwrap() == noise(200_000, 2));
    }
}

/// An object that is removed while it is copied, as when its todo is forgotten, does not make the copy fail.
#[test]
fn bs9_an_object_that_vanishes_while_it_is_copied_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    for requests in 0.. {
        let failing = Arc::new(Failing::new());
        let objects = objects_of(&failing, "");
        let name = named(1, [1; 32], &put(&objects, 1, [1; 32], &bytes_of(LARGE)));
        let to = Folder::new(dir.path().join(requests.to_string()));
        failing.vanish_after(requests);
        let is_copied = objects.copy(&name, &to).unwrap();
        assert_eq!(is_copied, !failing.was_hit(), "after {requests} requests");
        assert_eq!(to.list(1).unwrap().len(), usize::from(is_copied));
        if is_copied {
            assert!(requests > 2, "it was not read in parts");
            break;
        }
    }
}

#[test]
fn bs9_an_error_names_the_object_and_what_was_refused() {
    let failing = Arc::new(Failing::new());
    let objects = objects_of(&failing, "payloads");
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
