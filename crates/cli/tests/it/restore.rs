//! Filling a new store from another one.

use crate::shell::{Ran, Shell, line, quay};
use serde_json::json;

const KEY: &str = "c41f7be2903d5a68f7b0e6d1294c8a3b5f60d79e812b4c3a6d5e0f9187c2b4a3";

/// Runs a command on the store in this folder, which is of the engine and encrypted as these say.
fn on(shell: &Shell, folder: &str, engine: &str, key: Option<&str>, args: &[&str]) -> Ran {
    let mut command = shell.command();
    command.arg("--store").arg(shell.path(folder)).args(["--engine", engine]);
    command.envs(key.map(|key| ("FOLDBACK_ENCRYPTION_KEY", key)));
    Ran::of(command.args(args).output().unwrap())
}

/// PG14: a store moves to another engine, into an encrypted store and out of it, and stays what it was.
#[test]
fn pg14_a_store_moves_to_another_engine_and_another_key() {
    let shell = Shell::with_quay();
    shell.ok(&["import", &shell.write("other.jsonl", line("harbour", quay()))]);
    shell.ok(&["grant", "--todo", "quay", "--to", "harbour", "b_quay_001"]);
    let of = |name: &str| shell.path(name).display().to_string();
    shell.ok(&["backup", "copy"]);
    let key_file = shell.write("key", KEY);
    let moves = [
        (of("copy"), "redb", "redb", None, vec![]),
        (of("redb"), "sealed", "sqlite", Some(KEY), vec![]),
        (of("sealed"), "plain", "sqlite", None, vec!["--source-key-file", key_file.as_str()]),
    ];
    for (source, target, engine, key, further) in moves {
        let args = [&["--json", "restore", &source][..], &further].concat();
        let restored = on(&shell, target, engine, key, &args);
        let expected = json!({ "dir": source, "todos": 2, "messages": 2 * quay().len() });
        assert_eq!(restored.json(), expected, "{restored:?}");
        for args in [
            &["export", "--todo", "quay"][..],
            &["todos", "--json"],
            &["todos", "--grants", "--json"],
            &["search", "--todo", "quay", "max_attempts"],
            &["view", "--todo", "quay"],
            &["verify"],
        ] {
            let (found, expected) = (on(&shell, target, engine, key, args), shell.run(args));
            assert_eq!((found.code, found.text()), (0, expected.text()), "{target} {args:?}");
        }
    }
    let refused = on(&shell, "plain", "sqlite", None, &["restore", &of("redb")]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("only a new store can be filled"), "{}", refused.stderr);
    let locked = on(&shell, "unread", "sqlite", None, &["restore", &of("sealed")]);
    assert_eq!(locked.code, 2, "{locked:?}");
    assert!(locked.stderr.contains("--source-key-file"), "{}", locked.stderr);
    let missing = on(&shell, "unread", "sqlite", None, &["restore", &of("nowhere")]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(!shell.path("unread").exists());
}
