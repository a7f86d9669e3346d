//! Bad input is an error that names file, line and what was expected; nothing is half-written.

use crate::shell::{Shell, line, quay};

/// Import and replay of this file have to fail with exit code 2 and a message that says all of
/// `expected`.
#[track_caller]
fn check(name: &str, content: &[u8], expected: &[&str]) {
    let shell = Shell::new();
    let file = shell.write(name, content);
    for command in ["import", "replay"] {
        let ran = shell.run(&[command, &file]);
        assert_eq!(ran.code, 2, "{command}: {ran:?}");
        assert_eq!(ran.stdout, b"", "{command}: {ran:?}");
        for text in expected.iter().chain(&[name]) {
            assert!(ran.stderr.contains(text), "{command}: {text:?} is not in {}", ran.stderr);
        }
        assert!(!shell.store().exists(), "{command} made a store");
    }
}

#[test]
fn an_empty_file() {
    check("empty.jsonl", b"", &["holds no conversation"]);
    check("blank.jsonl", b"\n \n", &["holds no conversation"]);
}

#[test]
fn a_truncated_or_damaged_zst() {
    let packed = zstd::encode_all(line("quay", quay()).as_bytes(), 3).unwrap();
    check("cut.jsonl.zst", &packed[..packed.len() / 2], &["zstd"]);
    let mut flipped = packed;
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    check("flipped.jsonl.zst", &flipped, &["flipped.jsonl.zst"]);
}

#[test]
fn foreign_files() {
    check("notes.txt", b"Dear diary,\n", &["Formats tried: foldback JSON Lines"]);
    check("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &["line 1", "UTF-8"]);
    check("config.json", b"{\"a\": 1}", &["Formats tried: ", "line 1"]);
    check("list.json", b"[1, 2]", &["line 1"]);
}

#[test]
fn broken_text() {
    check(
        "utf8.jsonl",
        b"{\"id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
        &["line 1", "UTF-8"],
    );
    check("cut.jsonl", b"{\"id\":\"a\",\"messages\":[{\"role\":\"user\"", &["line 1"]);
    let second = format!("{}{{\"id\":\"b\",\"messages\":[{{\"role\":7}}]}}\n", line("a", quay()));
    check("second.jsonl", second.as_bytes(), &["line 2", "the key \"role\""]);
    let deep = format!("{{\"id\":\"a\",\"messages\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    check("deep.jsonl", deep.as_bytes(), &["nested"]);
}

#[test]
fn what_is_not_there() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path("none")).unwrap();
    shell.write("none/readme.txt", "nothing to see");
    for (path, expected) in [
        ("missing.jsonl", "missing.jsonl could not be read"),
        ("none", "the folder none holds no conversations"),
    ] {
        for command in ["import", "replay"] {
            let ran = shell.run(&[command, path]);
            assert_eq!(ran.code, 2, "{ran:?}");
            assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        }
    }
}

#[test]
fn one_todo_or_call_is_of_one_conversation() {
    let shell = Shell::new();
    let two = shell.write("two.jsonl", line("a", quay()) + &line("b", quay()));
    for (args, expected) in [
        (["import", "--todo", "x", &two], "--todo names one todo"),
        (["replay", "--at", "1", &two], "--at shows a call of one conversation"),
    ] {
        let ran = shell.run(&args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
        assert!(!shell.store().exists(), "{args:?}");
    }
}

/// Damage in a folder, or beside an intact file, comes with a hint.
#[test]
fn an_error_names_lenient_where_it_helps() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/a.jsonl", "{\"id\":\"a\",\"messages\":[{\"role\":7}]}\n");
    let second = format!("{}not json\n", line("a", quay()));
    let second = shell.write("second.jsonl", second);
    let alone = shell.write("alone.jsonl", "not json\n");
    for (path, helps) in [("logs", true), (&second, true), (&alone, false)] {
        for command in ["import", "replay"] {
            let ran = shell.run(&[command, path]);
            assert_eq!((ran.code, ran.stderr.contains("--lenient")), (2, helps), "{ran:?}");
        }
        let ran = shell.run(&["embedder", "calibrate", path]);
        assert!(ran.code == 2 && !ran.stderr.contains("--lenient"), "{ran:?}");
    }
}

#[test]
fn no_store_is_made_by_looking() {
    let shell = Shell::new();
    for args in [
        vec!["todos"],
        vec!["blocks", "--todo", "a"],
        vec!["search", "--todo", "a", "b"],
        vec!["load", "--todo", "a", "b_a_001"],
        vec!["view", "--todo", "a"],
        vec!["export", "--todo", "a"],
        vec!["verify"],
        vec!["doctor"],
        vec!["doctor", "--repair"],
        vec!["compact"],
        vec!["backup", "copy"],
        vec!["forget", "--todo", "a"],
    ] {
        let ran = shell.run(&args);
        assert_eq!(ran.code, 1, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("there is no store at"), "{args:?}: {}", ran.stderr);
        assert!(!shell.store().exists(), "{args:?}");
        assert!(!shell.path("copy").exists(), "{args:?}");
    }
}

#[test]
fn a_todo_that_is_not_there_is_not_made() {
    let shell = Shell::with_quay();
    for args in [
        vec!["blocks", "--todo", "nobody"],
        vec!["search", "--todo", "nobody", "b"],
        vec!["load", "--todo", "nobody", "b_nobody_001"],
        vec!["load", "--todo", "nobody", "store://1-abcd"],
        vec!["view", "--todo", "nobody"],
        vec!["export", "--todo", "nobody"],
        vec!["forget", "--todo", "nobody"],
    ] {
        let ran = shell.run(&args);
        assert_eq!(ran.code, 1, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("no todo nobody"), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(shell.json(&["todos"]).as_array().unwrap().len(), 1);
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    let shell = Shell::with_quay();
    for (args, expected) in [
        (&["doctor", "--gateway", "not a url"][..], "expected an address such as http://"),
        (&["wrap", "--gateway", "", "true"], "expected an address such as http://"),
        (&["wrap", "--gateway", "http://127.0.0.1:1,ftp://node", "true"], "expected an address"),
        (&["load", "--todo", "quay", "b_quay_001", "--max-tokens", "3"], "always printed whole"),
        (&["search", "--todo", "quay", "  "], "the question is blank"),
        (&["search", "--all-todos", "", "\u{3000}"], "the question is blank"),
    ] {
        let ran = shell.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_store_of_another_engine_is_named() {
    let shell = Shell::with_quay();
    let ran = shell.run(&["--engine", "sled", "todos"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("sqlite") && ran.stderr.contains("sled"), "{}", ran.stderr);
    let ran = shell.run(&["--engine", "papyrus", "todos"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("sqlite, redb, sled, postgres, memory"), "{}", ran.stderr);
}

#[test]
fn a_folder_of_bare_arrays_goes_into_the_todos_of_its_files() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path("chats")).unwrap();
    for (name, text) in [("a.json", "hello"), ("b.json", "再见"), ("会话.json", "x")] {
        let bare = format!("[{{\"role\":\"user\",\"content\":\"{text}\"}}]");
        shell.write(&format!("chats/{name}"), bare);
    }
    for command in ["import", "replay"] {
        shell.ok(&[command, "chats"]);
        let todos = shell.json(&["todos"]);
        let todos: Vec<_> =
            todos.as_array().unwrap().iter().map(|row| row["todo_id"].as_str().unwrap()).collect();
        assert_eq!((todos.len(), &todos[..2]), (3, &["a", "b"][..]));
    }
}

#[test]
fn what_is_odd_is_said_and_of_much_how_much() {
    let shell = Shell::new();
    let odd = r#"{"role":"user","content":"1","content":"二","timestamp":"昨天"}"#;
    let file = shell.write("odd.json", format!("[{}]", [odd; 6].join(",")));
    let told =
        ["odd: message 0: the key \"content\"", "odd: message 4: its timestamp", "odd: and 2 more"];
    for args in
        [&["import"][..], &["replay"], &["--json", "replay"], &["replay", "--policy", "full"]]
    {
        let ran = shell.ok(&[args, &[file.as_str()]].concat());
        for told in told {
            assert!(ran.stderr.contains(told), "{args:?}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("message 5"), "{args:?}: {}", ran.stderr);
    }
    let report = shell.json(&["replay", &file]);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 11, "{report}");
    assert!(findings[0].as_str().unwrap().starts_with("message 0: the key"), "{report}");
    assert_eq!(findings[10], "and 2 more");
}
