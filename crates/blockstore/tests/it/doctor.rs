//! The findings of an exhaustive check, and the result of a repair.

use crate::fixture::{Writer, ask, eager, numbers};
use foldback_blockstore::FindingKind;
use foldback_kv::{Batch, Delete, Key, Space};

fn kinds(writer: &Writer, repair: bool) -> Vec<(FindingKind, bool)> {
    let findings = writer.store.doctor(&writer.todo, repair).unwrap();
    findings.iter().map(|finding| (finding.kind, finding.repaired)).collect()
}

#[test]
fn a_sound_todo_has_no_findings() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::indexed(dir.path());
    assert_eq!(kinds(&writer, false), []);
    writer.fill(5, 700).say("open").commit();
    assert_eq!(kinds(&writer, false), []);
    assert!(writer.store.index_lag(&writer.todo).unwrap() > 300);
    writer.store.maintain(&writer.todo).unwrap();
    assert_eq!(kinds(&writer, false), []);
    assert_eq!(writer.store.index_lag(&writer.todo).unwrap(), 0);
    writer.lines(&["behind the index"]);
    assert_eq!(kinds(&writer, true), []);
    assert_eq!(writer.store.index_lag(&writer.todo).unwrap(), 1);
}

#[test]
fn r4_damage_of_the_truth_is_found() {
    let key = |writer: &Writer, space, n| Key { space, todo: writer.todo.no(), n };
    for (space, n, kind) in [
        (Space::Message, 3, FindingKind::Message),
        (Space::Block, 2, FindingKind::Block),
        (Space::Vector, 4, FindingKind::Vector),
    ] {
        let mut writer = Writer::in_memory();
        writer.lines(&["a", "b", "c", "d", "e", "f"]);
        let put = vec![(key(&writer, space, n), b"\xc1 garbage".to_vec())];
        writer.kv.commit(Batch { put, ..Batch::default() }).unwrap();
        assert_eq!(kinds(&writer, true), [(kind, false)], "{space}");
        if space != Space::Vector {
            let delete = vec![Delete::one(key(&writer, space, n))];
            writer.kv.commit(Batch { delete, ..Batch::default() }).unwrap();
            assert_eq!(kinds(&writer, true), [(kind, false)], "{space}");
        }
    }
    let mut writer = Writer::in_memory();
    writer.lines(&["a", "b"]);
    let put = [Space::Message, Space::Vector].map(|space| {
        (key(&writer, space, 7), writer.kv.get(key(&writer, space, 0)).unwrap().unwrap())
    });
    let delete = vec![Delete::one(key(&writer, Space::Session, 0))];
    writer.kv.commit(Batch { put: put.to_vec(), delete, ..Batch::default() }).unwrap();
    let found = [FindingKind::Message, FindingKind::Vector, FindingKind::Session];
    assert_eq!(kinds(&writer, false), found.map(|kind| (kind, false)));
}

/// What is written during a check is not a finding.
#[test]
fn a_check_beside_a_writer_has_no_findings() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::on_disk(dir.path(), eager());
    writer.fill(6, 100);
    let checker = writer.reader(Some(&dir.path().join("index")), eager());
    let todo = writer.todo.clone();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, writer) = (&stop, &mut writer);
        scope.spawn(move || {
            let mut turn = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                turn += 1;
                writer.fill(turn, 5).say("open").commit();
                if turn % 4 == 0 {
                    writer.store.maintain(&writer.todo).unwrap();
                }
            }
        });
        let found: Vec<_> = (0..20)
            .map(|_| checker.doctor(&todo, false).unwrap())
            .filter(|f| !f.is_empty())
            .collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(found.is_empty(), "{found:?}");
    });
    assert_eq!(kinds(&writer, false), []);
}

/// The store goes back to what it was, and its index does not.
#[test]
fn an_index_that_is_ahead_of_the_truth_is_a_finding_and_is_not_searched() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::on_disk(dir.path(), eager());
    writer.lines(&["first apple", "second banana", "third cherry"]);
    let backup = dir.path().join("backup");
    writer.kv.backup(&backup).unwrap();
    writer.lines(&["fourth lost", "fifth lost"]);
    writer.store.maintain(&writer.todo).unwrap();
    drop(writer);
    std::fs::remove_dir_all(dir.path().join("kv")).unwrap();
    std::fs::rename(backup, dir.path().join("kv")).unwrap();

    let mut writer = Writer::on_disk(dir.path(), eager());
    assert_eq!(
        ask(&writer.store, &writer.todo, "lost", 3).iter().filter(|h| h.bm25 > 0.0).count(),
        0
    );
    assert_eq!(kinds(&writer, false), [(FindingKind::IndexAhead, false)]);
    let done = writer.store.maintain(&writer.todo).unwrap();
    assert!(done.ahead && done.indexed == 0);
    // The same number of blocks, but other ones: still not to be searched.
    writer.lines(&["fourth other", "fifth elderberry"]);
    assert_eq!(kinds(&writer, false), [(FindingKind::IndexAhead, false)]);
    assert_eq!(numbers(&ask(&writer.store, &writer.todo, "elderberry", 1)), [5]);
    assert_eq!(writer.store.searcher(&writer.todo).unwrap().blocks_on_disk(), 0);
    assert_eq!(kinds(&writer, true), [(FindingKind::IndexAhead, true)]);
    assert_eq!(kinds(&writer, false), []);
    assert_eq!(writer.store.searcher(&writer.todo).unwrap().blocks_on_disk(), 5);
    assert_eq!(numbers(&ask(&writer.store, &writer.todo, "elderberry", 1)), [5]);
}

#[test]
fn an_index_that_holds_something_else_is_found_and_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::indexed(dir.path());
    writer.lines(&["apple", "banana", "cherry"]);
    writer.store.maintain(&writer.todo).unwrap();
    // The last block stays as it was, so only the exhaustive comparison detects it.
    let key = Key { space: Space::Message, todo: writer.todo.no(), n: 1 };
    let other = crate::fixture::stored(&foldback_core::Message::user("durian"));
    let put = vec![(key, rmp_serde::to_vec(&other).unwrap())];
    writer.kv.commit(Batch { put, ..Batch::default() }).unwrap();
    assert_eq!(kinds(&writer, false), [(FindingKind::IndexDiffers, false)]);
    assert_eq!(kinds(&writer, true), [(FindingKind::IndexDiffers, true)]);
    assert_eq!(kinds(&writer, false), []);
}
