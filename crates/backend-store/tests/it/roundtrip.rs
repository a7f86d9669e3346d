//! BS2: the reference resolves byte for byte.

use crate::world::{World, noise};
use foldback_backend_store::{BackendConfig, Error, Meta};
use foldback_core::{Check, PayloadKind};
use foldback_kv::{Batch, Expect};
use proptest::prelude::*;

const INLINE: usize = 64 << 10;
const CHUNK: usize = 256 << 10;

/// Stores bytes, and reads them in every way.
#[track_caller]
fn check(bytes: &[u8]) -> Meta {
    let mut stored = None;
    for world in [World::new(), World::in_memory()] {
        let meta = world.put(bytes);
        assert_eq!(meta.n, 1);
        assert_eq!(meta.bytes, bytes.len() as u64);
        assert_eq!(meta.check, Check::of(bytes));
        assert_eq!(&meta.hash, blake3::hash(bytes).as_bytes());
        assert!(world.get(1).unwrap() == bytes);
        assert_eq!(world.store.meta(&world.todo, 1).unwrap(), meta);
        assert_eq!(world.store.resolve(&world.todo, &meta.reference()).unwrap(), meta);
        let size = bytes.len() as u64;
        for (start, end) in [(0, 0), (0, size), (size, size), (size / 3, size / 2)] {
            let range = world.store.read_range(&world.todo, 1, start..end).unwrap();
            assert!(range == bytes[start as usize..end as usize]);
        }

        // A stream of the same bytes, in odd pieces, is the same payload.
        let mut pending = world.store.begin(&world.todo).unwrap();
        let again = world.store.prepare_stream(&mut pending, Dribble(bytes, 7919)).unwrap();
        assert_eq!((&again.meta, again.new), (&meta, false));
        assert!(pending.is_empty());

        // In another todo its description is the same, except for its place.
        let other = world.another("other");
        let mut pending = world.store.begin(&other).unwrap();
        let streamed = world.store.prepare_stream(&mut pending, Dribble(bytes, 100_003)).unwrap();
        assert!(streamed.new);
        assert_eq!(streamed.meta, meta);
        assert_eq!(world.store.verify(&world.todo).unwrap(), []);
        stored.get_or_insert(meta);
    }
    stored.unwrap()
}

/// A reader that gives a few bytes at a time.
struct Dribble<'a>(&'a [u8], usize);

impl std::io::Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(out.len()).min(self.1);
        let (now, rest) = self.0.split_at(count);
        out[..count].copy_from_slice(now);
        self.0 = rest;
        Ok(count)
    }
}

#[test]
fn bs2_empty_and_invalid_bytes_come_back() {
    assert_eq!(check(b"").lines, 0);
    assert_eq!(check(b"\n").lines, 1);
    assert_eq!(check(b"a\nb").lines, 2);
    let meta = check(b"a\xff\xfe\0b\xc3\n");
    assert_eq!((meta.kind, meta.lines), (PayloadKind::Binary, 1));
    assert_eq!(check("一行\n两行\n".as_bytes()).kind, PayloadKind::Text);
}

#[test]
fn bs2_sizes_around_every_border_come_back() {
    for size in [INLINE - 1, INLINE, INLINE + 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
        let meta = check(&noise(size, size as u64));
        assert_eq!(meta.in_file(), size > INLINE, "{size}");
        check(&"行\n".repeat(size / 4 + 1).into_bytes()[..size]);
    }
}

#[test]
fn bs2_many_equal_lines_take_little_room() {
    let lines = ["connecting to 10.0.0.1\n", "重试中\n", "ok\n"];
    let text: Vec<u8> = (0..).flat_map(|i| lines[i % 7 % 3].bytes()).take(20 << 20).collect();
    let meta = check(&text);
    assert!(meta.stored * 100 < meta.bytes, "{} of {}", meta.stored, meta.bytes);
}

#[test]
fn bs2_what_does_not_compress_takes_hardly_more_than_itself() {
    let meta = check(&noise(1 << 20, 3));
    assert!(meta.stored <= meta.bytes + 400, "{}", meta.stored);
}

#[test]
fn bs5_equal_bytes_of_a_todo_are_stored_once() {
    let world = World::new();
    let (small, large) = (noise(500, 1), noise(200_000, 2));
    let first = world.put_in(&world.todo, &large);
    assert!(first.new);
    let again = world.put_in(&world.todo, &large);
    assert_eq!((again.meta.n, again.new), (1, false));
    assert_eq!(world.files().len(), 1);

    // In one commit too.
    let mut pending = world.store.begin(&world.todo).unwrap();
    let numbers: Vec<(u64, bool)> = [&small, &large, &small, &noise(9, 9), &small]
        .into_iter()
        .map(|bytes| world.store.prepare(&mut pending, bytes).unwrap())
        .map(|prepared| (prepared.meta.n, prepared.new))
        .collect();
    assert_eq!(numbers, [(2, true), (1, false), (2, false), (3, true), (2, false)]);
    assert_eq!(pending.meta(3).map(|meta| meta.bytes), Some(9));
    world.kv.commit(Batch { put: pending.into_puts(), ..Batch::default() }).unwrap();
    assert_eq!(world.get(2).unwrap(), small);
    let usage = world.store.usage(&world.todo).unwrap();
    assert_eq!((usage.payloads, usage.files, usage.bytes), (3, 1, 200_509));
    let metas = world.store.metas(&world.todo, 1, 10).unwrap();
    assert_eq!(metas.iter().map(|meta| meta.n).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(world.store.metas(&world.todo, 0, 2).unwrap().len(), 2);
}

#[test]
fn bs5_hashes_that_share_a_key_stay_apart() {
    // The key is 32 bits of the hash; two texts that share them are found by trying (a birthday
    // among a few hundred thousand).
    let mut seen = std::collections::BTreeMap::new();
    let (a, b) = (0_u64..)
        .find_map(|i| {
            let hash = blake3::hash(&i.to_le_bytes());
            let key: [u8; 4] = hash.as_bytes()[..4].try_into().unwrap();
            seen.insert(key, i).map(|before| (before, i))
        })
        .unwrap();
    let world = World::new();
    let mut pending = world.store.begin(&world.todo).unwrap();
    for i in [a, b] {
        assert!(world.store.prepare(&mut pending, &i.to_le_bytes()).unwrap().new);
    }
    world.kv.commit(Batch { put: pending.into_puts(), ..Batch::default() }).unwrap();
    for (n, i) in [(1, a), (2, b)] {
        assert_eq!(world.get(n).unwrap(), i.to_le_bytes());
        let known = world.put_in(&world.todo, &i.to_le_bytes());
        assert_eq!((known.meta.n, known.new), (n, false));
    }
}

#[test]
fn r1_what_was_not_committed_is_used_by_the_next_try() {
    let world = World::new();
    let bytes = noise(300_000, 4);
    let mut pending = world.store.begin(&world.todo).unwrap();
    let first = world.store.prepare(&mut pending, &bytes).unwrap();
    drop(pending);
    assert!(matches!(world.get(1), Err(Error::NotFound { .. })));
    assert_eq!(world.files().len(), 1);
    let second = world.put_in(&world.todo, &bytes);
    assert_eq!(first, second);
    assert_eq!(world.files().len(), 1);
    assert_eq!(world.get(1).unwrap(), bytes);
}

#[test]
fn s10_a_payload_has_a_greatest_size() {
    let world = World::with(BackendConfig::default().with_max_bytes(100_000));
    let mut pending = world.store.begin(&world.todo).unwrap();
    let bytes = noise(100_001, 5);
    for error in [
        world.store.prepare(&mut pending, &bytes).unwrap_err(),
        world.store.prepare_stream(&mut pending, bytes.as_slice()).unwrap_err(),
        // An endless reader is not read to its end.
        world.store.prepare_stream(&mut pending, std::io::repeat(1)).unwrap_err(),
    ] {
        assert!(matches!(error, Error::TooLarge { most: 100_000, .. }), "{error}");
    }
    assert!(world.files().is_empty());
    world.store.prepare(&mut pending, &bytes[1..]).unwrap();
}

#[test]
fn a_source_that_fails_leaves_nothing() {
    struct Broken(u32);
    impl std::io::Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            match self.0 {
                100.. => Err(std::io::Error::other("cable pulled")),
                // An interruption is not an error.
                n if n % 3 == 0 => Err(std::io::ErrorKind::Interrupted.into()),
                _ => Ok(out.len()),
            }
        }
    }
    let world = World::new();
    let mut pending = world.store.begin(&world.todo).unwrap();
    let error = world.store.prepare_stream(&mut pending, Broken(0)).unwrap_err();
    assert!(matches!(error, Error::Stream { doing: "read", .. }), "{error}");
    assert!(pending.is_empty());
    assert!(world.files().is_empty());
}

#[test]
fn a_store_is_shared_by_threads() {
    let world = &World::new();
    let payloads: Vec<Vec<u8>> = (0..4).map(|seed| noise(100_000, seed)).collect();
    let numbers: Vec<u64> = payloads.iter().map(|bytes| world.put(bytes).n).collect();
    std::thread::scope(|scope| {
        for (n, bytes) in numbers.into_iter().zip(&payloads) {
            scope.spawn(move || (0..20).for_each(|_| assert!(world.get(n).unwrap() == *bytes)));
        }
    });
}

#[test]
fn a_folder_that_cannot_be_one_is_a_typed_error() {
    let world = World::new();
    let bytes = noise(100_000, 7);
    world.put(&bytes);
    let root = world.dir.path().join("payloads");
    std::fs::rename(&root, world.dir.path().join("aside")).unwrap();
    std::fs::write(&root, "a file").unwrap();
    let error = world.get(1).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let mut pending = world.store.begin(&world.todo).unwrap();
    let error = world.store.prepare(&mut pending, &noise(100_000, 8)).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    // Small ones need no folder.
    assert_eq!(world.put(b"small").n, 2);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let good = BackendConfig::default();
    for config in [
        good.clone().with_inline_max((1 << 20) + 1),
        good.clone().with_max_bytes(0),
        good.with_level(0),
    ] {
        let opened =
            foldback_backend_store::BackendStore::open(foldback_kv::memory(), None, config);
        assert!(matches!(opened, Err(Error::Config { .. })));
    }
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.put(&noise(100_000, 6));
    let file = world.files().remove(0);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    for folder in file.ancestors().skip(1).take(3) {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
}

fn payloads() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof!["[a-z ]{0,80}", "[中文😀é]{0,40}", "\\PC{0,50}"];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..2000),
        prop::collection::vec(line, 0..80).prop_map(|lines| lines.join("\n").into_bytes()),
        (0_usize..700_000, any::<u64>()).prop_map(|(size, seed)| noise(size, seed)),
        (0_usize..60_000, "[a-z中]{1,12}\n?").prop_map(|(n, text)| text.repeat(n).into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn bs2_any_range_of_any_bytes_is_the_slice(
        bytes in payloads(),
        ranges in prop::collection::vec((0.0..=1.0, 0.0..=1.0), 1..6),
    ) {
        let world = World::new();
        let meta = world.put(&bytes);
        prop_assert!(world.get(meta.n).unwrap() == bytes);
        for (a, b) in ranges {
            let at = |part: f64| (part * bytes.len() as f64) as u64;
            let (start, end) = (at(a).min(at(b)), at(a).max(at(b)));
            let part = world.store.read_range(&world.todo, meta.n, start..end).unwrap();
            prop_assert!(part == bytes[start as usize..end as usize]);
        }
        let behind = meta.bytes + 1;
        let error = world.store.read_range(&world.todo, meta.n, 0..behind).unwrap_err();
        let is_range = matches!(error, Error::BadRange { .. });
        prop_assert!(is_range, "{}", error);
    }
}

/// S5: the first origin of bytes is kept with them, however often they come again, even when they are
/// stored again.
#[test]
fn s5_the_first_origin_is_kept() {
    let world = World::new();
    let put = |bytes: &[u8], origin: Option<u64>| {
        let head = world.kv.head(world.todo.no()).unwrap();
        let mut pending = world.store.begin(&world.todo).unwrap();
        if let Some(origin) = origin {
            pending.set_origin(origin);
        }
        let meta = world.store.prepare(&mut pending, bytes).unwrap().meta;
        let expect = Some(Expect { todo: world.todo.no(), head, next: head + 1 });
        world.kv.commit(Batch { expect, put: pending.into_puts(), delete: vec![] }).unwrap();
        assert_eq!(world.store.meta(&world.todo, meta.n).unwrap(), meta);
        meta
    };
    let large = noise(INLINE + 1, 7);
    assert_eq!(put(b"said by nobody", None).origin, None);
    for (bytes, origin) in [(b"once".as_slice(), 4), (&large, 9)] {
        assert_eq!(put(bytes, Some(origin)).origin, Some(origin));
        assert_eq!(put(bytes, Some(40)).origin, Some(origin));
    }
    std::fs::remove_file(&world.files()[0]).unwrap();
    assert_eq!(put(&large, Some(41)).origin, Some(9), "it is stored anew");
    assert!(world.get(3).unwrap() == large);
}
