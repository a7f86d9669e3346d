//! One list over everything in a store.

use crate::shell::Shell;

/// Conversations with an agent's log and a talk among them.
fn filled() -> Shell {
    let shell = Shell::with_quay();
    let codex = r#"{"timestamp":"2025-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"0199-lamp","timestamp":"2025-03-01T10:00:00.000Z","cwd":"/home/me/harbor/lamp","originator":"codex","cli_version":"0.50.0","instructions":null}}
{"timestamp":"2025-03-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Why does the lamp flicker? 灯闪"}]}}
{"timestamp":"2025-03-01T10:00:02.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Fuse LMP-77 of the lamp is loose."}]}}
"#;
    std::fs::write(shell.path("codex.jsonl"), codex).unwrap();
    let talk = r#"{"id":"talk","messages":[{"role":"user","content":"The lamp of the quay is green. 码头的灯"},{"role":"assistant","content":"Noted: green."}]}"#;
    std::fs::write(shell.path("talk.jsonl"), talk).unwrap();
    shell.ok(&["import", "codex.jsonl", "talk.jsonl"]);
    shell
}

#[track_caller]
fn todos(shell: &Shell, args: &[&str]) -> Vec<String> {
    let mut all = vec!["--json", "search", "--all-todos", "--all", "-k", "20"];
    all.extend(args);
    let ran = shell.run(&all);
    let hits = ran.json()["hits"].as_array().unwrap().clone();
    assert_eq!(ran.code, i32::from(hits.is_empty()), "{ran:?}");
    hits.iter().map(|hit| hit["todo_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn rc7_hits_of_every_todo_are_one_list_and_say_whose_they_are() {
    let shell = filled();
    let found = shell.json(&["search", "--all-todos", "LMP-77"]);
    let hit = &found["hits"][0];
    assert!(hit["todo_id"].as_str().unwrap().contains("0199-lamp"), "{found}");
    assert!(hit["block_id"].as_str().unwrap().contains("0199-lamp"), "{found}");
    assert!(hit["text"].as_str().unwrap().contains("Fuse LMP-77"), "{found}");
    assert_eq!(found["waiting"], 0, "{found}");
    assert!(found["blocks"].as_u64().unwrap() > 2, "{found}");
    let all = todos(&shell, &["lamp 灯 lease_seconds"]);
    for todo in ["quay", "talk"] {
        assert!(all.iter().any(|found| found == todo), "{all:?}");
    }
    let text = shell.ok(&["search", "--all-todos", "--explain", "-k", "1", "lease_seconds"]);
    assert!(text.text().starts_with("1. b_quay_001  quay  score "), "{}", text.text());
    assert!(text.text().contains("bm25"), "{}", text.text());
    // With its index the list is the same.
    shell.ok(&["search", "--all-todos", "--index", "lamp"]);
    assert!(shell.store().join("index/all/catalogue").exists());
    assert_eq!(todos(&shell, &["lamp 灯 lease_seconds"]), all);
    let doctor = shell.json(&["doctor"]);
    assert_eq!((&doctor["clean"], &doctor["all_todos_lag"]), (&true.into(), &0.into()), "{doctor}");
    shell.ok(&["forget", "--todo", "talk"]);
    let left = todos(&shell, &["lamp 灯 lease_seconds"]);
    assert!(!left.is_empty() && left.iter().all(|todo| todo != "talk"), "{left:?}");
    assert_eq!(shell.json(&["doctor"])["clean"], true);
}

#[test]
fn rc7_time_source_and_folder_bound_the_list() {
    let shell = filled();
    let only = |args: &[&str]| {
        let mut found = todos(&shell, &[args, &["lamp 灯"]].concat());
        found.dedup();
        found.iter().map(|todo| todo.contains("lamp")).collect::<Vec<_>>()
    };
    assert_eq!(only(&["--source", "codex"]), [true]);
    assert_eq!(only(&["--folder", "/home/me/harbor"]), [true]);
    assert_eq!(only(&["--folder", "/home/me/har"]), [] as [bool; 0]);
    assert_eq!(only(&["--until", "2025-03-02T00:00:00Z", "--source", "codex"]), [true]);
    assert_eq!(only(&["--since", "2025-03-02T00:00:00Z", "--source", "codex"]), [] as [bool; 0]);
}

#[test]
fn a_filter_that_no_todo_passes_is_named() {
    let shell = filled();
    let note = |args: &[&str]| shell.run(&[&["search", "--all-todos"], args].concat()).stderr;
    let said = note(&["--source", "nosuch", "lamp"]);
    assert!(said.contains("no todo passes --source"), "{said}");
    let said = note(&["--source", "codex", "--folder", "/nowhere", "lamp"]);
    assert!(said.contains("no todo passes --source and --folder"), "{said}");
    let said = note(&["--source", "codex", "xylophone 木琴"]);
    assert!(said.contains("nothing was found"), "{said}");
}

#[test]
fn a_search_names_a_todo_or_asks_for_all() {
    let shell = Shell::with_quay();
    for args in [
        &["search", "lamp"][..],
        &["search", "--todo", "quay", "--all-todos", "lamp"],
        &["search", "--todo", "quay", "--source", "codex", "lamp"],
        &["search", "--todo", "quay", "--index", "lamp"],
    ] {
        assert_eq!(shell.run(args).code, 2, "{args:?}");
    }
}
