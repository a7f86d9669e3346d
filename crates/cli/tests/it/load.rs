//! Loading, word for word.

use crate::shell::{Shell, line, quay};
use foldback_core::Role;

/// The payload references of the store's todo `quay`, in order.
fn references(shell: &Shell) -> Vec<String> {
    let blocks = shell.json(&["blocks", "--todo", "quay"]);
    let ids = blocks.as_array().unwrap().iter().flat_map(|b| b["data_ids"].as_array().unwrap());
    ids.map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
fn bs2_payloads_go_out_byte_for_byte() {
    let shell = Shell::with_quay();
    let large: Vec<_> = quay()
        .iter()
        .filter(|message| *message.role() == Role::Tool && message.text().len() > 4_000)
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(large.len(), 2);
    let references = references(&shell);
    assert!(references.len() >= large.len(), "{references:?}");
    for (reference, text) in references.iter().zip(&large) {
        assert_eq!(shell.ok(&["load", "--todo", "quay", reference]).stdout, text.as_bytes());
        // The long form names the todo.
        let long = reference.replace("store://", "store://quay/");
        assert_eq!(shell.ok(&["load", "--todo", "quay", &long]).stdout, text.as_bytes());
    }
}

#[test]
fn bs3_ranges_and_patterns() {
    let shell = Shell::with_quay();
    let sweeper = &references(&shell)[0];
    let text = shell.ok(&["load", "--todo", "quay", sweeper]).text().to_owned();
    let lines: Vec<_> = text.lines().collect();
    let load = |args: &[&str]| {
        let mut all = vec!["load", "--todo", "quay", sweeper];
        all.extend(args);
        shell.run(&all)
    };
    assert_eq!(load(&["--lines", "2-4"]).text(), format!("{}\n", lines[1..4].join("\n")));
    assert_eq!(load(&["--lines", "1"]).text(), "def sweep(store):\n");
    let named = format!("{sweeper}#lines=2-4");
    let by_name = |args: &[&str]| shell.run(&[&["load", "--todo", "quay", &named], args].concat());
    assert_eq!(by_name(&[]).stdout, load(&["--lines", "2-4"]).stdout);
    for twice in [["--lines", "2-4"], ["--match", "rule"], ["--out", "x"]] {
        assert_eq!(by_name(&twice).code, 2, "{twice:?}");
    }
    for bad in [format!("{sweeper}#lines=4-2"), "b_quay_001#lines=2-4".to_owned()] {
        assert_eq!(shell.run(&["load", "--todo", "quay", &bad]).code, 2, "{bad}");
    }
    let last = lines.len().to_string();
    assert_eq!(
        load(&["--lines", &format!("{last}-")]).text(),
        format!("{}\n", lines[lines.len() - 1])
    );
    let found = load(&["--match", "rule \\d:"]);
    assert_eq!((found.code, found.text().lines().count()), (0, 1));
    assert!(found.text().contains("StoreConflict"));
    let around = load(&["--match", "rule \\d:", "--context", "2"]);
    assert_eq!(around.text().lines().count(), 3);
    // If it is cut short, an answer says where to continue; continuing gives the rest.
    let first =
        shell.json(&["load", "--todo", "quay", sweeper, "--lines", "1-", "--max-tokens", "300"]);
    let next = format!("{}-", first["next"].as_str().unwrap());
    let rest = load(&["--lines", &next]);
    let whole = format!("{}{}", first["text"].as_str().unwrap(), rest.text());
    assert_eq!(whole.trim_end(), text.trim_end());

    let nothing = load(&["--match", "no such thing"]);
    assert_eq!((nothing.code, nothing.text()), (1, ""));
    let beyond = load(&["--lines", "90000-90001"]);
    assert_eq!(beyond.code, 1);
    assert!(beyond.stderr.contains(&last), "{}", beyond.stderr);
    for bad in [["--match", "("], ["--match", ""], ["--lines", "4-2"], ["--lines", "x"]] {
        let ran = load(&bad);
        assert_eq!(ran.code, 2, "{bad:?} {ran:?}");
    }
    let block = shell.run(&["load", "--todo", "quay", "b_quay_001", "--lines", "1-2"]);
    assert_eq!(block.code, 2);
}

#[test]
fn s4_references_and_todos_cannot_name_paths() {
    let shell = Shell::with_quay();
    let sweeper = references(&shell)[0].clone();
    for bad in [
        "../../etc/passwd",
        "/etc/passwd",
        "store://../1-abcd",
        "store://1-abcd/../../x",
        "store://%2e%2e/1-abcd",
        "store:///etc/passwd",
        "b_../x_001",
        "file:///etc/passwd",
        "..",
        "\\\\host\\share",
        "store://1-ABCD",
    ] {
        let ran = shell.run(&["load", "--todo", "quay", bad]);
        assert_eq!(ran.code, 2, "{bad}: {ran:?}");
        assert_eq!(ran.stdout, b"", "{bad}");
    }
    let long = "x".repeat(4096);
    for bad in ["", "..", "a/b", "../quay", "/quay", "quay\n", "%2e%2e", "*", "~", long.as_str()] {
        for command in [["view"], ["export"], ["blocks"], ["record"], ["forget"]] {
            let ran = shell.run(&[command[0], "--todo", bad]);
            assert_eq!(ran.code, 2, "{command:?} {bad:?}: {ran:?}");
        }
        let ran = shell.run(&["load", "--todo", bad, &sweeper]);
        assert_eq!(ran.code, 2, "{bad:?}");
    }
    // A mistyped check is reported as such in one's own todo; a missing number is not found.
    let (number, check) = sweeper.rsplit_once('-').unwrap();
    let turned: String = check.chars().rev().collect();
    assert_ne!(turned, check);
    let mistyped = shell.run(&["load", "--todo", "quay", &format!("{number}-{turned}")]);
    assert_eq!(mistyped.code, 1);
    assert!(mistyped.stderr.contains(&sweeper), "{}", mistyped.stderr);
    let none = shell.run(&["load", "--todo", "quay", &format!("store://99-{check}")]);
    assert_eq!(none.code, 1);
}

#[test]
fn s4_a_conversation_whose_id_is_a_path_stays_in_the_store() {
    let shell = Shell::new();
    let file = shell.write("evil.jsonl", line("../../evil/\u{0}", quay()));
    let ran = shell.ok(&["import", &file]);
    assert!(ran.stderr.contains("goes into the todo evil-"), "{}", ran.stderr);
    let outside: Vec<_> = std::fs::read_dir(shell.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(outside.len(), 2, "{outside:?}");
    let todos = shell.json(&["todos"]);
    assert_eq!(todos[0]["foreign_id"], "../../evil/\u{0}");
    let todo = todos[0]["todo_id"].as_str().unwrap();
    let exported = shell.ok(&["export", "--todo", todo]);
    assert_eq!(exported.json()["id"], "../../evil/\u{0}");
}
