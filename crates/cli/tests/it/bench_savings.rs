//! `foldback bench savings`.

use crate::shell::{Shell, line, quay};
use foldback_testkit::transcript;

#[test]
fn its_json_has_the_keys_that_scripts_read() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let found = shell.run_bare(&["bench", "savings", "--json", &file]).json();
    let one = &found["conversations"][0];
    assert_eq!((&one["id"], &one["kind"]), (&"quay".into(), &"agent".into()));
    assert!(one["tokens"].as_u64().unwrap() > 100);
    let names = [
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
    for name in names {
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
}
