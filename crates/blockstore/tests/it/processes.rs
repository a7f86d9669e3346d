//! R10: several processes on one store. Each open store represents a process of its own.

use crate::fixture::{Writer, ask, eager, numbers};
use std::sync::Barrier;
use std::thread;

#[test]
fn r10_a_block_of_another_process_is_found_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = Writer::on_disk(dir.path(), eager());
    one.lines(&["apple"]);
    for round in 0..30u32 {
        // Each round another process writes, and the other one searches and keeps the index.
        let mut other = Writer::on_disk(dir.path(), eager());
        let word = format!("fruit{round}");
        other.lines(&[&word]);
        assert_eq!(numbers(&ask(&one.store, &one.todo, &word, 1)), [round + 2]);
        assert_eq!(numbers(&ask(&other.store, &other.todo, &word, 1)), [round + 2]);
        let keeper = if round % 2 == 0 { &one } else { &other };
        keeper.store.maintain(&keeper.todo).unwrap();
        assert_eq!(numbers(&ask(&one.store, &one.todo, &word, 1)), [round + 2]);
        assert_eq!(numbers(&ask(&one.store, &one.todo, "apple", 1)), [1]);
    }
    assert_eq!(one.store.doctor(&one.todo, false).unwrap(), []);
}

#[test]
fn r10_writers_searchers_and_keepers_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let config = eager().with_index_after_blocks(20).with_batch_blocks(8);
    drop(Writer::on_disk(dir.path(), config.clone()));
    let begin = Barrier::new(4);
    thread::scope(|scope| {
        for keeper in 0..2 {
            let (begin, dir, config) = (&begin, dir.path(), config.clone());
            scope.spawn(move || {
                let keep = Writer::on_disk(dir, config);
                begin.wait();
                for _ in 0..40 {
                    keep.store.maintain(&keep.todo).unwrap();
                    ask(&keep.store, &keep.todo, "line", 3);
                    thread::sleep(std::time::Duration::from_millis(5 + keeper));
                }
            });
        }
        scope.spawn(|| {
            let mut writer = Writer::on_disk(dir.path(), config.clone());
            begin.wait();
            for i in 0..150u32 {
                writer.lines(&[&format!("line unique{i}x")]);
                let found = ask(&writer.store, &writer.todo, &format!("unique{i}x"), 1);
                assert_eq!(numbers(&found), [i + 1]);
            }
        });
        scope.spawn(|| {
            let reader = Writer::on_disk(dir.path(), config.clone());
            begin.wait();
            loop {
                let last = reader.store.last_block(&reader.todo).unwrap();
                let Some(n) = last.map(|block| block.header.block_id.n()) else { continue };
                let question = format!("unique{}x", n - 1);
                assert_eq!(numbers(&ask(&reader.store, &reader.todo, &question, 1)), [n]);
                if n == 150 {
                    break;
                }
            }
        });
    });
    let after = Writer::on_disk(dir.path(), config);
    after.store.maintain(&after.todo).unwrap();
    assert_eq!(after.store.doctor(&after.todo, false).unwrap(), []);
    assert!(after.store.searcher(&after.todo).unwrap().blocks_on_disk() > 100);
}
