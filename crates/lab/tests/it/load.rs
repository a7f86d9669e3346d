//! The counts of a store under load are the same each time, whatever else the machine does.

use foldback_lab::index::{Load, Part, Rung};
use serde_json::{Value, json};
use tempfile::tempdir;

fn run(part: &Part) -> Value {
    part.run().unwrap()
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap()
}

#[test]
fn r7_c7_churn_returns_space() {
    let dir = tempdir().unwrap();
    let churned = run(&Part::Churn { days: 6, todos_a_day: 60, store: dir.path().join("store") });
    assert_eq!(churned["findings"], json!([]));
    let days = churned["days"].as_array().unwrap();
    let todos: Vec<_> = days.iter().map(|day| day["todos"].as_u64().unwrap()).collect();
    assert_eq!(todos, [6, 12, 18, 18, 18, 18], "as much goes as comes");
    // From the third evening on the number of todos is constant, and so are the files and, nearly, the
    // bytes.
    let [third, last] = [&days[2], &days[5]];
    assert!(number(last, "files") <= number(third, "files"), "{third} {last}");
    assert!(number(last, "disk_mb") <= 1.1 * number(third, "disk_mb"), "{third} {last}");
    for day in days {
        assert!(number(day, "disk_mb") < number(day, "before_mb"), "{day}");
    }
    assert!(number(last, "disk_over_live") <= 1.5, "{last}");
}

#[test]
fn c6_readers_and_writers_do_not_stop_each_other() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("store");
    let beside =
        |writers| run(&Part::Readers { readers: 3, writers, searches: 40, store: store.clone() });
    let (idle, busy) = (beside(0), beside(2));
    assert_eq!((&idle["searches"], &idle["writes"]), (&json!(120), &json!(0)));
    assert_eq!(busy["searches"], 120);
    assert!(number(&busy, "writes") >= 2.0, "{busy}");
}

#[test]
fn p6_single_adds_do_not_slow_search() {
    let dir = tempdir().unwrap();
    let grown = run(&Part::SingleAdds { blocks: 300, adds: 1_200, store: dir.path().to_owned() });
    // The work of a search: less than a batch of unindexed blocks, and hardly more files.
    assert!(number(&grown, "blocks") >= 500.0, "{grown}");
    assert!(number(&grown, "settled_behind") < 256.0, "{grown}");
    assert!(number(&grown, "files") <= number(&grown, "bulk_files") + 20.0, "{grown}");
}

#[test]
fn r8_an_index_comes_back_without_the_embedder() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("store");
    run(&Part::Unindexed { indexed: 300, blocks: 280, store: store.clone() });
    let reopened = run(&Part::Reopened { store });
    assert_eq!((&reopened["embedded"], &reopened["findings"]), (&json!(0), &json!([])));
    assert!(number(&reopened, "unindexed") >= 280.0, "{reopened}");
    assert!(number(&reopened, "blocks") >= 580.0, "{reopened}");
}

#[test]
fn c5_parts_of_a_payload_are_read_by_themselves() {
    let dir = tempdir().unwrap();
    let stored = run(&Part::Payload { megabytes: 24, store: dir.path().join("store") });
    assert_eq!(stored["ranges_bytes"], 101 * (64 << 10));
    assert!(number(&stored, "stored_mb") < 12.0, "{stored}");
}

#[test]
fn c2_files_do_not_grow_with_todos() {
    fn files(dir: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
    }
    let [few, many] = [20, 70].map(|todos| {
        let dir = tempdir().unwrap();
        run(&Part::Climb { rung: Rung { todos, blocks_each: 3 }, store: dir.path().join("store") });
        files(dir.path())
    });
    assert_eq!(few, many);
}

#[test]
fn steps_end_where_they_are_told_to() {
    assert_eq!(Load::AllTodos.steps(Some(5_000)), [100, 1_000]);
    assert_eq!(Load::AllTodos.steps(None), [100, 1_000, 10_000]);
    assert!(Load::Reopening.steps(Some(99)).is_empty());
    assert_eq!(Load::Payloads.steps(None), [1, 10, 100, 1_000]);
    assert_eq!(Load::Readers.steps(Some(4)), [1, 2, 4]);
    assert_eq!(Load::SingleAdds.steps(Some(2_500)), [200, 2_000]);
    assert_eq!(Load::Churn { days: 3 }.steps(Some(7)), [7]);
}
