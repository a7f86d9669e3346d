//! `foldback bench scale`, on a server of its own.

use crate::shell::{Ran, Shell};
use foldback_testkit::postgres::Server;

/// C1: the ladders in a database have a step for each power of ten; nothing is left in
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
    let ran = bench(&["--blocks", "100", "--todos", "10"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let measured = ran.json();
    let steps = measured["steps"].as_array().unwrap();
    let todos: Vec<_> = steps.iter().map(|step| step["todos"].as_u64().unwrap()).collect();
    assert_eq!(todos, [1, 1, 10]);
    for step in steps {
        let of = |key: &str| step[key].as_f64().unwrap();
        assert!(of("blocks") >= of("todos") && of("messages") > of("blocks"), "{step}");
        assert!(of("append_p50") > 0.0 && of("own_commit_p50") > 0.0, "{step}");
        assert!(of("first_ms") > 0.0 && of("connections") > 1.0, "{step}");
        let (all, record) = (&step["bytes"]["all"], &step["bytes"]["record"]);
        assert!(all.as_u64().unwrap() > record.as_u64().unwrap(), "{step}");
        assert!(record.as_f64().unwrap() > of("raw_bytes"), "{step}");
    }
    // Two points are no slope.
    assert_eq!(measured["slopes"], serde_json::json!([]));
    let ran = bench(&["--blocks", "0", "--todos", "10", "--blocks-each", "1"]);
    assert_eq!(ran.json()["steps"][0]["blocks"], 10, "{ran:?}");
    let ran = bench(&["--store", "x"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let left =
        server.sql("test_0", "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'foldback%'");
    assert_eq!(left, "");
}

/// C1: two nodes beside one, each of them started through a command.
#[test]
fn c1_two_nodes_are_measured_beside_one() {
    let Some(server) = Server::start("c1_two_nodes_are_measured_beside_one") else { return };
    let (shell, address) = (Shell::new(), server.database());
    let bench = |node_command: &str| {
        let mut command = shell.command();
        command.args(["--json", "--engine", &address, "bench", "scale", "--nodes", "1"]);
        command.args(["--seconds", "2", "--node-command", node_command]);
        Ran::of(command.output().unwrap())
    };
    let ran = bench("nice -n 1");
    assert_eq!(ran.code, 0, "{ran:?}");
    let measured = ran.json();
    let steps = measured["steps"].as_array().unwrap();
    let of = |step: &serde_json::Value| {
        (step["does"].as_str().unwrap().to_owned(), step["nodes"].as_u64().unwrap())
    };
    let expected = [("append", 1), ("append", 2), ("search", 1), ("search", 2)];
    let expected = expected.map(|(does, nodes)| (does.to_owned(), nodes));
    assert_eq!(steps.iter().map(of).collect::<Vec<_>>(), expected);
    for step in steps {
        assert!(step["per_s"].as_f64().unwrap() > 0.0, "{step}");
    }
    let ran = bench("no-such-command");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("no-such-command"), "{ran:?}");
}
