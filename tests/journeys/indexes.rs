//! Law 4, R11: indexes are derived. They can be deleted or damaged at any time and come back.

use crate::story::{engines, exchange, options, todo};
use foldback::{Close, Engine, Memory, Options};
use std::path::{Path, PathBuf};
use tempfile::tempdir;

/// Options under which small todos get indexes on disk.
fn indexed(engine: Engine) -> Options {
    let mut options = options().with_engine(engine);
    options.index.index_after_blocks = 16;
    options.index.hnsw_after_vectors = 64;
    options
}

fn filled(engine: Engine, dir: &Path) {
    let memory = Memory::open(dir, indexed(engine)).unwrap();
    let mut session = memory.session(&todo("indexed")).unwrap();
    for n in 0..60 {
        let result = format!("marker{n:03} stands here");
        session.record_all(exchange(n, &format!("module{n}"), &result).to_vec()).unwrap();
    }
    session.close(Close::End).unwrap();
    memory.maintenance().index().unwrap();
}

/// What each of a few questions finds.
fn answers(engine: Engine, dir: &Path) -> Vec<String> {
    let memory = Memory::open(dir, indexed(engine)).unwrap();
    let found = ["marker007", "module42", "please look at module 13", "marker059 stands"]
        .iter()
        .map(|query| {
            let arguments = serde_json::json!({ "query": query, "k": 2 }).to_string();
            memory.recall(&todo("indexed"), "search_block", &arguments).unwrap().text
        })
        .collect();
    drop(memory);
    await_graphs();
    found
}

/// Waits until no graph is being loaded or built in this process. The library that reads a graph ends
/// the process if its file is truncated meanwhile (`SHORTCOMINGS.md`), and these tests cut files.
fn await_graphs() {
    let is_graph = |task: std::io::Result<std::fs::DirEntry>| {
        let name = task.and_then(|task| std::fs::read_to_string(task.path().join("comm")));
        name.is_ok_and(|name| name.starts_with("foldback-graph"))
    };
    let any = || std::fs::read_dir("/proc/self/task").is_ok_and(|mut tasks| tasks.any(is_graph));
    while any() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn index_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![dir.join("index")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn is_whole(engine: Engine, dir: &Path) {
    let memory = Memory::open(dir, indexed(engine)).unwrap();
    memory.maintenance().repair().unwrap();
    let checkup = memory.maintenance().doctor().unwrap();
    assert_eq!(checkup.findings, Vec::<String>::new());
    assert_eq!(checkup.messages, 240);
}

#[test]
fn r11_a_deleted_index_folder_comes_back() {
    for engine in engines() {
        let dir = tempdir().unwrap();
        filled(engine, dir.path());
        let before = answers(engine, dir.path());
        assert!(!index_files(dir.path()).is_empty(), "there is an index to delete");
        std::fs::remove_dir_all(dir.path().join("index")).unwrap();
        assert_eq!(answers(engine, dir.path()), before);
        Memory::open(dir.path(), indexed(engine)).unwrap().maintenance().index().unwrap();
        assert!(!index_files(dir.path()).is_empty(), "it came back");
        assert_eq!(answers(engine, dir.path()), before);
        is_whole(engine, dir.path());
    }
}

#[test]
fn r4_flipped_bytes_in_an_index_change_no_answer() {
    for engine in engines() {
        let dir = tempdir().unwrap();
        filled(engine, dir.path());
        let before = answers(engine, dir.path());
        // Each repair recreates the files, so they are listed again for each flip.
        for turn in 0..24 {
            let files = index_files(dir.path());
            let file = &files[turn % files.len()];
            let mut bytes = std::fs::read(file).unwrap();
            if bytes.is_empty() {
                continue;
            }
            let at = (turn * 7_919 + 31) % bytes.len();
            bytes[at] ^= 0x55;
            std::fs::write(file, bytes).unwrap();
            assert_eq!(answers(engine, dir.path()), before, "{}: byte {at}", file.display());
            is_whole(engine, dir.path());
        }
    }
}

#[test]
fn r11_truncated_index_files_change_no_answer() {
    for engine in engines() {
        let dir = tempdir().unwrap();
        filled(engine, dir.path());
        let before = answers(engine, dir.path());
        for file in index_files(dir.path()) {
            let len = std::fs::metadata(&file).unwrap().len();
            std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(len / 2).unwrap();
        }
        assert_eq!(answers(engine, dir.path()), before);
        is_whole(engine, dir.path());
    }
}

#[test]
fn a_backup_is_whole_and_refuses_a_folder_in_use() {
    for engine in engines() {
        let dir = tempdir().unwrap();
        let store = dir.path().join("store");
        filled(engine, &store);
        let before = answers(engine, &store);
        let memory = Memory::open(&store, indexed(engine)).unwrap();
        let copy = dir.path().join("copy");
        memory.maintenance().backup(&copy).unwrap();
        assert_eq!(answers(engine, &copy), before);
        is_whole(engine, &copy);
        assert!(
            memory.maintenance().backup(&copy).unwrap_err().to_string().contains("is not empty")
        );
        let names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "nothing is left over: {names:?}");
    }
}
