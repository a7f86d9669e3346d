//! The last messages: found before a block holds them, and shown as the model was sent them.

use crate::provider::Provider;
use crate::run::{only_run, run};
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

/// Records a message of a user and its answer.
fn record(shell: &Shell, question: &str, answer: &str) {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["record", "--todo", "quay"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = [
        json!({"role": "user", "content": question}),
        json!({"role": "assistant", "content": answer}),
    ];
    let mut input = child.stdin.take().unwrap();
    lines.iter().for_each(|line| writeln!(input, "{line}").unwrap());
    drop(input);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn what_was_recorded_last_is_found_listed_and_loaded() {
    let shell = Shell::new();
    record(&shell, "Which berth?", "她停在八号码头, berth 8.");
    let found = shell.json(&["search", "--todo", "quay", "八号码头"]);
    let hit = &found["hits"][0];
    assert_eq!((&hit["open"], &hit["block_id"]), (&json!(true), &json!("b_quay_001")));
    let told = shell.ok(&["search", "--todo", "quay", "八号码头"]);
    assert!(told.text().contains("messages 0-1 · still open"), "{}", told.text());
    let loaded = shell.ok(&["load", "--todo", "quay", "b_quay_001"]);
    assert!(loaded.text().contains("still open"), "{}", loaded.text());
    assert!(loaded.text().contains("八号码头"), "{}", loaded.text());
    let listed = shell.ok(&["blocks", "--todo", "quay"]);
    assert!(listed.text().contains("b_quay_001  messages 0-1"), "{}", listed.text());
    assert_eq!(shell.json(&["blocks", "--todo", "quay"]), json!([]), "none is closed");
}

/// The prices of a million tokens, and the shortest prefix that is cached.
pub(crate) fn priced(shell: &Shell, read: f64, least: u64) -> String {
    let prices = format!("input = 10.0, output = 10.0, cached_read = {read}, cached_write = 10.0");
    let model = format!(
        "provider = \"openai\"\ntoken_prices = {{ {prices} }}\nleast_cached_tokens = {least}\n"
    );
    shell.write("prices.toml", format!("[model]\n{model}"))
}

/// A provider whose model lists the folder this often, and then answers.
fn lists(times: usize) -> Provider {
    let mut asked = 0;
    Provider::answering(move |_| {
        asked += 1;
        match asked <= times {
            true => Provider::call("file_list", &json!({"pattern": format!("{asked}*.md")})),
            false => Provider::text("全部看过了。"),
        }
    })
}

#[test]
fn a_run_that_is_done_leaves_nothing_open() {
    let shell = Shell::new();
    let provider = lists(1);
    let ran = run(&shell, &provider, &["--strategy", "react", "--id", "look", "Look around"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let found = shell.json(&["search", "--todo", "look", "全部看过了"]);
    assert_eq!(found["hits"][0]["open"], false, "{found}");
    let blocks = shell.json(&["blocks", "--todo", "look"]);
    let last = blocks.as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["close_reason"], "end", "{blocks}");
    assert_eq!(
        only_run(&shell)["blocks"].as_u64().unwrap_or(1),
        blocks.as_array().unwrap().len() as u64
    );
}

/// What was asked, as `view` prints it.
fn asked(request: &Value) -> (&Value, &Value) {
    (&request["messages"], &request["tools"])
}

#[test]
fn view_prints_what_the_model_was_sent_and_what_it_would_be() {
    let shell = Shell::new();
    let prices = priced(&shell, 1.0, 1_024);
    let provider = lists(4);
    let args = [
        "--settings",
        &prices,
        "--strategy",
        "react",
        "--id",
        "see",
        "--max-calls",
        "3",
        "See all",
    ];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 1, "{ran:?}");
    let sent = shell.json(&["view", "--todo", "see", "--sent"]);
    let requests = provider.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(asked(&sent), asked(requests.last().unwrap()));

    // The todo remembers how it is folded: the next request is printed before it is made.
    let next = shell.json(&["view", "--todo", "see"]);
    assert_eq!(next["fold_policy"], "cache-aware");
    let ran = shell.run(&["run", "--resume", "see", "--max-calls", "9"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = provider.requests();
    assert_eq!(next["messages"], requests[3]["messages"]);
    // With the agent's tools at the start, the first prompt is long enough to be cached, and `load` is declared from
    // there on.
    let declared = next["tools"].as_array().unwrap();
    assert_eq!((declared.len(), &declared[0]["function"]["name"]), (1, &json!("load")));
    assert!(requests[3]["tools"].as_array().unwrap().contains(&declared[0]), "{}", requests[3]);
    let refused = shell.run(&["view", "--todo", "nobody", "--sent"]);
    assert_eq!(refused.code, 1, "{refused:?}");
}

#[test]
fn the_prices_of_the_model_decide_and_are_told() {
    for (read, least, told, context) in [
        (
            1.0,
            1_024,
            "input costs 10, 1 read from the cache, 10 written into it a million; cached from 1,024 tokens \
             on: folded cache-aware",
            "foldback-cache-aware",
        ),
        (1.0, 90_000, "cached from 90,000 tokens on: folded strict", "foldback"),
        (10.0, 1_024, "input costs 10 a million, cached or not: folded strict", "foldback"),
    ] {
        let shell = Shell::new();
        let provider = lists(0);
        let prices = priced(&shell, read, least);
        let ran =
            run(&shell, &provider, &["--settings", &prices, "--strategy", "react", "See all"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let stderr = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(stderr.contains(told), "{told}: {stderr}");
        assert_eq!(only_run(&shell)["context"], context);
    }
}
