//! The graph over a large todo's vectors: a cache that no search waits for.

use crate::fixture::{MODEL, Random, Writer, ask, eager, numbers};
use foldback_blockstore::{BlockStore, FindingKind, Hit, IndexConfig};
use foldback_kv::Registry;
use std::path::Path;

fn graph() -> IndexConfig {
    IndexConfig::default()
        .with_index_after_passages(0)
        .with_index_after_blocks(0)
        .with_batch_blocks(1)
        .with_hnsw_after_vectors(1_000)
        .with_cache_bytes(64 << 20)
}

fn without_graph() -> IndexConfig {
    eager().with_hnsw_after_vectors(usize::MAX)
}

/// A todo of 1,500 vectors that is indexed, and whose graph is due.
fn writer(dir: &Path) -> Writer {
    let mut writer = Writer::on(foldback_kv::memory(), Some(dir), graph(), "t");
    writer.fill(71, 1_500);
    let done = writer.store.maintain(&writer.todo).unwrap();
    assert!(done.graph_due && !done.graph_built, "{done:?}");
    writer
}

fn answers(writer: &Writer, store: &BlockStore) -> Vec<Vec<Hit>> {
    let mut random = Random::new(4);
    (0..40).map(|_| ask(store, &writer.todo, &random.line(5), 10)).collect()
}

fn graph_files(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir.join("1")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("graph") && name != "graph.lock").collect()
}

/// How many of the hits that a scan gives are given with the graph too, each to the last bit.
fn share(scanned: &[Vec<Hit>], found: &[Vec<Hit>]) -> f64 {
    let (mut same, mut all) = (0, 0);
    for (scanned, found) in scanned.iter().zip(found) {
        assert_eq!(scanned.first(), found.first());
        for hit in scanned {
            all += 1;
            let id = &hit.block.header.block_id;
            if let Some(other) = found.iter().find(|other| other.block.header.block_id == *id) {
                assert_eq!(other, hit);
                same += 1;
            }
        }
    }
    f64::from(same) / f64::from(all)
}

/// P5, P7: a search answers by scanning until the graph is loaded, and as well with it.
#[test]
fn p5_a_graph_that_is_not_loaded_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let scanned = answers(&writer, &writer.reader(None, without_graph()));
    let built = writer.store.build_graph(&writer.todo).unwrap();
    assert!(built.graph_built && !built.graph_due, "{built:?}");
    assert!(!writer.store.build_graph(&writer.todo).unwrap().graph_built, "it is there");
    // The first search of a process scans.
    for (question, scanned) in [(0, &scanned[0]), (1, &scanned[1])] {
        let later = writer.reader(Some(dir.path()), graph());
        let mut random = Random::new(4);
        let line = (0..=question).map(|_| random.line(5)).last().unwrap();
        assert_eq!(&ask(&later, &writer.todo, &line, 10), scanned);
    }
    let later = writer.reader(Some(dir.path()), graph());
    let searcher = later.searcher(&writer.todo).unwrap();
    assert!(searcher.load_graph() >= 1_500);
    let with_graph = answers(&writer, &later);
    assert!(share(&scanned, &with_graph) >= 0.99);
    // The process that built it has it loaded, and gives the same.
    assert_eq!(answers(&writer, &writer.store), with_graph);
}

/// A search that runs while the graph is loaded in the background is never wrong.
#[test]
fn p5_searches_beside_the_loading_of_a_graph() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let scanned = answers(&writer, &writer.reader(None, without_graph()));
    writer.store.build_graph(&writer.todo).unwrap();
    let later = writer.reader(Some(dir.path()), graph());
    assert!(share(&scanned, &answers(&writer, &later)) >= 0.99);
    assert!(later.searcher(&writer.todo).unwrap().load_graph() >= 1_500);
    assert!(share(&scanned, &answers(&writer, &later)) >= 0.99);
}

/// A process that closes abandons a graph, and leaves everything as it was.
#[test]
fn a_graph_is_given_up_without_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    writer.store.stop_building();
    let done = writer.store.build_graph(&writer.todo).unwrap();
    assert!(done.graph_due && !done.graph_built && !done.busy, "{done:?}");
    assert_eq!(graph_files(dir.path()), Vec::<String>::new());
    // In the middle of it, too.
    let other = writer.reader(Some(dir.path()), graph());
    let done = std::thread::scope(|scope| {
        let build = scope.spawn(|| other.build_graph(&writer.todo).unwrap());
        other.stop_building();
        build.join().unwrap()
    });
    assert_eq!(done.graph_built, !graph_files(dir.path()).is_empty());
    assert_eq!(writer.store.doctor(&writer.todo, false).unwrap(), []);
    // Appending is not stopped, and another process builds what was abandoned.
    writer.fill(72, 900);
    assert!(writer.store.maintain(&writer.todo).unwrap().indexed > 0);
    let next = writer.reader(Some(dir.path()), graph());
    assert!(next.build_graph(&writer.todo).unwrap().graph_built);
    assert!(next.searcher(&writer.todo).unwrap().load_graph() >= 2_400);
}

/// R11: a graph whose files are damaged is detected when it is loaded, skipped, and rebuilt.
#[test]
fn r11_a_damaged_graph_is_passed_over_and_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    writer.store.build_graph(&writer.todo).unwrap();
    let scanned = answers(&writer, &writer.reader(None, without_graph()));
    let files = graph_files(dir.path());
    assert_eq!(files.len(), 3, "{files:?}");
    for name in files {
        let path = dir.path().join("1").join(&name);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let store = writer.reader(Some(dir.path()), graph());
        assert_eq!(store.searcher(&writer.todo).unwrap().load_graph(), 0, "{name}");
        assert_eq!(answers(&writer, &store), scanned, "{name}");
        assert!(store.maintain(&writer.todo).unwrap().graph_due, "{name}");
        assert!(store.build_graph(&writer.todo).unwrap().graph_built, "{name}");
        let later = writer.reader(Some(dir.path()), graph());
        assert!(later.searcher(&writer.todo).unwrap().load_graph() >= 1_500, "{name}");
    }
}

/// An existing graph is not used by a store that wants none, and is neither loaded nor removed.
#[test]
fn p5_a_graph_that_is_switched_off_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let scanned = answers(&writer, &writer.reader(None, without_graph()));
    writer.store.build_graph(&writer.todo).unwrap();
    let without = writer.reader(Some(dir.path()), without_graph());
    assert!(without.searcher(&writer.todo).unwrap().blocks_on_disk() > 0);
    assert_eq!(without.searcher(&writer.todo).unwrap().load_graph(), 0);
    assert_eq!(answers(&writer, &without), scanned);
    assert!(!without.build_graph(&writer.todo).unwrap().graph_built);
    let with = writer.reader(Some(dir.path()), graph());
    assert!(with.searcher(&writer.todo).unwrap().load_graph() >= 1_500, "it is still there");
}

/// R11: a check finds a damaged graph, whatever part of it is damaged, and a repair leaves none, which is as good,
/// while the index stays as it is.
#[test]
fn r11_a_check_finds_a_damaged_graph() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let vectors = dir.path().join("1/vectors.i8");
    let before = std::fs::metadata(&vectors).unwrap().modified().unwrap();
    writer.store.build_graph(&writer.todo).unwrap();
    assert_eq!(writer.store.doctor(&writer.todo, true).unwrap(), []);
    let files = graph_files(dir.path());
    assert_eq!(files.len(), 3, "{files:?}");
    for name in files {
        let path = dir.path().join("1").join(&name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 2]).unwrap();
        for repair in [false, true] {
            let findings = writer.store.doctor(&writer.todo, repair).unwrap();
            let [finding] = findings.as_slice() else { panic!("{name}: {findings:?}") };
            assert_eq!((finding.kind, finding.repaired), (FindingKind::IndexDamaged, repair));
            assert!(finding.detail.contains("the graph"), "{name}: {finding}");
        }
        assert_eq!(graph_files(dir.path()), Vec::<String>::new(), "{name}");
        assert_eq!(writer.store.doctor(&writer.todo, false).unwrap(), []);
        assert!(writer.store.build_graph(&writer.todo).unwrap().graph_built, "{name}");
    }
    assert_eq!(std::fs::metadata(&vectors).unwrap().modified().unwrap(), before);
}

/// A graph stays in use while blocks are appended after those that it holds.
#[test]
fn a_graph_and_what_came_behind_it_are_searched_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    writer.store.build_graph(&writer.todo).unwrap();
    let held = writer.store.searcher(&writer.todo).unwrap().load_graph();
    writer.fill(73, 300).lines(&["quite another thing altogether"]);
    let done = writer.store.maintain(&writer.todo).unwrap();
    assert!(done.indexed > 0 && !done.graph_due, "{done:?}");
    assert_eq!(writer.store.searcher(&writer.todo).unwrap().load_graph(), held);
    let vector = foldback_core::Embedder::embed(&MODEL, &["another altogether"]).unwrap();
    let request =
        foldback_blockstore::SearchRequest::new("").k(1).vector(&MODEL, vector.row(0).unwrap());
    let searcher = writer.store.searcher(&writer.todo).unwrap();
    let hits = searcher.search(&request).unwrap();
    assert_eq!(numbers(&hits), [searcher.blocks()]);
}

/// S9: a graph that is being built when its todo is forgotten leaves nothing behind.
#[test]
fn s9_a_graph_of_a_forgotten_todo_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let other = writer.reader(Some(dir.path()), graph());
    assert!(other.searcher(&writer.todo).unwrap().blocks_on_disk() > 0);
    let delete = writer.store.forget(&writer.todo);
    Registry::new(writer.kv.clone()).remove(&writer.todo, delete).unwrap();
    writer.store.remove_index(&writer.todo).unwrap();
    // It still has the vectors, and was not notified.
    let done = other.build_graph(&writer.todo).unwrap();
    assert!(!done.graph_built && !done.graph_due, "{done:?}");
    assert!(!dir.path().join("1").exists());
}
