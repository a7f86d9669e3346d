//! S11: sizes that a hostile file declares are never allocated, and its decompressed size is
//! bounded by the size that the payload's record states.

use crate::world::{World, noise};
use foldback_backend_store::Error;
use foldback_core::PayloadKind;
use foldback_kv::{Batch, Key, Space};
use foldback_testkit::memory::{folder, grown_over, is_weighed, weigh};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::{fs, io};

const CHUNK: usize = 256 << 10;
const SIZE: usize = 2 * CHUNK + 1_000;

/// A chunk of a hostile file: its stored bytes, and its line in the table.
struct Chunk {
    stored: Vec<u8>,
    declared: u32,
    compressed: bool,
}

impl Chunk {
    fn packed(stored: Vec<u8>) -> Self {
        Self { declared: stored.len() as u32, stored, compressed: true }
    }
}

/// The replacement for a payload's file and record.
struct Hostile {
    what: &'static str,
    first: Chunk,
    chunks: u64,
    bytes: u64,
    /// The size in the payload's record.
    recorded: u64,
}

/// The frame header of zstd: this content size, and a window or a single segment.
fn frame(descriptor: u8, header: &[u8], blocks: &[u8]) -> Vec<u8> {
    [&[0x28, 0xb5, 0x2f, 0xfd, descriptor], header, blocks].concat()
}

fn zeros(megabytes: usize) -> Vec<u8> {
    zstd::bulk::compress(&vec![0; megabytes << 20], 19).unwrap()
}

fn hostile() -> Vec<Hostile> {
    let file =
        |what, first| Hostile { what, first, chunks: 3, bytes: SIZE as u64, recorded: SIZE as u64 };
    let plain = || Chunk { stored: noise(CHUNK, 1), declared: CHUNK as u32, compressed: false };
    let bomb = zeros(64);
    let nested = zstd::bulk::compress(&zstd::bulk::compress(&bomb, 19).unwrap(), 19).unwrap();
    // 5,000 frames of one repeated byte, 128 KiB each: 640 MB in 60 KB.
    let repeated = frame(0x60, &[0, 0x20], &[3, 0, 0x10, 7]);
    let huge = u64::MAX.to_le_bytes();
    vec![
        file("a bomb: 64 MiB in a few KB", Chunk::packed(bomb.clone())),
        file("a bomb in a bomb in a bomb", Chunk::packed(nested)),
        file("many frames", Chunk::packed(repeated.repeat(5_000))),
        file("a frame that declares 16 EiB", Chunk::packed(frame(0xe0, &huge, &bomb[9..]))),
        file("a window of 3.75 TiB", Chunk::packed(frame(0, &[0xff], &bomb[6..]))),
        file("a frame cut short", Chunk::packed(bomb[..bomb.len() / 2].to_vec())),
        file(
            "a frame to be skipped of 4 GiB",
            Chunk::packed([&[0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff], &bomb[..]].concat()),
        ),
        file("a chunk of 2 GiB", Chunk { declared: u32::MAX >> 1, ..plain() }),
        Hostile { chunks: u64::MAX, ..file("a table of all chunks there could be", plain()) },
        Hostile { bytes: u64::MAX, ..file("a payload of 16 EiB", plain()) },
        Hostile { bytes: u64::MAX, recorded: u64::MAX, ..file("the record says so too", plain()) },
        Hostile { recorded: 1 << 50, ..file("a record of 1 PiB", plain()) },
    ]
}

/// The fields of a payload's record, in their order.
#[derive(Serialize)]
struct Record {
    #[serde(with = "serde_bytes")]
    hash: [u8; 32],
    kind: PayloadKind,
    bytes: u64,
    lines: u64,
    stored: u64,
    #[serde(with = "serde_bytes")]
    seal: Option<[u8; 32]>,
}

impl Hostile {
    /// Returns the file, whose own checks all match, and the seal that its record must have.
    fn file(&self, hash: &[u8; 32]) -> (Vec<u8>, [u8; 32]) {
        let mut header = b"FBPAYLD\x01".to_vec();
        header.extend((CHUNK as u32).to_le_bytes());
        header.resize(16, 0);
        let rest = [noise(CHUNK, 2), noise(SIZE - 2 * CHUNK, 3)];
        let mut chunks = self.first.stored.clone();
        let mut table = Vec::new();
        let mut line = |stored: &[u8], declared: u32, compressed: bool| {
            table.extend((declared | u32::from(compressed) << 31).to_le_bytes());
            table.extend(0_u32.to_le_bytes());
            table.extend(&blake3::hash(stored).as_bytes()[..16]);
        };
        line(&self.first.stored, self.first.declared, self.first.compressed);
        for stored in &rest {
            line(stored, stored.len() as u32, false);
            chunks.extend(stored);
        }
        let mut footer = Vec::new();
        for number in [self.chunks, self.bytes, 0, 0] {
            footer.extend(number.to_le_bytes());
        }
        footer.extend(hash);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&header).update(&table).update(&footer);
        let seal = *hasher.finalize().as_bytes();
        ([&header[..], &chunks, &table, &footer, &seal].concat(), seal)
    }
}

/// S11: 12 hostile files are errors of their payload, in bounded memory, and others stay readable.
/// This process makes the bombs, another reads them, so that the peak of its memory is the readers'.
#[test]
fn s11_hostile_files_are_errors_in_bounded_memory() {
    if is_weighed() {
        return read_files(&folder());
    }
    let dir = tempfile::tempdir().unwrap();
    let hash = *blake3::hash(&sound()).as_bytes();
    for (n, hostile) in hostile().iter().enumerate() {
        let (file, seal) = hostile.file(&hash);
        let forged = Record {
            hash,
            kind: PayloadKind::Text,
            bytes: hostile.recorded,
            lines: 1,
            stored: file.len() as u64,
            seal: Some(seal),
        };
        let path = dir.path().join(format!("{n:02} {}", hostile.what));
        fs::write(path.with_extension("record"), rmp_serde::to_vec(&forged).unwrap()).unwrap();
        fs::write(path.with_extension("file"), file).unwrap();
    }
    let read = grown_over("hostile::s11_hostile_files_are_errors_in_bounded_memory", dir.path());
    // If the peak cannot be measured, the files were at least read.
    assert!(read.is_none_or(|kilobytes| kilobytes < 8 << 10), "{read:?} kB");
}

fn read_files(folder: &Path) {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "file"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 12);
    read_in_every_way(None);
    weigh(|| files.iter().for_each(|file| read_in_every_way(Some(file))));
}

/// S11: the same measurement shows a bomb that does go off.
#[test]
fn s11_a_bomb_that_goes_off_is_seen() {
    if is_weighed() {
        let bomb = fs::read(folder().join("bomb")).unwrap();
        return weigh(|| assert_eq!(zstd::decode_all(bomb.as_slice()).unwrap().len(), 64 << 20));
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bomb"), zeros(64)).unwrap();
    let gone_off = grown_over("hostile::s11_a_bomb_that_goes_off_is_seen", dir.path());
    assert!(gone_off.is_none_or(|kilobytes| kilobytes > 60 << 10), "{gone_off:?} kB");
}

fn sound() -> Vec<u8> {
    noise(SIZE, 9)
}

/// Puts the hostile file in the place of the payload's, with a record that agrees with it, and reads.
fn read_in_every_way(hostile: Option<&PathBuf>) {
    let world = World::new();
    let sound = sound();
    let meta = world.put(&sound);
    world.put(b"another");
    assert!(world.get(meta.n).unwrap() == sound);
    let Some(file) = hostile else { return };
    assert_eq!(meta.hash, *blake3::hash(&sound).as_bytes(), "the forged record is this payload's");
    let what = file.display();
    let key = Key { space: Space::Payload, todo: world.todo.no(), n: meta.n };
    put(&world, key, fs::read(file.with_extension("record")).unwrap());
    fs::copy(file, world.files().remove(0)).unwrap();
    let (store, todo) = (&world.store, &world.todo);
    let damage = |error: Error| {
        assert!(matches!(error, Error::Corrupt { n, .. } if n == meta.n), "{what}: {error}");
    };
    damage(store.write_to(todo, meta.n, io::sink()).unwrap_err());
    damage(store.read_range(todo, meta.n, 0..10).unwrap_err());
    damage(store.lines(todo, meta.n, 1, 1, 500).unwrap_err());
    damage(store.matching(todo, meta.n, "7", 0, 100, 1).unwrap_err());
    let findings = store.verify(todo).unwrap();
    assert_eq!(findings.iter().map(|found| found.n).collect::<Vec<_>>(), [meta.n], "{what}");
    assert_eq!(world.get(2).unwrap(), b"another", "{what}");
    // Nor is such a file taken for the payload when the same bytes are stored again.
    put(&world, key, vec![0]);
    let again = world.put(&sound);
    assert!(world.get(again.n).unwrap() == sound, "{what}");
}

/// S11: a record that decompresses to more than it states is an error, whatever it states.
#[test]
fn s11_a_bomb_in_a_record_is_an_error() {
    let world = World::new();
    let meta = world.put(&b"a text that is worth packing\n".repeat(100));
    let key = Key { space: Space::PayloadBytes, todo: world.todo.no(), n: meta.n };
    for bomb in [zeros(64), zstd::bulk::compress(&zeros(64), 19).unwrap()] {
        put(&world, key, [&[1], &bomb[..]].concat());
        assert!(matches!(world.get(meta.n), Err(Error::Corrupt { .. })));
    }
}

fn put(world: &World, key: Key, value: Vec<u8>) {
    world.kv.commit(Batch { put: vec![(key, value)], ..Batch::default() }).unwrap();
}
