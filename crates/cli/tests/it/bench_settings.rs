//! `foldback bench` goes by the settings in force, and names those that are not the built-in ones.

use crate::settings::user;
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};

/// The measurements that use settings.
const WHICH: [&str; 3] = ["savings", "retrieval", "segmentation"];

/// A file of a session of an agent, with a question about it and the places where its topic changes.
fn session(shell: &Shell) -> String {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/coding-session.jsonl");
    let example = std::fs::read_to_string(example).unwrap();
    let mut session: Value = serde_json::from_str(example.lines().next().unwrap()).unwrap();
    for (at, message) in session["messages"].as_array_mut().unwrap().iter_mut().enumerate() {
        message["id"] = format!("m{at}").into();
    }
    session["qa"] = json!([{ "question": "How long is the lease?", "evidence": ["m4"] }]);
    session["boundaries"] = json!([12, 20]);
    shell.write("session.jsonl", format!("{session}\n"))
}

/// Runs a measurement with these settings in the environment.
#[track_caller]
fn bench(shell: &Shell, which: &str, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = shell.command();
    command.args(["bench", which, &session(shell)]).args(args).envs(variables.iter().copied());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// The results, and the settings that are named with them. Times are left out: they are never the same.
#[track_caller]
fn found(shell: &Shell, which: &str, variables: &[(&str, &str)]) -> (Value, Value) {
    let mut found = bench(shell, which, &["--json"], variables).json();
    without_times(&mut found);
    let settings = found.as_object_mut().unwrap().remove("settings_in_force");
    (found, settings.unwrap_or_default())
}

fn without_times(found: &mut Value) {
    match found {
        Value::Object(fields) => {
            fields.retain(|key, _| !key.starts_with("took_us"));
            fields.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[test]
fn what_a_file_says_of_blocks_is_measured_and_named() {
    for which in WHICH {
        let shell = Shell::new();
        let (usual, nothing) = found(&shell, which, &[]);
        assert_eq!(nothing, Value::Null, "{which}");
        assert!(!bench(&shell, which, &[], &[]).text().contains("measured with"), "{which}");

        shell.write("foldback.toml", "[memory]\nblock_max = 8\n");
        let (other, settings) = found(&shell, which, &[]);
        assert_ne!(other, usual, "{which}");
        let source = settings[0]["source"].as_str().unwrap();
        assert!(source.ends_with("foldback.toml:2"), "{which}: {settings}");
        let named = json!([{ "key": "memory.block_max", "value": 8, "source": source }]);
        assert_eq!(settings, named, "{which}");
        let page = shell.path("page.html");
        let text = bench(&shell, which, &["--report", page.to_str().unwrap()], &[]);
        let told = format!("measured with memory.block_max = 8 ({source})");
        assert!(text.text().lines().any(|line| line == told), "{which}: {}", text.text());
        assert!(std::fs::read_to_string(page).unwrap().contains(&told), "{which}");

        // The environment overrides the file.
        let (same, nothing) = found(&shell, which, &[("FOLDBACK_MEMORY_BLOCK_MAX", "5")]);
        assert_eq!((same, nothing), (usual, Value::Null), "{which}");
    }
}

#[test]
fn a_setting_that_is_the_built_in_one_changes_nothing() {
    let shell = Shell::new();
    let before = WHICH.map(|which| found(&shell, which, &[]));
    let text = bench(&shell, "savings", &[], &[]);
    let file = "[memory]\nembedder = \"builtin\"\nblock_max = 5\ntopic_threshold = -1\n\
        [view]\nfresh_tokens = 8000\n";
    user(&shell, file);
    assert_eq!(WHICH.map(|which| found(&shell, which, &[])), before);
    assert_eq!(bench(&shell, "savings", &[], &[]).text(), text.text());
}

#[test]
fn an_embedder_that_is_not_the_built_in_one_is_named() {
    let shell = Shell::new();
    for which in ["savings", "segmentation"] {
        let (_, settings) = found(&shell, which, &[("FOLDBACK_MEMORY_EMBEDDER", "none")]);
        let source = "FOLDBACK_MEMORY_EMBEDDER";
        let named = json!([{ "key": "memory.embedder", "value": "none", "source": source }]);
        assert_eq!(settings, named, "{which}");
    }
}

#[test]
fn savings_are_measured_under_the_view_of_the_settings() {
    let shell = Shell::new();
    let (usual, _) = found(&shell, "savings", &[]);
    let of = |found: &Value, policy: &str| found["policies"][policy].clone();
    for (name, value, policy) in [
        ("WINDOW_MESSAGES", "2", "foldback"),
        ("FRESH_TOKENS", "0", "foldback"),
        ("LEDGER_LINES", "0", "foldback"),
        ("BUDGET_TOKENS", "900", "foldback"),
        ("CACHE_AWARE_MESSAGES", "12", "foldback-cache-aware"),
        ("CACHE_AWARE_TOKENS", "2000", "foldback-cache-aware"),
    ] {
        let variable = format!("FOLDBACK_VIEW_{name}");
        let (other, settings) = found(&shell, "savings", &[(&variable, value)]);
        assert_ne!(of(&other, policy), of(&usual, policy), "{name}");
        assert_eq!(of(&other, "full"), of(&usual, "full"), "{name}");
        let key = format!("view.{}", name.to_lowercase());
        let value: Value = value.parse::<u64>().unwrap().into();
        let named = json!([{ "key": key, "value": value, "source": variable }]);
        assert_eq!(settings, named);
        // No view is measured when topics are looked for.
        assert_eq!(
            found(&shell, "segmentation", &[(&variable, &value.to_string())]).1,
            Value::Null
        );
    }
    let mode = "stm-ltm:compress";
    let (other, settings) = found(&shell, "savings", &[("FOLDBACK_VIEW_POLICY", mode)]);
    assert_eq!(settings[0]["value"], mode);
    assert!(of(&other, mode)["calls"].is_u64(), "{other}");
    assert_eq!(of(&other, "foldback"), of(&usual, "foldback"));
}

#[test]
fn prices_of_the_model_are_measured_unless_flags_say_others() {
    let shell = Shell::new();
    user(&shell, "[model]\nprices = { read = 1.0, write = 1.0, plain = 1.0 }\n");
    let (found, settings) = found(&shell, "savings", &[]);
    let full = &found["policies"]["full"];
    assert_eq!(full["cost_units"].as_f64(), full["input_tokens"].as_f64());
    assert_eq!(settings[0]["key"], "model.prices");
    let flags = ["--json", "--price-read", "2", "--price-write", "2", "--price-plain", "2"];
    let twice = bench(&shell, "savings", &flags, &[]).json();
    let full = &twice["policies"]["full"];
    assert_eq!(full["cost_units"].as_f64(), full["input_tokens"].as_f64().map(|cost| cost * 2.0));
}

#[test]
fn a_setting_that_is_not_measured_is_named_as_such() {
    let shell = Shell::new();
    let before = WHICH.map(|which| found(&shell, which, &[]).0);
    let file = "[memory]\ngraph_after_vectors = 2\n[view]\nsummary_model = \"small\"\n\
        [model]\nleast_cached_tokens = 9\n";
    user(&shell, file);
    let after = WHICH.map(|which| found(&shell, which, &[]));
    let keys = |settings: &Value| -> Vec<String> {
        let rows = settings.as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(rows.iter().all(|row| row["not_measured"].is_string()), "{settings}");
        rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
    };
    let [savings, retrieval, segmentation] = after.each_ref().map(|(_, settings)| keys(settings));
    assert_eq!(
        savings,
        ["memory.graph_after_vectors", "model.least_cached_tokens", "view.summary_model"]
    );
    assert_eq!(retrieval, ["memory.graph_after_vectors"]);
    assert!(segmentation.is_empty());
    assert_eq!(after.map(|(found, _)| found), before);
    let text = bench(&shell, "retrieval", &[], &[]);
    let told = "not measured: memory.graph_after_vectors = 2 (";
    assert!(text.text().lines().any(|line| line.starts_with(told)), "{}", text.text());
}
