//! Conversations of other formats, and damaged ones.

use crate::shell::{Ran, Shell, line, quay};
use foldback_transcript::{read_bytes, read_file};
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

/// A file that the tests of the formats read.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../transcript/tests/fixtures").join(name)
}

/// That a conversation of another format comes in, is replayed without a loss, and comes out with
/// every message as it was made, and everything beside them.
#[track_caller]
fn check(name: &str) {
    let shell = Shell::new();
    let file = fixture(name);
    let path = file.to_str().unwrap();
    let read: Vec<_> = read_file(&file).unwrap().map(Result::unwrap).collect();
    shell.ok(&["import", path]);
    for conversation in &read {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let id = conversation.id.clone().unwrap_or(name);
        let line = shell.ok(&["export", "--todo", &id]);
        let out = read_bytes(&line.stdout).unwrap().next().unwrap().unwrap();
        assert_eq!(out.messages, conversation.messages, "{id}");
        assert_eq!(out.envelope.get("source"), conversation.envelope.get("source"), "{id}");
    }
    for line in shell.run_bare(&["replay", "--json", path]).text().lines() {
        let report: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&report["lossless"], &report["orphans"]),
            (&true.into(), &0.into()),
            "{report}"
        );
    }
    // Again is no news.
    shell.ok(&["import", path]);
}

#[test]
fn anthropic_bodies_come_in_and_out() {
    check("anthropic/request.json");
    check("anthropic/pairs.jsonl");
    check("anthropic/messages.json");
}

#[test]
fn messages_of_langchain_come_in_and_out() {
    check("langchain/dict.json");
    check("langchain/dumps.jsonl");
    check("langchain/thread.json");
    check("langchain/chunks.json");
}

#[test]
fn damaged_lines_are_skipped_where_that_is_asked_for() {
    let shell = Shell::new();
    let good = [line("a", quay()), line("b", quay())];
    let mut input = format!("{}{{\"id\": \"c\n{{\"role\":7}}\n", good[0]).into_bytes();
    input.extend(b"{\"id\":\"\xff\"}\n");
    input.extend(good[1].as_bytes());
    let file = shell.write("damaged.jsonl", input);
    for command in ["import", "replay"] {
        let ran = shell.run(&[command, &file]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("damaged.jsonl, line ") && !shell.store().exists(), "{ran:?}");
        let lines = |ran: &Ran| ran.stderr.matches("skipped: ").count();
        let ran = shell.run_bare(&[command, "--lenient", "--store", "elsewhere", &file]);
        assert_eq!((ran.code, lines(&ran)), (0, 3), "{ran:?}");
        assert!(ran.text().contains("3 lines or files skipped"), "{ran:?}");
        let ran = shell.run_bare(&[command, "--lenient", "--json", "--store", "elsewhere", &file]);
        assert_eq!((ran.code, ran.text().lines().count()), (0, 2), "{ran:?}");
        assert!(ran.stderr.contains("3 lines or files skipped"), "{ran:?}");
    }
    // What cannot be unpacked is another matter.
    let packed = zstd::encode_all(good[0].as_bytes(), 3).unwrap();
    let cut = shell.write("cut.jsonl.zst", &packed[..packed.len() / 2]);
    assert_eq!(shell.run(&["import", "--lenient", &cut]).code, 2);
}

#[test]
fn a_folder_may_hold_files_without_a_conversation() {
    let shell = Shell::new();
    for folder in ["logs", "logs/s1", "logs/s1/tool-results"] {
        std::fs::create_dir(shell.path(folder)).unwrap();
    }
    shell.write("logs/s1/tool-results/toolu_1.json", "{\"rows\": [1, 2]}");
    shell.write("logs/s1/agent-7.meta.json", "{\"agentType\": \"explore\"}");
    shell.write("logs/quay.jsonl", line("quay", quay()));
    // What belongs to a session log is not looked at.
    shell.ok(&["import", "logs"]);
    let prompts = "{\"display\":\"你好\",\"timestamp\":1,\"project\":\"p\"}\n".repeat(50);
    shell.write("logs/history.jsonl", prompts);
    shell.write("logs/empty.jsonl", "");
    shell.write("logs/journal.jsonl", "{\"step\":1}\n{\"step\":2}\n");
    let ran = shell.run(&["import", "logs"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = shell.ok(&["import", "--lenient", "logs"]);
    assert!(ran.text().ends_with("3 lines or files skipped\n"), "{ran:?}");
    for told in ["a history of prompts", "empty.jsonl holds no conversation", "journal.jsonl"] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    // Where nothing is left, nothing is made.
    let empty = Shell::new();
    let file = empty.write("history.jsonl", "{\"session_id\":\"s\",\"ts\":1,\"text\":\"x\"}\n");
    for command in ["import", "replay"] {
        let ran = empty.ok(&[command, "--lenient", &file]);
        assert_eq!(ran.text(), "1 line or file skipped\n");
        assert!(!empty.store().exists());
    }
}

#[test]
fn what_is_recorded_goes_on_behind_a_damaged_line() {
    let shell = Shell::new();
    let good = |n: u32| format!("{{\"role\":\"user\",\"content\":\"第{n}\"}}\n");
    let input = ["{\"role\":7}\n", &good(0), "not json\n", &good(1), &good(2), "\u{1}\n"].concat();
    let run = |args: &[&str]| {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    };
    let ran = run(&["record", "--lenient", "--json", "--todo", "t"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let answers: Vec<Value> =
        ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Each line has its answer in its turn.
    let told: Vec<_> =
        answers.iter().map(|answer| (answer["seq"].as_u64(), answer["line"].as_u64())).collect();
    let expected = [
        (None, Some(1)),
        (Some(0), None),
        (None, Some(3)),
        (Some(1), None),
        (Some(2), None),
        (None, Some(6)),
    ];
    assert_eq!(told, expected);
    assert!(answers[0]["skipped"].as_str().unwrap().contains("the key \"role\""), "{answers:?}");
    let ran = run(&["record", "--lenient", "--todo", "person"]);
    assert!(
        ran.text().ends_with("person: 3 messages recorded, 3 in all, 3 lines skipped\n"),
        "{ran:?}"
    );
    assert_eq!(ran.stderr.matches("skipped: ").count(), 3);
    assert_eq!(run(&["record", "--todo", "strict"]).code, 2);
}
