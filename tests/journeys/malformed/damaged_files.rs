//! Files of a store that differ from what was written.

use super::{is_told, is_typed, one_of};
use crate::fuzzing::fuzzed::sound_store::{Readings, files, on_disk, options};
use foldback::{Memory, Mode};
use foldback_kv::FORMAT_VERSION;
use foldback_testkit::Random;
use foldback_testkit::mutation::mutated;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A store of the default engine.
struct Disk {
    dir: tempfile::TempDir,
    files: Vec<PathBuf>,
    readings: Readings,
}

fn disk() -> &'static Disk {
    static DISK: OnceLock<Disk> = OnceLock::new();
    DISK.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let readings = on_disk(dir.path());
        let mut files: Vec<PathBuf> = files(dir.path())
            .into_iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_owned())
            .collect();
        files.retain(|path| !path.to_string_lossy().ends_with("lock"));
        Disk { dir, files, readings }
    })
}

/// Whether an unchanged copy is reported.
pub(super) fn sound_is_told() -> bool {
    changed(|_| {})
}

/// Reads a changed copy of the store.
#[track_caller]
fn changed(change: impl FnOnce(&Path)) -> bool {
    let disk = disk();
    let copy = tempfile::tempdir().unwrap();
    for path in files(disk.dir.path()) {
        let to = copy.path().join(path.strip_prefix(disk.dir.path()).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(path, to).unwrap();
    }
    change(copy.path());
    match Memory::open(copy.path(), options().with_mode(Mode::ReadOnly)) {
        Ok(memory) => is_told(&memory, &disk.readings, &[]),
        Err(error) => is_typed(&error),
    }
}

/// A file with this ending, of either todo.
fn named(random: &mut Random, ends: &[&str]) -> PathBuf {
    let end = *one_of(random, ends);
    let is_it = |path: &&PathBuf| path.to_string_lossy().contains(end);
    let found: Vec<&PathBuf> = disk().files.iter().filter(is_it).collect();
    assert!(!found.is_empty(), "{end} is in {:?}", disk().files);
    (*one_of(random, &found)).clone()
}

#[track_caller]
fn with(file: &Path, change: impl FnOnce(&mut Vec<u8>)) -> bool {
    changed(|dir| {
        let path = dir.join(file);
        let mut bytes = fs::read(&path).unwrap();
        let before = bytes.clone();
        change(&mut bytes);
        assert!(bytes != before, "{} is as it was", file.display());
        fs::write(path, bytes).unwrap();
    })
}

const STARTS: [(&str, usize); 6] = [
    ("FORMAT", 36),
    ("store.sqlite", 100),
    ("payloads/", 16),
    ("vectors.i8", 24),
    ("meta.json", 40),
    ("graph.json", 40),
];

pub(super) fn truncated_header(random: &mut Random) -> bool {
    let (name, header) = *one_of(random, &STARTS);
    let (file, length) = (named(random, &[name]), 1 + random.below(header - 1));
    with(&file, |bytes| bytes.truncate(length))
}

/// Some of the files are empty.
pub(super) fn emptied(random: &mut Random) -> bool {
    let first = random.below(disk().files.len());
    let others = random.below(4);
    changed(|dir| {
        fs::write(dir.join(&disk().files[first]), "").unwrap();
        for _ in 0..others {
            fs::write(dir.join(one_of(random, &disk().files)), "").unwrap();
        }
    })
}

pub(super) fn wrong_magic(random: &mut Random) -> bool {
    let file = named(random, &["FORMAT", "store.sqlite", "payloads/", "vectors.i8"]);
    let (at, other) = (random.below(7), 1 + random.below(255) as u8);
    with(&file, |bytes| bytes[at] ^= other)
}

/// A text in place of another one in the file.
fn replaced(bytes: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    let at = bytes.windows(from.len()).position(|window| window == from);
    let at = at.unwrap_or_else(|| panic!("{} is there", String::from_utf8_lossy(from)));
    bytes.splice(at..at + from.len(), to.iter().copied());
}

/// Where the values of some messages begin in the database: after the 9-byte header of their records.
fn messages_in(bytes: &[u8]) -> Vec<usize> {
    let asked = b"How high is the tide at quay ";
    let found: Vec<usize> = (0..bytes.len() - asked.len())
        .filter(|at| bytes[*at..].starts_with(asked))
        .filter_map(|at| (0..200).map(|back| at - back).find(|at| is_record(bytes, *at)))
        .collect();
    assert!(!found.is_empty(), "messages are in the database");
    found
}

/// Whether a record's value begins here: a MessagePack list after the version and a checksum.
fn is_record(bytes: &[u8], at: usize) -> bool {
    bytes[at] == 0x94 && bytes[at - 9] == 1
}

pub(super) fn future_version(random: &mut Random) -> bool {
    let version = FORMAT_VERSION as u8 + 1 + random.below(200) as u8;
    let name = *one_of(random, &["FORMAT", "payloads/", "meta.json", "graph.json", "store.sqlite"]);
    let file = named(random, &[name]);
    let place = random.below(1_000);
    with(&file, |bytes| match name {
        "FORMAT" => {
            let now = format!("version {FORMAT_VERSION}");
            replaced(bytes, now.as_bytes(), format!("version {version}").as_bytes());
        }
        // `FBPAYLD` and the version.
        "payloads/" => bytes[7] = version,
        "store.sqlite" => {
            let found = messages_in(bytes);
            bytes[found[place % found.len()] - 9] = version;
        }
        "meta.json" => {
            replaced(bytes, b"\\\"format\\\":", format!("\\\"format\\\":{version}").as_bytes());
        }
        _ => replaced(bytes, b"\"format\":", format!("\"format\":{version}").as_bytes()),
    })
}

pub(super) fn bad_checksum(random: &mut Random) -> bool {
    let name =
        *one_of(random, &["payloads/", "vectors.i8", "meta.json", "graph.json", "store.sqlite"]);
    let (file, bit, place) = (named(random, &[name]), 1 << random.below(8), random.below(1_000));
    with(&file, |bytes| {
        let last = bytes.len() - 1;
        match name {
            "payloads/" => bytes[last - place % 32] ^= bit,
            "vectors.i8" => bytes[16 + place % 8] ^= bit,
            "store.sqlite" => {
                let found = messages_in(bytes);
                bytes[found[place % found.len()] - 1 - place % 8] ^= bit;
            }
            "meta.json" => replaced(bytes, b"\\\"sum\\\":", b"\\\"sum\\\":1"),
            _ => replaced(bytes, b"\"files\":[", b"\"files\":[1"),
        }
    })
}

/// Words of the graph's file that point to missing neighbours.
pub(super) fn wild_edges(random: &mut Random) -> bool {
    let file = named(random, &[".hnsw.graph"]);
    with(&file, |bytes| {
        for _ in 0..=random.below(8) {
            let at = random.below(bytes.len() - 8);
            let width = *one_of(random, &[1, 4, 8]);
            bytes[at..at + width].fill(0xff);
        }
    })
}

/// What tantivy says about its segments: cut, repeated, pointing at each other or at nothing.
pub(super) fn corrupt_meta(random: &mut Random) -> bool {
    let file = named(random, &["meta.json"]);
    let sound = fs::read(disk().dir.path().join(&file)).unwrap();
    let mut meta: serde_json::Value = serde_json::from_slice(&sound).unwrap();
    let other = match random.below(6) {
        0 => {
            let segment = meta["segments"][0].clone();
            meta["segments"].as_array_mut().unwrap().push(segment);
            meta.to_string().into_bytes()
        }
        1 => {
            meta["segments"][0]["segment_id"] = "00000000-0000-0000-0000-000000000001".into();
            meta.to_string().into_bytes()
        }
        2 => {
            meta["segments"][0]["max_doc"] =
                (*one_of(random, &[0_u32, 1, 1 << 20, u32::MAX])).into();
            meta.to_string().into_bytes()
        }
        3 => {
            meta["segments"][0]["deletes"] =
                serde_json::json!({ "num_deleted_docs": u32::MAX, "opstamp": 1 });
            meta.to_string().into_bytes()
        }
        4 => {
            let list = ["segments", "schema", "payload", "opstamp", "index_settings"];
            meta[*one_of(random, &list)] = serde_json::Value::Null;
            meta.to_string().into_bytes()
        }
        _ => mutated(random, std::slice::from_ref(&sound)),
    };
    changed(|dir| fs::write(dir.join(&file), other).unwrap())
}
