//! `foldback bench savings`.

use crate::shell::{Shell, line, quay};
use foldback_core::{Message, Timestamp, ToolCall, ToolCallId};
use foldback_testkit::transcript;

/// The policies that are measured, by the names that scripts use.
pub(crate) const POLICIES: [&str; 10] = [
    "full",
    "sliding-window",
    "summary-top-n",
    "deepagents",
    "deepagents-128k",
    "clear-tool-results",
    "mask-observations",
    "stm-ltm",
    "foldback",
    "foldback-cache-aware",
];

#[test]
fn its_json_has_the_keys_that_scripts_read() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let found = shell.run_bare(&["bench", "savings", "--policies", "full,strict", &file]);
    assert!(found.text().contains(": 1 conversation (summaries"), "{found:?}");
    let found = shell.run_bare(&["bench", "savings", "--json", &file]).json();
    let one = &found["conversations"][0];
    assert_eq!((&one["id"], &one["kind"]), (&"quay".into(), &"agent".into()));
    assert!(one["tokens"].as_u64().unwrap() > 100);
    let keys = [
        "input_tokens",
        "peak_tokens",
        "cached_tokens",
        "cost_units",
        "calls",
        "facts",
        "visible",
        "recalled",
        "reachable",
        "lost",
        "hit_rate",
        "in_out_ratio",
        "prefix_moves",
        "ceiling",
    ];
    for name in POLICIES {
        for key in keys {
            assert!(one["policies"][name][key].is_number(), "{name} {key}: {one}");
            assert!(found["policies"][name][key].is_number(), "{name} {key}");
        }
        assert!(found["policies"][name]["without_recalls"]["calls"].is_u64(), "{name}");
    }
    assert_eq!(one["policies"]["full"]["lost"], 0);
    assert!(found["comparisons"].as_array().is_some_and(|all| !all.is_empty()));
    assert!(found["curves"][0]["policies"]["full"].is_array());
}

#[test]
fn the_same_conversations_give_the_same_figures_and_files() {
    let shell = Shell::new();
    let talk = transcript("user: 你好\nassistant: 你好\nuser: again\nassistant: yes");
    let file = shell.write("two.jsonl", line("quay", quay()) + &line("talk", talk));
    let [csv, missed] = ["rows.csv", "missed.csv"].map(|name| shell.path(name));
    let args = [
        "bench",
        "savings",
        &file,
        "--csv",
        csv.to_str().unwrap(),
        "--missed",
        missed.to_str().unwrap(),
    ];
    let ran = shell.run_bare(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    for expected in ["Agent runs: 1 conversation", "Dialogues: 1 conversation", "Targets"] {
        assert!(ran.text().contains(expected), "{expected}: {}", ran.text());
    }
    let rows = std::fs::read_to_string(&csv).unwrap();
    assert!(rows.starts_with("id,file,kind,policy,messages,tokens,calls,input_tokens,"), "{rows}");
    assert_eq!(rows.lines().count(), 1 + 2 * 10, "{rows}");
    assert!(std::fs::read_to_string(&missed).unwrap().starts_with("id,policy,tool,argument,value"));
    assert_eq!(shell.run_bare(&args).text(), ran.text());
    assert_eq!(std::fs::read_to_string(&csv).unwrap(), rows);
}

#[test]
fn prices_are_taken_and_checked() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let full = |args: &[&str]| {
        let args = [&["bench", "savings", "--json", &file], args].concat();
        shell.run_bare(&args).json()["policies"]["full"].clone()
    };
    let plain = full(&["--price-read", "1", "--price-write", "1"]);
    assert_eq!(plain["cost_units"].as_f64(), plain["input_tokens"].as_f64());
    let bad = shell.run_bare(&["bench", "savings", "--price-plain", "0", &file]);
    assert_eq!(bad.code, 2, "{bad:?}");
    assert!(bad.stderr.contains("--price-plain more than 0"), "{bad:?}");
    let bad = shell.run_bare(&["bench", "savings", "--price-write", "1e300", &file]);
    assert_eq!(bad.code, 2, "{bad:?}");
    assert!(bad.stderr.contains("from 0 to 1000000000"), "{bad:?}");
}

/// Twelve long units, each a minute after the one before: with times, or without.
fn paced(is_dated: bool) -> String {
    let long = "a line of a log 一行日志 ".repeat(120);
    let mut messages = vec![Message::user("Read them all.")];
    for n in 0..12 {
        let id = format!("c{n}");
        let call = ToolCall::new(&id, "read", &format!("{{\"path\": \"logs/{n}.txt\"}}"));
        messages.push(Message::calls("", vec![call]));
        messages.push(Message::tool_result(&ToolCallId::new(&id), &format!("{n} {long}")));
    }
    messages.push(Message::assistant("All read."));
    let minute = |n: usize| Timestamp(1_700_000_000_000 + 60_000 * n as i64);
    let dated =
        |(n, message): (usize, Message)| if is_dated { message.at(minute(n)) } else { message };
    line("paced", messages.into_iter().enumerate().map(dated).collect())
}

#[test]
fn a_cache_that_forgets_costs_what_it_forgot() {
    let shell = Shell::new();
    let dated = shell.write("dated.jsonl", paced(true));
    let undated = shell.write("undated.jsonl", paced(false));
    let full = |args: &[&str]| {
        let found = shell.run_bare(&[&["bench", "savings", "--json"], args].concat()).json();
        let full = &found["policies"]["full"];
        [&full["cost_units"], &full["input_tokens"], &full["cached_tokens"]]
            .map(|n| n.as_f64().unwrap())
    };
    let kept = full(&[&dated]);
    assert_eq!(full(&[&dated, "--cache-life", "300"]), kept, "no pause is that long");
    // A minute passes with each message, so two with each call: nothing is read, and no cache is used.
    let lost = full(&[&dated, "--cache-life", "100"]);
    assert_eq!((lost[0], lost[2]), (lost[1], 0.0));
    assert!(kept[0] < 0.5 * lost[0], "{kept:?} {lost:?}");
    assert_eq!(full(&[&undated, "--cache-life", "100"]), kept, "no time passes");
    assert_eq!(full(&[&undated, "--cache-life", "100", "--gap", "99"]), kept);
    assert_eq!(full(&[&undated, "--cache-life", "100", "--gap", "100"]), lost);
    shell.write("forgets.toml", "[model]\ncache_life_seconds = 100\n");
    let settings = shell.path("forgets.toml");
    assert_eq!(full(&[&dated, "--config", settings.to_str().unwrap()]), lost);
    let replayed = |args: &[&str]| {
        let args = [&["replay", "--json", "--policy", "full", &dated], args].concat();
        shell.run_bare(&args).json()["cost_units"].as_f64().unwrap()
    };
    assert!(replayed(&["--cache-life", "100"]) > 2.0 * replayed(&[]));
    let bad = shell.run_bare(&["bench", "savings", "--cache-life", "0", &dated]);
    assert_eq!(bad.code, 2, "{bad:?}");
}

#[test]
fn tables_fit_eighty_columns() {
    let shell = Shell::new();
    let talk = transcript("user: 你好\nassistant: 你好\nuser: again\nassistant: yes");
    let file = shell.write("two.jsonl", line("quay", quay()) + &line("talk", talk));
    let ran = shell.run_bare(&["bench", "savings", "--agent-tools", "3000", &file]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = ran.text();
    // Titles are sentences, and the terminal breaks them.
    for line in text.lines().filter(|line| !line.contains(": ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for name in ["foldback-cache-aware ", "clear-tool-results ", "mask-observations "] {
        assert!(text.contains(name), "{name} is broken: {text}");
    }
}

#[test]
fn replay_and_bench_tell_the_same_of_a_recording_with_tools() {
    let shell = Shell::new();
    let tool = r#"{"type":"function","function":{"name":"weigh","description":"Weighs it.","parameters":{"type":"object","properties":{}}}}"#;
    let bare = line("quay", quay());
    let with = bare.replacen('{', &format!("{{\"tools\":[{tool}],"), 1);
    let figures = |name: &str, line: &str| {
        let file = shell.write(name, line);
        let bench = shell.run_bare(&["bench", "savings", "--json", &file]).json();
        let replay = shell.run_bare(&["replay", "--json", &file]).json();
        let policies = &bench["policies"];
        for key in ["input_tokens", "peak_tokens", "cached_tokens", "cost_units"] {
            assert_eq!(replay["full"][key], policies["full"][key], "{name} {key}");
        }
        let own = &policies["foldback"]["without_recalls"];
        assert_eq!(replay["input_tokens"], own["input_tokens"], "{name}");
        let (tokens, calls) = (&replay["input_tokens"], &replay["calls"]);
        (tokens.as_u64().unwrap(), calls.as_u64().unwrap())
    };
    let ((bare, calls), (with, _)) = (figures("bare.jsonl", &bare), figures("with.jsonl", &with));
    let each = (with - bare) / calls;
    assert_eq!(with - bare, each * calls);
    assert!(each > 15 && each < 40, "{each} tokens of a tool in each prompt");
}
