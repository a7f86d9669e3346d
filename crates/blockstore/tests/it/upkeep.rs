//! Upkeep of indexes while others index, forget, or are killed.

use crate::fixture::{Writer, ask, eager, numbers};
use foldback_kv::{Batch, Delete, Key, Registry, Space};
use std::path::Path;

fn folders(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// S9: killed before the records are gone, everything still exists.
#[test]
fn s9_forgetting_that_is_cut_short_before_the_records_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::indexed(dir.path());
    writer.lines(&["apple", "banana", "樱桃"]);
    writer.store.maintain(&writer.todo).unwrap();
    drop(writer.store.forget(&writer.todo));
    let later = writer.reader(Some(dir.path()), eager());
    assert_eq!(later.sweep_forgotten().unwrap(), 0);
    assert_eq!(later.searcher(&writer.todo).unwrap().blocks_on_disk(), 3);
    assert_eq!(numbers(&ask(&later, &writer.todo, "樱桃", 1)), [3]);
}

/// S9: killed after the records are gone, or while another process was indexing, an index may be left, whole or in
/// part; the next process sweeps it, and nothing else.
#[test]
fn s9_forgetting_that_is_cut_short_after_the_records_leaves_no_index() {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join("index");
    let kv = foldback_kv::memory();
    let mut writers: Vec<Writer> =
        ["a", "b", "c"].map(|id| Writer::on(kv.clone(), Some(&index), eager(), id)).into();
    for writer in &mut writers {
        writer.lines(&["the canary sings", "金丝雀在唱歌"]);
        writer.store.maintain(&writer.todo).unwrap();
    }
    assert_eq!(folders(&index), ["1", "2", "3"]);
    let forgotten = &writers[1];
    let delete = forgotten.store.forget(&forgotten.todo);
    Registry::new(kv.clone()).remove(&forgotten.todo, delete).unwrap();
    std::fs::create_dir(index.join("notes")).unwrap();
    // Killed here.
    assert_eq!(ask(&forgotten.store, &forgotten.todo, "canary", 3), []);
    let next = writers[0].reader(Some(&index), eager());
    assert_eq!(next.sweep_forgotten().unwrap(), 1);
    assert_eq!(next.sweep_forgotten().unwrap(), 0);
    assert_eq!(folders(&index), ["1", "3", "notes"]);
    // Killed while the index was being deleted.
    std::fs::create_dir_all(index.join("4.gone/tantivy")).unwrap();
    std::fs::write(index.join("4.gone/vectors.i8"), b"words").unwrap();
    assert_eq!(next.sweep_forgotten().unwrap(), 1);
    assert_eq!(folders(&index), ["1", "3", "notes"]);
    assert_eq!(numbers(&ask(&next, &writers[2].todo, "canary", 1)), [1]);
    assert!(next.searcher(&writers[2].todo).unwrap().blocks_on_disk() == 2);
}

/// S9: a todo that is being indexed is forgotten all the same, and the process that indexes it leaves nothing.
#[test]
fn s9_a_todo_that_is_being_indexed_is_forgotten() {
    for turn in 0..12u64 {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index");
        let mut writer = Writer::on(foldback_kv::memory(), Some(&index), eager(), "t");
        writer.fill(turn, 1_500);
        let other = writer.reader(Some(&index), eager());
        std::thread::scope(|scope| {
            let indexing = scope.spawn(|| other.maintain(&writer.todo));
            while !index.join("1/tantivy").exists() && !indexing.is_finished() {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(turn * 5));
            let delete = writer.store.forget(&writer.todo);
            Registry::new(writer.kv.clone()).remove(&writer.todo, delete).unwrap();
            writer.store.remove_index(&writer.todo).unwrap();
            indexing.join().unwrap().unwrap();
        });
        assert_eq!(folders(&index), Vec::<String>::new(), "turn {turn}");
    }
}

/// Upkeep by a process that does not know how far another has come.
#[test]
fn r10_upkeep_after_another_process_indexed_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::indexed(dir.path());
    writer.lines(&["apple", "banana"]);
    let slow = writer.reader(Some(dir.path()), eager());
    slow.maintain(&writer.todo).unwrap();
    writer.lines(&["cherry", "durian", "elderberry"]);
    assert_eq!(writer.store.maintain(&writer.todo).unwrap().indexed, 3);
    let done = slow.maintain(&writer.todo).unwrap();
    assert_eq!((done.indexed, done.ahead, done.dropped), (0, false, None));
    assert_eq!(slow.searcher(&writer.todo).unwrap().blocks_on_disk(), 5);
    assert_eq!(slow.index_lag(&writer.todo).unwrap(), 0);
    // And one who knows more blocks than there are now.
    let todo = writer.todo.no();
    let delete = vec![Delete::one(Key { space: Space::Block, todo, n: 5 })];
    writer.kv.commit(Batch { delete, ..Batch::default() }).unwrap();
    for store in [&slow, &writer.store] {
        assert_eq!(store.maintain(&writer.todo).unwrap().indexed, 0);
        assert_eq!(store.index_lag(&writer.todo).unwrap(), 0);
        assert_eq!(numbers(&ask(store, &writer.todo, "durian", 1)), [4]);
    }
}

/// R4: one damaged block is not found, and does not hide the others, with an index and without.
#[test]
fn r4_a_search_passes_over_a_damaged_block() {
    let dir = tempfile::tempdir().unwrap();
    for index in [None, Some(dir.path())] {
        let kv = foldback_kv::memory();
        let mut writer = Writer::on(kv, index, eager(), "t");
        writer.lines(&["apple pie", "apple tart", "apple juice"]);
        writer.store.maintain(&writer.todo).unwrap();
        assert_eq!(ask(&writer.store, &writer.todo, "apple", 3).len(), 3);
        let key = Key { space: Space::Block, todo: writer.todo.no(), n: 2 };
        let put = vec![(key, b"\xc1 garbage".to_vec())];
        writer.kv.commit(Batch { put, ..Batch::default() }).unwrap();
        // By a store that had indexed it before, and by one that is opened now.
        for store in [&writer.store, &writer.reader(index, eager())] {
            let mut found = numbers(&ask(store, &writer.todo, "apple", 3));
            found.sort_unstable();
            assert_eq!(found, [1, 3], "{index:?}");
        }
    }
}
