//! The JSON keys that scripts read.

use crate::shell::{Shell, line, quay};
use foldback_core::Message;
use serde_json::Value;

/// The keys of an object, in order.
#[track_caller]
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// Checks that an object has exactly these keys (in whatever order a reader keeps them).
#[track_caller]
fn check(value: &Value, expected: &[&str]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    let mut found = keys(value);
    found.sort_unstable();
    assert_eq!(found, expected, "{value}");
}

const HEADER: [&str; 7] =
    ["block_id", "todo_id", "block_type", "keywords", "core_semantic", "create_time", "data_ids"];

const VIEW: [&str; 8] =
    ["messages", "tools", "tokens", "block", "loose", "pinned", "unfit", "fold_policy"];

#[test]
fn replay_has_the_twelve_keys_first() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let ran = shell.run_bare(&["replay", "--json", &file]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = ran.text();
    let mut at = 0;
    for key in [
        "id",
        "messages",
        "blocks",
        "policy",
        "calls",
        "input_tokens",
        "peak_tokens",
        "cached_tokens",
        "cost_units",
        "lossless",
        "orphans",
        "window_max_messages",
    ] {
        let found = text.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key}"));
        assert!(found > at, "{key} is not in its place");
        at = found;
    }
    let report = ran.json();
    assert_eq!(report["id"], "quay");
    assert_eq!(report["messages"], quay().len());
    assert_eq!(report["policy"], "foldback");
    assert_eq!(report["lossless"], true);
    assert_eq!(report["orphans"], 0);
    assert!(report["window_max_messages"].as_u64().unwrap() <= 12);
    assert_eq!(report["window_bound"], 12);
    assert!(report["payloads"].as_u64().unwrap() >= 2);
    assert!(report["calls"].as_u64().unwrap() > 5);
    assert!(report["input_tokens"].as_u64() > report["peak_tokens"].as_u64());
    assert!(report["full"]["input_tokens"].as_u64() > report["input_tokens"].as_u64());
    let baselines = &report["baselines"];
    check(baselines, &["full", "summary-top-n"]);
    for name in keys(baselines) {
        let used = ["calls", "input_tokens", "peak_tokens", "cached_tokens", "cost_units"];
        check(&baselines[name], &[&used[..], &["forgotten", "cuts"]].concat());
        assert_eq!(baselines[name]["calls"], report["calls"]);
    }
    assert_eq!(baselines["full"]["input_tokens"], report["full"]["input_tokens"]);
}

#[test]
fn import_and_todos() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("会话 1", quay()));
    let imported = shell.json(&["import", &file]);
    check(&imported, &["id", "todo_id", "messages", "recorded", "held", "blocks"]);
    assert_eq!(imported["recorded"], quay().len());
    let todos = shell.json(&["todos"]);
    check(&todos[0], &["todo_id", "messages", "blocks", "open", "foreign_id"]);
    assert_eq!(todos[0]["foreign_id"], "会话 1");
    assert_eq!(todos[0]["todo_id"], imported["todo_id"]);
    assert_eq!(todos[0]["blocks"], imported["blocks"]);
    assert_eq!(todos[0]["open"], 0);
}

#[test]
fn blocks_search_load_view() {
    let shell = Shell::with_quay();
    let blocks = shell.json(&["blocks", "--todo", "quay"]);
    let blocks = blocks.as_array().unwrap();
    assert!(blocks.len() >= 3, "{blocks:?}");
    let mut next = 0;
    for block in blocks {
        let mut expected = HEADER.to_vec();
        expected.extend(["first_seq", "last_seq", "close_reason"]);
        check(block, &expected);
        assert_eq!(block["first_seq"], next);
        next = block["last_seq"].as_u64().unwrap() + 1;
    }
    assert_eq!(next, quay().len() as u64);

    let found = shell.json(&["search", "--todo", "quay", "max_attempts", "-k", "1"]);
    check(&found, &["hits", "took_us"]);
    let expected = [
        "block_id",
        "open",
        "score",
        "bm25",
        "cosine",
        "first_seq",
        "last_seq",
        "text",
        "payloads",
    ];
    check(&found["hits"][0], &expected);
    let explained = shell.json(&["search", "--todo", "quay", "max_attempts", "--explain"]);
    let told = &explained["hits"][0]["explanation"];
    assert!(told["terms"].as_array().is_some_and(|terms| !terms.is_empty()), "{told}");

    let id = blocks[0]["block_id"].as_str().unwrap();
    let block = shell.json(&["load", "--todo", "quay", id]);
    check(&block, &["kind", "header", "messages"]);
    check(&block["header"], &HEADER);
    assert_eq!(block["kind"], "block");
    assert_eq!(block["messages"][0]["role"], "system");

    let payload = blocks.iter().flat_map(|block| block["data_ids"].as_array().unwrap()).next();
    let payload = payload.unwrap().as_str().unwrap();
    let loaded = shell.json(&["load", "--todo", "quay", payload]);
    check(&loaded, &["kind", "ref", "bytes", "first_line", "last_line", "text", "next"]);
    assert_eq!(
        (loaded["kind"].as_str(), loaded["first_line"].as_u64()),
        (Some("payload"), Some(1))
    );
    assert_eq!(loaded["ref"], payload);
    assert_eq!(loaded["bytes"], loaded["text"].as_str().unwrap().len());
    assert_eq!(loaded["next"], Value::Null);

    let view = shell.json(&["view", "--todo", "quay"]);
    check(&view, &VIEW);
    assert_eq!(view["fold_policy"], "strict");
    assert_eq!(view["messages"][0]["role"], "system");
    let tools: Vec<_> =
        view["tools"].as_array().unwrap().iter().map(|t| &t["function"]["name"]).collect();
    assert_eq!(tools, ["search_block", "list_blocks", "load"]);
    assert_eq!(view["tools"][0]["function"]["parameters"]["type"], "object");
}

#[test]
fn a_view_that_cannot_be_as_small_as_the_budget_is_not_clean() {
    let shell = Shell::new();
    let first = Message::user(&"渡轮 06:12 ".repeat(2_000));
    let file = shell.write("long.jsonl", line("long", vec![first, Message::assistant("好。")]));
    shell.ok(&["import", &file]);
    let within = |budget| shell.run(&["--json", "view", "--todo", "long", "--budget", budget]);
    assert_eq!(within("100000").code, 0);
    let over = within("500");
    assert_eq!(over.code, 1, "{over:?}");
    assert!(over.json()["tokens"].as_u64().unwrap() > 500, "it is printed nevertheless");
}

#[test]
fn replay_at_is_a_view() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let ran = shell.run_bare(&["--json", "replay", "--at", "3", &file]);
    check(&ran.json(), &VIEW);
    let full = shell.run_bare(&["--json", "replay", "--at", "3", "--policy", "full", &file]).json();
    // The third call answers the seventh message, so seven are sent by keeping everything.
    let expected: Vec<_> = quay()[..7].iter().map(|m| m.role().as_str().to_owned()).collect();
    let roles: Vec<_> =
        full["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, expected);
}

#[test]
fn upkeep() {
    let shell = Shell::with_quay();
    let doctor = shell.json(&["doctor"]);
    check(
        &doctor,
        &[
            "clean",
            "todos",
            "blocks",
            "payloads",
            "findings",
            "index_lag",
            "tail",
            "folds",
            "log_bytes",
            "messages",
            "all_todos_lag",
            "graphs",
        ],
    );
    assert_eq!((doctor["clean"].as_bool(), doctor["todos"].as_u64()), (Some(true), Some(1)));
    let expected = ["clean", "todos", "messages", "blocks", "payloads", "findings", "tail"];
    check(&shell.json(&["verify"]), &expected);
    check(&shell.json(&["compact"]), &["bytes_before", "bytes_after"]);
    check(&shell.json(&["init"]), &["store", "engine"]);
    check(&shell.json(&["backup", "copy"]), &["dir", "bytes"]);
    check(&shell.json(&["forget", "--todo", "quay"]), &["todo_id", "messages", "runs"]);
}

#[test]
fn clients_of_the_server() {
    let shell = Shell::new();
    for (command, changed) in
        [("install", true), ("install", false), ("uninstall", true), ("uninstall", false)]
    {
        let set_up = shell.json(&["mcp", command, "cursor", "--project", "--yes"]);
        check(&set_up, &["path", "changed"]);
        assert_eq!(set_up["changed"], changed, "{command}: {set_up}");
        assert_eq!(set_up["path"], ".cursor/mcp.json");
    }
}

#[test]
fn export_is_what_was_imported() {
    let shell = Shell::new();
    // Number forms, escapes, an unknown key, an order of keys of its own.
    let text = r#"{"x":1.50,"id":"odd","messages":[{"content":"caf\u00e9 \/","role":"user","n":1e3},{"role":"assistant","content":[{"type":"text","text":"ok","k":[]}]}],"qa":[{"q":"?"}]}"#;
    let file = shell.write("odd.jsonl", text);
    shell.ok(&["import", &file]);
    let exported = shell.ok(&["export", "--todo", "odd"]);
    assert_eq!(exported.text(), format!("{text}\n"));
}
