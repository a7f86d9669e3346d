//! S14: an encrypted store reveals nothing about its contents, and notices whatever is put into it.

use crate::story::{engines, exchange, options, todo};
use foldback::{Audit, Close, EncryptionKey, Engine, ErrorKind, Memory, Mode, Options};
use foldback_core::{Message, Reference};
use foldback_transcript::read_bytes;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::tempdir;

const KEY: [u8; 32] = [7; 32];

/// The canaries in messages, names, arguments, large and small results, and around the conversation.
const CANARIES: [&str; 8] = [
    "canary-todo",
    "canary-said",
    "canary-call",
    "canary-result",
    "canary-payload",
    "canary-parked",
    "canary-envelope",
    "金丝雀",
];

fn encrypted(engine: Engine) -> Options {
    plain(engine).with_encryption(EncryptionKey::new(KEY))
}

fn plain(engine: Engine) -> Options {
    let mut options = options().with_engine(engine).with_audit(Audit::new("canary-door"));
    options.index.index_after_blocks = 4;
    options.index.batch_blocks = 4;
    options
}

/// A text that does not compress, so that packed data would show it, with a canary on each line.
fn large(canary: &str) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut line = |n: usize| {
        let noise = (0..6).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n as u64);
            format!("{state:x}")
        });
        format!("{canary} {}\n", noise.collect::<String>())
    };
    (0..4_000).map(&mut line).collect()
}

/// Records, imports, folds, indexes, looks up, parks, grants.
fn fill(memory: &Memory) {
    for name in ["canary-todo-a", "canary-todo-b"] {
        let mut session = memory.session(&todo(name)).unwrap();
        for n in 0..12 {
            let result = format!("canary-result{n} 金丝雀 stands here");
            let mut said = exchange(n, &format!("canary-call{n}"), &result).to_vec();
            said.push(Message::user(&format!("canary-said {n}, and nothing else of it")));
            session.record_all(said).unwrap();
        }
        let large = large(&format!("canary-payload {name}"));
        session.record_all(exchange(99, "canary-call", &large).to_vec()).unwrap();
        session.close(Close::End).unwrap();
        drop(session);
        memory.park(&todo(name), &[7; 32], "canary-parked").unwrap();
    }
    let reference: Reference = "b_canary-todo-a_001".parse().unwrap();
    memory.grants().grant(&todo("canary-todo-a"), &todo("canary-todo-b"), &[reference]).unwrap();
    let line = r#"{"id": "c", "env": "canary-envelope", "messages": [{"role": "user", "content": "canary-said"}]}"#;
    let came = read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
    memory.conversations().import(&todo("canary-todo-c"), &came).unwrap();
    memory.maintenance().index().unwrap();
    memory.owner().index(|_, _| {}).unwrap();
}

/// Checks that everything is found, readable and whole.
#[track_caller]
fn check_whole(memory: &Memory) {
    let ask = |query: &str| {
        let arguments = serde_json::json!({ "query": query, "k": 2 }).to_string();
        memory.recall(&todo("canary-todo-a"), "search_block", &arguments).unwrap().text
    };
    assert!(ask("canary-result7").contains("canary-result7 金丝雀"), "{}", ask("canary-result7"));
    assert_eq!(memory.messages(&todo("canary-todo-b"), 0..64).unwrap().len(), 64);
    let todos = memory.owner().recall("search_block", r#"{"query": "canary-said 3"}"#).unwrap();
    assert!(todos.text.contains("canary-todo-b"), "{}", todos.text);
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// The files below a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// The canaries in the names or the bytes of files below a folder.
fn seen(dir: &Path, vector: &[u8]) -> Vec<String> {
    let mut seen = Vec::new();
    for path in files(dir) {
        let name = path.display().to_string();
        // A file may disappear while others write.
        let bytes = fs::read(&path).unwrap_or_default();
        for canary in CANARIES.map(str::as_bytes).into_iter().chain([vector]) {
            let is_in = |bytes: &[u8]| bytes.windows(canary.len()).any(|window| window == canary);
            if is_in(name.as_bytes()) || is_in(&bytes) {
                seen.push(String::from_utf8_lossy(canary).into_owned());
            }
        }
    }
    seen.sort();
    seen.dedup();
    seen
}

/// The bytes of the vector of a text, as they are in an index: one byte per number.
fn vector_of(memory: &Memory) -> Vec<u8> {
    let text = "canary-said 3, and nothing else of it";
    let vectors = memory.embedding().embedder().embed(&[text]).unwrap();
    let row = vectors.row(0).unwrap();
    let scale = row.iter().fold(0.0f32, |most, value| most.max(value.abs())) / 127.0;
    row.iter().take(16).map(|value| (value / scale).round() as i8 as u8).collect()
}

#[test]
fn s14_no_canary_is_in_any_byte_of_an_encrypted_store() {
    for engine in engines() {
        let dir = tempdir().unwrap();
        let store = dir.path().join("store");
        let memory = Memory::open(&store, encrypted(engine)).unwrap();
        let vector = vector_of(&memory);
        fill(&memory);
        check_whole(&memory);
        let nothing = Vec::<String>::new();
        assert_eq!(seen(&store, &vector), nothing, "{engine}: while it is open, with its log");
        let killed = dir.path().join("killed");
        copy(&store, &killed);
        memory.maintenance().backup(&dir.path().join("backup")).unwrap();
        memory.maintenance().forget(&todo("canary-todo-c")).unwrap();
        drop(memory);
        let memory = Memory::open(&store, encrypted(engine)).unwrap();
        memory.maintenance().compact().unwrap();
        assert_eq!(memory.maintenance().repair().unwrap().findings, nothing);
        check_whole(&memory);
        drop(memory);
        for copy in [&killed, &dir.path().join("backup")] {
            check_whole(&Memory::open(copy, encrypted(engine)).unwrap());
        }
        assert_eq!(seen(dir.path(), &vector), nothing, "{engine}: after everything");
        assert!(files(&store).iter().any(|path| path.ends_with("vectors.i8")), "{engine}");
        // The same in a store that is not encrypted: the search would have found them.
        let open = dir.path().join("open");
        fill(&Memory::open(&open, plain(engine)).unwrap());
        assert_eq!(
            seen(&open, &vector).len(),
            CANARIES.len() + 1,
            "{engine}: {:?}",
            seen(&open, &vector)
        );
    }
}

#[test]
fn s14_a_store_opens_with_its_own_key_alone() {
    for engine in engines() {
        let dir = tempdir().unwrap();
        let (store, open) = (dir.path().join("store"), dir.path().join("open"));
        let other = EncryptionKey::new([8; 32]);
        drop(Memory::open(&store, encrypted(engine)).unwrap());
        // An empty store may still become encrypted.
        Memory::open(&open, plain(engine)).unwrap().session(&todo("a")).unwrap();
        let kind =
            |dir: &Path, options: Options| Memory::open(dir, options).map(drop).unwrap_err().kind();
        for mode in [Mode::ReadOnly, Mode::ReadWrite] {
            assert_eq!(kind(&store, plain(engine).with_mode(mode)), ErrorKind::Key);
            let wrong = plain(engine).with_encryption(other.clone()).with_mode(mode);
            assert_eq!(kind(&store, wrong), ErrorKind::Key);
            assert_eq!(kind(&open, encrypted(engine).with_mode(mode)), ErrorKind::Key);
        }
        let format = |dir: &Path| fs::read_to_string(dir.join("FORMAT")).unwrap();
        assert_eq!(
            format(&store),
            format!("foldback store\nversion 5\nengine {engine}\nencrypted\n")
        );
        assert_eq!(format(&open), format!("foldback store\nversion 4\nengine {engine}\n"));
        // A recreated format file says so, too: the records show it.
        fs::remove_file(store.join("FORMAT")).unwrap();
        foldback_kv::repair_format(&store).unwrap();
        assert_eq!(kind(&store, plain(engine)), ErrorKind::Key);
        foldback_kv::rekey(&store, engine, &EncryptionKey::new(KEY), &other).unwrap();
        assert_eq!(kind(&store, encrypted(engine)), ErrorKind::Key);
        drop(Memory::open(&store, plain(engine).with_encryption(other)).unwrap());
    }
}

#[test]
fn s14_whatever_is_put_in_the_place_of_a_file_is_noticed() {
    let dir = tempdir().unwrap();
    let (store, other) = (dir.path().join("store"), dir.path().join("other"));
    for store in [&store, &other] {
        fill(&Memory::open(store, encrypted(Engine::Sqlite)).unwrap());
    }
    let is_noticed = || {
        let options = encrypted(Engine::Sqlite).with_mode(Mode::ReadOnly);
        let checkup = Memory::open(&store, options).unwrap().maintenance().doctor().unwrap();
        !checkup.findings.is_empty()
    };
    assert!(!is_noticed());
    let below = |name: &str| {
        files(&store.join(name)).into_iter().filter(|path| fs::metadata(path).unwrap().len() > 0)
    };
    let payloads: Vec<_> = below("payloads").collect();
    // One file of each kind in a todo's index, and in the volumes.
    let mut kinds = BTreeSet::new();
    let is_volume = |path: &Path| path.starts_with(store.join("index/all"));
    let is_another = |path: &PathBuf| kinds.insert((is_volume(path), kind(path)));
    let indexes: Vec<_> = below("index").filter(is_another).collect();
    assert_eq!(payloads.len(), 2);
    let (of_this, of_other) = (files(&store), files(&other));
    let mut tried = 0;
    for path in payloads.iter().chain(&indexes) {
        let whole = fs::read(path).unwrap();
        let mut forged = vec![whole[..whole.len() - 1].to_vec()];
        forged.extend((0..whole.len()).step_by(whole.len() / 2 + 1).map(|at| {
            let mut flipped = whole.clone();
            flipped[at] ^= 8;
            flipped
        }));
        // The file of the same name or kind, of another todo and of another store with the same key.
        let is_alike = |other: &&PathBuf| kind(other) == kind(path) && *other != path;
        let alike = of_this.iter().chain(&of_other).filter(is_alike);
        forged.extend(
            alike
                .map(|other| fs::read(other).unwrap())
                .filter(|other| !other.is_empty() && *other != whole)
                .take(2),
        );
        for forged in forged {
            fs::write(path, forged).unwrap();
            tried += 1;
            assert!(is_noticed(), "{}", path.display());
        }
        fs::write(path, whole).unwrap();
    }
    assert!(tried > 60, "{tried}");
    // Chunks of one payload, exchanged.
    let whole = fs::read(&payloads[0]).unwrap();
    let mut swapped = whole.clone();
    swapped[16..10_016].copy_from_slice(&whole[200_016..210_016]);
    swapped[200_016..210_016].copy_from_slice(&whole[16..10_016]);
    fs::write(&payloads[0], swapped).unwrap();
    assert!(is_noticed());
    fs::write(&payloads[0], whole).unwrap();
    assert!(!is_noticed());
}

/// The kind of a file: its name if that is fixed, else its ending.
fn kind(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    match name.rsplit('.').next() {
        _ if name.len() == 64 => "payload".to_owned(),
        Some(end) if end != "json" => end.to_owned(),
        _ => name,
    }
}

/// Copies a folder as a killed process leaves it.
fn copy(from: &Path, to: &Path) {
    for path in files(from) {
        let copy = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&path, copy).unwrap();
    }
}
