//! Finding what folded.

use crate::shell::{Shell, line, quay};
use foldback_testkit::transcript;

/// The block that a question finds first has to hold `expected`.
#[track_caller]
fn check(shell: &Shell, question: &str, expected: &str) {
    let found = shell.json(&["search", "--todo", "quay", question]);
    let text = found["hits"][0]["text"].as_str().unwrap();
    assert!(text.contains(expected), "{question}: {text}");
}

#[test]
fn questions_find_their_blocks() {
    let shell = Shell::with_quay();
    check(&shell, "船闸 重复的通知", "nt-2226");
    check(&shell, "StoreConflict: rule 2: an attempt was logged twice", "StoreConflict");
    check(&shell, "lease_seconds", "lease_seconds = 45");
    check(&shell, "nt-0042", "pilot-office");
    check(&shell, "docs/operations.md", "日志时间是 UTC");
}

#[test]
fn hits_show_the_lines_and_the_explanation() {
    let shell = Shell::with_quay();
    let ran = shell.ok(&["search", "--todo", "quay", "-k", "1", "--explain", "lease_seconds"]);
    let text = ran.text();
    assert!(text.starts_with("1. b_quay_001  score "), "{text}");
    assert!(text.contains("lease_seconds = 45"), "{text}");
    assert!(text.contains("bm25") && text.contains("relevance"), "{text}");
}

/// TL1: every part of a score is shown, and they add up.
#[test]
fn tl1_the_parts_of_a_score_are_told() {
    let shell = Shell::with_quay();
    let query = "what was in the log of 1 March 2025?";
    let found = shell.json(&["search", "--todo", "quay", "--all", "--explain", query]);
    let mut any = [false; 3];
    for hit in found["hits"].as_array().unwrap() {
        let told = &hit["explanation"];
        let part = |key: &str| told[key].as_f64().unwrap();
        let w = part("lexical_weight");
        let words = hit["bm25"].as_f64().unwrap() / part("best_bm25");
        let meaning = hit["cosine"].as_f64().unwrap().clamp(0.0, 1.0);
        let beside = ["neighbours", "recent", "dated"].map(part);
        any.iter_mut().zip(beside).for_each(|(any, part)| *any |= part > 0.0);
        let sum = w * words + (1.0 - w) * meaning + beside.iter().sum::<f64>() + part("bonus");
        assert!((hit["score"].as_f64().unwrap() - sum).abs() < 0.01, "{hit}");
    }
    assert_eq!(any, [true; 3], "{found}");
}

#[test]
fn filters_bound_what_is_found() {
    let shell = Shell::with_quay();
    let query = "nt-2226";
    let hits = |args: &[&str]| {
        let mut all = vec!["--json", "search", "--all", "--todo", "quay", query];
        all.extend(args);
        let ran = shell.run(&all);
        let hits = ran.json()["hits"].as_array().unwrap().clone();
        assert_eq!(ran.code, i32::from(hits.is_empty()), "{ran:?}");
        hits.into_iter().map(|hit| hit["first_seq"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let all = hits(&["-k", "50"]);
    assert!(all.len() > 1);
    let late = hits(&["-k", "50", "--since", "2025-03-01T09:15:00Z"]);
    let early = hits(&["-k", "50", "--until", "2025-03-01 09:15:00"]);
    assert!(late.iter().all(|seq| all.contains(seq)) && !late.is_empty());
    assert!(early.iter().all(|seq| !late.contains(seq)));
    assert!(hits(&["--since", "2031-01-01T00:00:00Z"]).is_empty());
    let day = "2025-03-01";
    assert_eq!(hits(&["-k", "50", "--since", day, "--until", day]), all);
    assert!(hits(&["--until", "2025-02-28"]).is_empty());
    let none = ["search", "--todo", "quay", query, "--until", "2025-02-28", "--type", "qa"];
    let none = shell.run(&none);
    let told = "nothing was found among the blocks that pass --type and --until";
    assert!(none.code == 1 && none.stderr.contains(told), "{none:?}");
    assert!(!none.stderr.contains("foldback blocks"), "{none:?}");
    let never = ["--since", "2025-03-02", "--until", day];
    let never = shell.run(&[&["search", "--todo", "quay", query][..], &never].concat());
    assert!(never.code == 2 && never.stderr.contains("--since is after --until"), "{never:?}");
    let typed = shell.json(&["search", "--todo", "quay", "--type", "tool_call", query]);
    assert!(!typed["hits"].as_array().unwrap().is_empty());
    for bad in [["--since", "soon"], ["--type", "essay"], ["-k", "0"], ["-k", "201"]] {
        let ran = shell.run(&["search", "--todo", "quay", query, bad[0], bad[1]]);
        assert_eq!(ran.code, 2, "{bad:?}");
    }
}

#[test]
fn td1_a_search_never_crosses_todos() {
    let shell = Shell::with_quay();
    let other = transcript(
        "
        user: the canary is called quokka-77
        assistant: noted
        ",
    );
    let file = shell.write("other.jsonl", line("other", other));
    shell.ok(&["import", &file]);
    let text = shell
        .json(&["search", "--all", "--todo", "quay", "-k", "50", "quokka-77 canary"])
        .to_string();
    assert!(!text.contains("quokka"), "{text}");
    let own = shell.json(&["search", "--todo", "other", "quokka-77"]);
    assert_eq!(own["hits"][0]["block_id"], "b_other_001");
    // A block of another todo is reported like one that never existed.
    let foreign = shell.run(&["load", "--todo", "quay", "b_other_001"]);
    let none = shell.run(&["load", "--todo", "quay", "b_never_001"]);
    assert_eq!((foreign.code, none.code), (1, 1));
    assert_eq!(foreign.stderr.replace("b_other", "b_never"), none.stderr);
}

#[test]
fn a_replay_shows_recalls_only_where_something_folded() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let short = shell.write("short.jsonl", line("short", quay()[..3].to_vec()));
    let heading = "Folded content is found again";
    assert!(shell.run_bare(&["replay", &file]).text().contains(heading));
    assert!(!shell.run_bare(&["replay", &short]).text().contains(heading));
    assert!(!shell.run_bare(&["-q", "replay", &file]).text().contains(heading));
}

#[test]
fn what_was_never_said_is_not_found() {
    let shell = Shell::with_quay();
    for query in ["zzzqqq", "xqzvkj wqjx", "banana smoothie recipe", "香蕉"] {
        let ran = shell.run(&["search", "--todo", "quay", query]);
        assert_eq!((ran.code, ran.text()), (1, ""), "{query}");
        assert!(ran.stderr.contains("nothing was found"), "{}", ran.stderr);
        let ran = shell.run(&["--json", "search", "--todo", "quay", query]);
        assert_eq!(ran.code, 1, "{query}: {ran:?}");
        assert_eq!(ran.json()["hits"].as_array().unwrap().len(), 0, "{query}");
    }
    let query = "banana smoothie recipe";
    assert!(shell.run(&["search", "--todo", "quay", query]).stderr.contains("--all shows"));
    let all = shell.json(&["search", "--all", "--todo", "quay", query]);
    assert!(!all["hits"].as_array().unwrap().is_empty(), "{all}");
}

/// BS7: the text of a payload is found, with the reference and the lines that load takes.
#[test]
fn bs7_a_line_of_a_stored_payload_is_found_with_its_lines() {
    let shell = Shell::new();
    let line_of = |n| match n {
        437 => "02:11:07 INFO quay-7 租约过期 E_LEASE_4417\n".to_owned(),
        n => format!("02:11:{:02} INFO worker {n} is idle\n", n % 60),
    };
    let log: String = (1..=700).map(line_of).collect();
    let call = foldback_core::ToolCall::new("r", "read_log", "{}");
    let messages = vec![
        foldback_core::Message::user("Why did the nightly run stop?"),
        foldback_core::Message::calls("", vec![call.clone()]),
        foldback_core::Message::tool_result(&call.id, &log),
        foldback_core::Message::assistant("Noted."),
    ];
    let file = shell.write("nightly.jsonl", line("nightly", messages));
    shell.ok(&["import", &file]);
    for query in ["E_LEASE_4417", "租约过期"] {
        let found = shell.json(&["search", "--todo", "nightly", query]);
        let payload = &found["hits"][0]["payloads"][0];
        assert!(payload["text"].as_str().unwrap().contains("E_LEASE_4417"), "{found}");
        let (first, last) = (&payload["first_line"], &payload["last_line"]);
        assert_eq!((&payload["skip"], &payload["also_in"]), (&0.into(), &serde_json::json!([])));
        let reference = payload["ref"].as_str().unwrap();
        let lines = format!("{first}-{last}");
        let loaded = shell.ok(&["load", "--todo", "nightly", reference, "--lines", &lines]);
        assert!(loaded.text().contains("quay-7 租约过期"), "{}", loaded.text());
        let shown = shell.ok(&["search", "--todo", "nightly", "--explain", query]);
        assert!(shown.text().contains(&format!("{reference}, lines {lines}")), "{}", shown.text());
    }
}

/// A store with the todo `ledger`, one result of which is a payload in a file.
fn with_ledger() -> Shell {
    let shell = Shell::new();
    let messages = transcript(
        r#"
        user: read the harbour ledger
        assistant> read({"path": "ledger.csv"})
        tool: [big 200000]
        assistant: the ledger of the harbour has a gap at Tuesday
        "#,
    );
    let file = shell.write("ledger.jsonl", line("ledger", messages));
    shell.ok(&["import", &file]);
    shell
}

/// BS6: a damaged payload does not hide the block that it was in.
#[test]
fn bs6_a_search_goes_on_beside_a_damaged_payload() {
    let shell = with_ledger();
    let mut at = shell.store().join("payloads");
    while at.is_dir() {
        let mut entries = std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path());
        at = entries.find(|path| path.file_name().unwrap() != "lock").unwrap();
    }
    std::fs::write(&at, b"nothing of it is left").unwrap();
    let ran = shell.run(&["search", "--todo", "ledger", "harbour ledger gap"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("a gap at Tuesday"), "{ran:?}");
    assert!(ran.stderr.contains("message 2 cannot be shown"), "{ran:?}");
}

/// S12: hostile questions are answered, or refused with a sentence, as far as a command line can express them.
#[test]
fn s12_hostile_queries_are_answered_on_the_command_line() {
    let shell = Shell::with_quay();
    // No more than that: each is a process of its own.
    let queries = foldback_testkit::hostile_queries(1_000).into_iter();
    let sayable = queries.filter(|query| !query.contains('\0') && query.len() < 100_000);
    for query in sayable.step_by(23) {
        let ran = shell.run(&["search", "--todo", "quay", "--json", "--", &query]);
        assert!(matches!(ran.code, 0..=2), "{query:.80}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{query:.80}: {}", ran.stderr);
        if ran.code == 0 {
            let hits = ran.json()["hits"].as_array().unwrap().len();
            assert!(hits <= 20, "{query:.80}: {hits} hits");
        }
    }
    // A sensible one is answered as before.
    let found = shell.json(&["search", "--todo", "quay", "lease_seconds"]);
    assert!(!found["hits"].as_array().unwrap().is_empty(), "{found}");
}

/// R4: what was not searched is named on stderr and in the JSON, for one todo and for all, whether or not anything was
/// found.
#[test]
fn r4_a_search_names_what_it_could_not_look_into() {
    let shell = with_ledger();
    let (found, nothing) = ("harbour ledger gap", "zebra quokka violin");
    let sound = shell.run(&["search", "--todo", "ledger", "--json", found]);
    assert!(sound.json().get("unsearched").is_none() && !sound.stderr.contains("not searched"));
    std::fs::remove_dir_all(shell.store().join("payloads")).unwrap();
    for scope in [&["--todo", "ledger"][..], &["--all-todos"]] {
        for (query, code) in [(found, 0), (nothing, 1)] {
            let ran = shell.run(&[&["search", "--json"], scope, &[query]].concat());
            assert_eq!(ran.code, code, "{ran:?}");
            let unsearched = &ran.json()["unsearched"];
            assert_eq!(unsearched.as_array().unwrap().len(), 1, "{ran:?}");
            let (name, why) = (unsearched[0]["ref"].as_str().unwrap(), &unsearched[0]["why"]);
            assert_eq!(why, "missing");
            assert_eq!(unsearched[0].get("todo_id").is_some(), scope.len() == 1, "{ran:?}");
            assert!(ran.stderr.contains(&format!("not searched: {name} (missing)")), "{ran:?}");
        }
    }
}
