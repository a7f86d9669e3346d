//! The main job: a conversation folds on the screen, and comes back.

use crate::shell::{Shell, line, names, quay};
use foldback_testkit::transcript;
use std::fmt::Write as _;

#[test]
fn the_screen_of_a_replay() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let ran = shell.run_bare(&["replay", &file]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    insta::assert_snapshot!(ran.text());
}

/// MD1: what looks like a reference and leads nowhere is text.
#[test]
fn md1_a_name_that_leads_nowhere_does_not_end_a_replay() {
    let shell = Shell::new();
    let talk: String = (0..12)
        .map(|n| {
            format!(
                "user: look at page {n} of the tables
                assistant> read({{}})
                tool: 第{n}页: store://9-abcd is an example, store://other/3-zzzz too
                assistant: page {n} is read
                "
            )
        })
        .collect();
    let file = shell.write("tables.jsonl", line("tables", transcript(&talk)));
    let ran = shell.run_bare(&["replay", &file]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert!(!ran.text().contains("result at"), "{}", ran.text());
}

#[test]
fn the_prompt_of_a_call() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let ran = shell.run_bare(&["replay", "--at", "9", &file]);
    assert_eq!(ran.code, 0, "{ran:?}");
    // Numbered, with roles; the prompt's places are marked, and the messages are shown whole.
    let text = ran.text();
    assert!(text.starts_with("quay · "), "{text}");
    for expected in [
        "\n  1 system · 2025-03-01 09:00:00 UTC\n    You repair the service quay.\n┄┄┄┄ cache mark",
        "\n  2 user\n    Notices arrive twice since Monday.",
        "memory tools: search_block, list_blocks, load",
        "b_quay_001 2025-03-01 09:00 tool_call",
        " user · 2025-03-01 09:40:18 UTC\n    Now a release note for 0.8.1, please.",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    assert!(!text.contains("CHANGELOG"), "the answer to the call is in its prompt");
    let missing = shell.run_bare(&["replay", "--at", "99", &file]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("there is no call 99"), "{missing:?}");
}

#[test]
fn many_conversations_are_a_line_each_in_the_order_of_the_files() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path("runs")).unwrap();
    let talk = || {
        transcript(
            "
            user: 你好
            assistant: 你好,有什么事?
            ",
        )
    };
    shell.write("runs/b.jsonl", line("second", talk()) + &line("第三个会话", quay()));
    shell.write("runs/a.jsonl", line("first", quay()));
    shell.write("runs/notes.txt", "not read");
    let ran = shell.run_bare(&["replay", "runs"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let rows: Vec<_> =
        ran.text().lines().skip(1).take(3).map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(rows, ["first", "second", "第三个会话"]);
    assert!(ran.text().contains("3 conversations"), "{}", ran.text());
    assert!(ran.text().contains("lossless: yes ("), "{}", ran.text());
    let json = shell.run_bare(&["replay", "--json", "runs"]).json_lines();
    let ids: Vec<_> = json.iter().map(|report| report["id"].as_str().unwrap()).collect();
    assert_eq!(ids, rows);
    // Two runs say the same.
    assert_eq!(shell.run_bare(&["replay", "runs"]).text(), ran.text());
}

#[test]
fn a_conversation_without_an_assistant_calls_after_each_user_message() {
    let shell = Shell::new();
    let mut script = String::new();
    for i in 0..10 {
        writeln!(script, "user: fact number {i} is that the gate opens at {i} o'clock").unwrap();
    }
    let file = shell.write("facts.jsonl", line("facts", transcript(&script)));
    let report = shell.run_bare(&["replay", "--json", &file]).json();
    assert_eq!(report["calls"], 10);
    let full = shell.run_bare(&["replay", "--json", "--policy", "full", &file]).json();
    assert_eq!(full["calls"], 10);
    assert_eq!(full["policy"], "full");
    assert_eq!(full["input_tokens"], report["full"]["input_tokens"]);
    assert_eq!(full["blocks"], 0);
    // The figures for keeping everything were compared, too.
    assert_eq!(full["lossless"], true);
    assert!(full["compared_bytes"].as_u64().unwrap() > 500, "{full}");
    let text = shell.run_bare(&["replay", "--policy", "full", &file]);
    assert!(text.text().contains("lossless: yes (10 messages, "), "{}", text.text());
}

#[test]
fn odd_conversations_are_repaired_in_the_view_and_said() {
    let shell = Shell::new();
    let messages = transcript(
        "
        user: go
        assistant> a({}) #1
        assistant> b({}) #1
        tool #1: first
        user: never mind the other
        tool #9: answers nothing
        assistant: [nothing]
        assistant: done
        ",
    );
    let file = shell.write("odd.jsonl", line("odd", messages));
    let ran = shell.run_bare(&["replay", &file]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("note: odd: message 5"), "{}", ran.stderr);
    assert!(ran.text().contains("orphans         0"), "{}", ran.text());
    let quiet = shell.run_bare(&["replay", "-q", &file]);
    assert_eq!(quiet.stderr, "");
    assert!(quiet.text().starts_with("tokens "), "{}", quiet.text());
    // Keeping everything repairs nothing, and that shows.
    let full = shell.run_bare(&["replay", "--policy", "full", "--json", &file]);
    assert_eq!(full.code, 1);
    assert!(full.json()["orphans"].as_u64().unwrap() > 0);
}

#[test]
fn a_summary_is_measured_and_said_to_have_lost_what_it_lost() {
    let shell = Shell::new();
    let mut script = String::from("system: you keep the log\nuser: read the log\n");
    for i in 0..40 {
        let step =
            format!("assistant> read({{\"part\": {i}}})\ntool: part {i}\n  [big 6000 part]\n");
        script.push_str(&step);
    }
    script.push_str("assistant: read\n");
    let file = shell.write("log.jsonl", line("log", transcript(&script)));
    let small = shell.write("quay.jsonl", line("quay", quay()));

    let ran = shell.run_bare(&["replay", "--json", "--policy", "summary-top-n", &file]);
    let report = ran.json();
    assert_eq!((ran.code, &report["lossless"]), (1, &false.into()), "what is gone is gone");
    assert_eq!(report["orphans"], 0, "no call was parted from its result");
    let used = &report["baselines"]["summary-top-n"];
    assert!(used["cuts"].as_u64().unwrap() >= 1 && used["forgotten"].as_u64().unwrap() >= 20);
    assert!(used["peak_tokens"].as_u64().unwrap() < 45_000, "{used}");
    assert!(report["problems"][0].as_str().unwrap().ends_with("nothing brings them back"));
    let text = shell.run_bare(&["replay", "--policy", "summary-top-n", &file]);
    assert!(text.text().contains("lossless: NO"), "{}", text.text());
    // The same figures are beside the memory's own.
    let ours = shell.run_bare(&["replay", "--json", &file]).json();
    assert_eq!(&ours["baselines"]["summary-top-n"], used);
    assert_eq!(ours["lossless"], true);
    // Below its trigger it keeps everything.
    let kept = shell.run_bare(&["replay", "--json", "--policy", "summary-top-n", &small]);
    assert_eq!((kept.code, &kept.json()["lossless"]), (0, &true.into()));
    assert_eq!(kept.json()["input_tokens"], kept.json()["full"]["input_tokens"]);
    // The prompt says what it is.
    let last = report["calls"].to_string();
    let at = ["replay", "--policy", "summary-top-n", "--at", &last, &file];
    let prompt = shell.run_bare(&at);
    assert!(prompt.text().contains("extracted by rule, not written by a model"));
}

/// LV4: the fold policy `cache-aware` is a policy of its own, proved like the other.
#[test]
fn lv4_the_memory_folds_by_cost_when_it_is_asked_to() {
    let shell = Shell::new();
    let mut script = String::from("user: Read the parts, please.\n");
    for i in 0..30 {
        let step =
            format!("assistant> read({{\"part\": {i}}})\ntool: part {i}\n  [big 6000 part]\n");
        script.push_str(&step);
    }
    script.push_str("assistant: read\n");
    let file = shell.write("log.jsonl", line("log", transcript(&script)));
    let ran = shell.run_bare(&["replay", "--json", "--policy", "foldback-cache-aware", &file]);
    let report = ran.json();
    assert_eq!((ran.code, &report["lossless"], &report["orphans"]), (0, &true.into(), &0.into()));
    assert_eq!(report["policy"], "foldback-cache-aware");
    let (ours, full) = (&report["cost_units"], &report["full"]["cost_units"]);
    assert!(ours.as_f64().unwrap() < 0.6 * full.as_f64().unwrap(), "{ours} of {full}");
    // The fold policy's own name is enough.
    let short = shell.run_bare(&["replay", "--json", "--policy", "cache-aware", &file]).json();
    assert_eq!(short["policy"], "foldback-cache-aware");
    let strict = shell.run_bare(&["replay", "--json", "--policy", "strict", &file]).json();
    assert_eq!(strict["policy"], "foldback");
    let args = ["replay", "--policy", "foldback-cache-aware", "--store", "s", &file];
    let ran = shell.run_bare(&args);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("leave out --store"), "{}", ran.stderr);
}

#[test]
fn a_policy_that_is_not_there_is_answered_with_those_that_are() {
    let shell = Shell::new();
    let ran = shell.run_bare(&["replay", "--policy", "forget-all", "x.jsonl"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("foldback, foldback-cache-aware, full"), "{}", ran.stderr);
}

#[test]
fn nothing_stays_without_a_store() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    for engine in ["memory", "sqlite", "redb", "sled"] {
        let mut command = shell.command();
        let temp = shell.path("temp");
        std::fs::create_dir_all(&temp).unwrap();
        command.env("TMPDIR", &temp).env("FOLDBACK_STORE", shell.path("not-this"));
        let ran = command.args(["replay", "-q", "--engine", engine, &file]).output().unwrap();
        assert!(ran.status.success(), "{engine}: {ran:?}");
        assert_eq!(names(&temp), Vec::<String>::new(), "{engine}");
    }
    assert_eq!(names(&shell.path("")), ["quay.jsonl", "temp"]);
}

#[test]
fn an_empty_conversation_is_said_to_be_one() {
    let shell = Shell::new();
    let file = shell.write("empty.jsonl", line("empty", Vec::new()));
    let ran = shell.run_bare(&["replay", &file]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("has no message"), "{}", ran.stderr);
    assert!(ran.text().contains("lossless: yes (0 messages"), "{}", ran.text());
}

#[test]
fn prefix_moves_are_counted_at_calls() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let report = shell.run_bare(&["--json", "replay", &file]).json();
    let mut prompts = Vec::new();
    for call in 1..=report["calls"].as_u64().unwrap() {
        let call = call.to_string();
        let json = shell.run_bare(&["--json", "replay", "--at", &call, &file]).json();
        let text = shell.run_bare(&["replay", "--at", &call, &file]);
        let volatile = text.text().matches("changes from call to call").count();
        let messages = json["messages"].as_array().unwrap().clone();
        prompts.push((messages.len() - volatile, messages));
    }
    let goes_on = |pair: &&[(usize, Vec<_>)]| {
        let (stable, before) = &pair[0];
        pair[1].1.starts_with(&before[..*stable])
    };
    let moves = prompts.windows(2).filter(|pair| !goes_on(pair)).count();
    assert_eq!(report["prefix_moves"], moves);
    assert!(moves > 0 && moves < prompts.len() - 1, "{moves}");
}
