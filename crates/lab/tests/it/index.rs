//! The counts of a ladder are the same each time.

use foldback_lab::index::{Part, Rung};
use serde_json::Value;
use tempfile::tempdir;

fn run(part: &Part) -> Value {
    part.run().unwrap()
}

#[test]
fn a_step_holds_the_same_blocks_and_bytes_each_time() {
    for rung in [Rung { todos: 1, blocks_each: 40 }, Rung { todos: 7, blocks_each: 3 }] {
        let [first, second] = [(); 2].map(|()| {
            let dir = tempdir().unwrap();
            run(&Part::Climb { rung, store: dir.path().join("store") })
        });
        let least = u64::from(rung.todos * rung.blocks_each);
        assert!(first["blocks"].as_u64().unwrap() >= least, "{first}");
        for key in ["todos", "blocks", "messages", "raw_mb"] {
            assert_eq!(first[key], second[key], "{key}");
        }
    }
}

#[test]
fn all_todos_are_searched_as_the_truth_would_answer() {
    let dir = tempdir().unwrap();
    let store = dir.path().join("store");
    let first = run(&Part::AllTodos { todos: 3, store: store.clone() });
    let grown = run(&Part::AllTodos { todos: 8, store: store.clone() });
    assert_eq!((&first["messages"], &grown["messages"]), (&300.into(), &800.into()));
    assert!(grown["blocks"].as_u64() > first["blocks"].as_u64(), "{first} {grown}");
    assert!(grown["recall_at_10"].as_f64().unwrap() >= 0.97, "{grown}");
    for evicted in [false, true] {
        let asked = run(&Part::AllTodosAsk { todos: 8, at: 0, evicted, store: store.clone() });
        assert!(asked["first_hit_ms"].as_f64().unwrap() > 0.0, "{asked}");
    }
}

#[test]
fn a_store_is_opened_and_appended_to_as_it_was_left() {
    let dir = tempdir().unwrap();
    let rung = Rung { todos: 3, blocks_each: 3 };
    let store = dir.path().join("store");
    run(&Part::Climb { rung, store: store.clone() });
    let started = run(&Part::ClimbOpen { rung, store: store.clone() });
    assert!(started["first_hit_ms"].as_f64() >= started["open_ms"].as_f64());
    run(&Part::ClimbAppends { rung, store, marks: dir.path().to_owned() });
    assert!(dir.path().join("counting-ends").exists());
    // Nothing is created from nothing: no todo of that store is known here.
    let missing = Part::ClimbOpen { rung, store: dir.path().join("other") };
    assert!(missing.run().is_err());
}
