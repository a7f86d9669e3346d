//! `foldback bench scale`, on a server of its own.

use crate::shell::{Ran, Shell};
use foldback_testkit::postgres::Server;

/// C1: the ladders in a database have a step for each power of ten, and slopes where there are three; nothing is left in
/// the database.
#[test]
fn c1_the_ladders_of_a_database_are_climbed() {
    let Some(server) = Server::start("c1_the_ladders_of_a_database_are_climbed") else { return };
    let (shell, address) = (Shell::new(), server.database());
    let bench = |arguments: &[&str]| {
        let mut command = shell.command();
        command.args(["--json", "--engine", &address, "bench", "scale"]).args(arguments);
        Ran::of(command.output().unwrap())
    };
    let ran = bench(&["--blocks", "0", "--todos", "1000"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let measured = ran.json();
    let steps = measured["steps"].as_array().unwrap();
    let todos: Vec<_> = steps.iter().map(|step| step["todos"].as_u64().unwrap()).collect();
    assert_eq!(todos, [10, 100, 1_000]);
    for step in steps {
        let of = |key: &str| step[key].as_f64().unwrap();
        assert!(of("blocks") >= 3.0 * of("todos") && of("messages") > of("blocks"), "{step}");
        assert!(of("append_p50") > 0.0 && of("own_commit_p50") > of("round_trip_p50"), "{step}");
        assert!(of("first_ms") > 0.0 && of("connections") >= 1.0, "{step}");
        let (all, record) = (&step["bytes"]["all"], &step["bytes"]["record"]);
        assert!(all.as_u64().unwrap() > record.as_u64().unwrap(), "{step}");
        assert!(record.as_f64().unwrap() > of("raw_bytes"), "{step}");
    }
    let slopes = measured["slopes"].as_array().unwrap();
    assert!(slopes.iter().all(|slope| slope["along"] == "todos"), "{measured}");
    let bytes = slopes.iter().find(|slope| slope["figure"] == "database_bytes").unwrap();
    assert!((0.7..1.1).contains(&bytes["slope"]["slope"].as_f64().unwrap()), "{bytes}");
    let ran = bench(&["--store", "x"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let left =
        server.sql("test_0", "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'foldback%'");
    assert_eq!(left, "");
}
