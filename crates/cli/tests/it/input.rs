//! Conversations of other formats, and damaged ones.

use crate::shell::{Ran, Shell, line, quay};
use foldback_core::Message;
use foldback_transcript::{read_bytes, read_file};
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

/// A file that the tests of the formats read.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../transcript/tests/fixtures").join(name)
}

/// Checks that a conversation of another format is imported, replayed without loss, and exported
/// with every message as it was made, and everything around them.
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
    // A repetition finds nothing new.
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
    // A file that cannot be unpacked is a different case.
    let packed = zstd::encode_all(good[0].as_bytes(), 3).unwrap();
    let cut = shell.write("cut.jsonl.zst", &packed[..packed.len() / 2]);
    assert_eq!(shell.run(&["import", "--lenient", &cut]).code, 2);
}

#[test]
fn a_folder_may_hold_files_without_a_conversation() {
    let shell = Shell::new();
    shell.folders(&["logs/s1/tool-results"]);
    shell.write("logs/s1/tool-results/toolu_1.json", "{\"rows\": [1, 2]}");
    shell.write("logs/s1/agent-7.meta.json", "{\"agentType\": \"explore\"}");
    shell.write("logs/quay.jsonl", line("quay", quay()));
    // Files that belong to a session log are not read.
    assert!(!shell.ok(&["import", "logs"]).text().contains("skipped"));
    let prompts = "{\"display\":\"你好\",\"timestamp\":1,\"project\":\"p\"}\n".repeat(50);
    shell.write("logs/history.jsonl", &prompts);
    shell.write("logs/empty.jsonl", "");
    shell.write("logs/journal.jsonl", "{\"step\":1}\n{\"step\":2}\n");
    for args in [&["import", "logs"][..], &["import", "--lenient", "logs"], &["replay", "logs"]] {
        let ran = shell.ok(args);
        assert!(ran.text().contains("3 lines or files skipped\n"), "{ran:?}");
        for told in ["a history of prompts", "empty.jsonl holds no conversation", "journal.jsonl"] {
            assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
        }
    }
    // Beside a conversation in its file, such a line is damage like any other.
    shell.write("logs/mixed.jsonl", prompts + &line("mixed", quay()));
    assert_eq!(shell.run(&["import", "logs"]).code, 2);
    shell.ok(&["import", "--lenient", "logs"]);
    // A folder without conversations is an error; if that is skipped, nothing is made.
    let empty = Shell::new();
    empty.folders(&["logs"]);
    empty.write("logs/history.jsonl", "{\"session_id\":\"s\",\"ts\":1,\"text\":\"x\"}\n");
    for command in ["import", "replay"] {
        let ran = empty.run(&[command, "logs"]);
        assert!(ran.code == 2 && ran.stderr.contains("none of the 1 file"), "{ran:?}");
        let ran = empty.ok(&[command, "--lenient", "logs"]);
        assert_eq!(ran.text(), "1 line or file skipped\n");
        assert!(!empty.store().exists());
    }
}

#[test]
fn what_cannot_be_read_in_a_folder_is_skipped_where_that_is_asked_for() {
    let shell = Shell::new();
    shell.folders(&["logs"]);
    let packed = zstd::encode_all(line("cut", quay()).as_bytes(), 3).unwrap();
    shell.write("logs/a.jsonl.zst", &packed[..packed.len() / 2]);
    // This unpacks to far more than text does.
    let zeros = vec![b' '; 300 << 20];
    shell.write("logs/b.jsonl.zst", zstd::encode_all(zeros.as_slice(), 3).unwrap());
    shell.write("logs/c.jsonl", line("quay", quay()));
    for command in ["import", "replay"] {
        let ran = shell.run(&[command, "logs"]);
        assert!(ran.code == 2 && ran.stderr.contains("--lenient"), "{ran:?}");
        let ran = shell.ok(&[command, "--lenient", "logs"]);
        assert!(ran.text().contains("2 lines or files skipped"), "{ran:?}");
        assert!(
            ran.stderr.contains("a.jsonl.zst") && ran.stderr.contains("b.jsonl.zst"),
            "{ran:?}"
        );
        // If it is named itself, it stays an error.
        let ran = shell.run(&[command, "--lenient", "logs/a.jsonl.zst", "logs/c.jsonl"]);
        assert!(ran.code == 2 && ran.stderr.contains("cannot be unpacked"), "{ran:?}");
    }
    assert_eq!(shell.todos(), ["quay"]);
}

/// A body with a request and its response, without an id.
pub(crate) fn pair(text: &str) -> String {
    let messages = format!("[{{\"role\":\"user\",\"content\":\"{text}\"}}]");
    let answer = "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"好\"}}]}";
    format!("{{\"request\":{{\"model\":\"m\",\"messages\":{messages}}},\"response\":{answer}}}\n")
}

#[test]
fn conversations_of_one_id_or_none_get_todos_of_their_own() {
    let shell = Shell::new();
    let all = quay();
    let (half, other) = (all[..9].to_vec(), all[1..].to_vec());
    shell.write("twice.jsonl", line("a", half) + &line("a", all.clone()) + &line("a", all));
    shell.write("other.jsonl", line("a", other.clone()) + &line("a", other[2..].to_vec()));
    shell.write("pairs.jsonl", pair("一") + &pair("二"));
    shell.write("one.json", "[{\"role\":\"user\",\"content\":\"一\"}]");
    let files = ["twice.jsonl", "other.jsonl", "pairs.jsonl", "one.json"];
    let todos = ["a", "a-other", "a-2", "pairs", "pairs-2", "one"];
    for again in [false, true] {
        let ran = shell.ok(&[&["import"][..], &files].concat());
        let told = ran.stderr.matches("is skipped, because").count();
        assert_eq!((told, ran.stderr.matches(" is called ").count()), (2, 2), "{ran:?}");
        assert_eq!(shell.todos(), todos, "{again}");
    }
    let out = read_bytes(&shell.ok(&["export", "--todo", "a-other"]).stdout).unwrap().next();
    let out = out.unwrap().unwrap();
    assert_eq!((out.id.as_deref(), out.messages), (Some("a"), other));
    let ran = shell.run_bare(&[&["replay", "--json"][..], &files].concat());
    let ids: Vec<_> = ran.json_lines().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, todos, "{ran:?}");
}

#[test]
fn a_packed_file_beside_its_plain_one_is_passed_over() {
    let shell = Shell::new();
    shell.folders(&["logs"]);
    let log = line("quay", quay());
    shell.write("logs/quay.jsonl", &log);
    shell.write("logs/quay.jsonl.zst", zstd::encode_all(log.as_bytes(), 3).unwrap());
    shell.write("logs/old.jsonl.zst", zstd::encode_all(line("old", quay()).as_bytes(), 3).unwrap());
    let ran = shell.ok(&["import", "logs"]);
    assert!(ran.stderr.contains("quay.jsonl.zst is skipped, because"), "{ran:?}");
    assert_eq!(shell.todos(), ["old", "quay"]);
}

#[test]
fn a_todo_that_holds_something_else_is_passed_over_where_that_is_asked_for() {
    let shell = Shell::with_quay();
    shell.folders(&["logs"]);
    shell.write("logs/a.jsonl", line("a", quay()));
    shell.write("logs/b.jsonl", line("quay", quay()[1..].to_vec()));
    shell.write("logs/c.jsonl", line("c", quay()));
    // The others are imported all the same.
    let ran = shell.run(&["import", "logs"]);
    assert!(
        ran.code == 1 && ran.stderr.contains("error: logs/b.jsonl, line 1: todo quay"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("its message 0 is a different one"), "{ran:?}");
    assert!(ran.text().ends_with("1 conversation not imported\n"), "{ran:?}");
    assert_eq!(shell.todos(), ["quay", "a", "c"]);
    let ran = shell.ok(&["import", "--lenient", "logs"]);
    assert!(ran.stderr.contains("skipped: logs/b.jsonl, line 1: todo quay already"), "{ran:?}");
    assert!(ran.text().ends_with("1 conversation skipped\n"), "{ran:?}");
    assert_eq!(shell.todos(), ["quay", "a", "c"]);
    shell.ok(&["replay", "--lenient", "logs"]);
    // A response that was still being written is reported, and the next file has its turn.
    let mut grown = quay();
    let last = grown.len() - 1;
    grown[last] = Message::assistant("It was 7, and");
    shell.write("logs/c.jsonl", line("d", grown));
    shell.ok(&["import", "logs/c.jsonl"]);
    shell.write("logs/b.jsonl", line("d", quay()));
    shell.write("logs/c.jsonl", line("e", quay()));
    let ran = shell.run(&["import", "logs"]);
    assert!(ran.code == 1 && ran.stderr.contains("was still being written"), "{ran:?}");
    assert_eq!(shell.todos(), ["quay", "a", "c", "d", "e"]);
}

/// A line of a session log of Claude Code.
pub(crate) fn said(session: &str, n: u32, role: &str, text: &str) -> String {
    let parent = n.checked_sub(1).map_or("null".to_owned(), |n| format!("\"{session}-{n}\""));
    let message = match role {
        "user" => format!("{{\"role\":\"user\",\"content\":\"{text}\"}}"),
        _ => format!(
            "{{\"role\":\"assistant\",\"id\":\"m{n}\",\"model\":\"m\",\
             \"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"stop_reason\":\"end_turn\"}}"
        ),
    };
    format!(
        "{{\"type\":\"{role}\",\"uuid\":\"{session}-{n}\",\"parentUuid\":{parent},\"sessionId\":\"{session}\",\
         \"isSidechain\":false,\"message\":{message}}}\n"
    )
}

#[test]
fn the_folder_of_a_coding_agent_comes_in_again_and_again() {
    let shell = Shell::new();
    shell.folders(&["projects/p/s1/subagents", "projects/p/s1/tool-results"]);
    let talk = said("s1", 0, "user", "你好") + &said("s1", 1, "assistant", "hello");
    let snapshot = |n: u32| {
        format!(
            "{{\"type\":\"file-history-snapshot\",\"messageId\":\"s1-{n}\",\"snapshot\":{{\"n\":{n}}}}}\n"
        )
    };
    let title = "{\"type\":\"summary\",\"summary\":\"a title\",\"leafUuid\":\"s1-1\"}\n";
    let agent = said("s1", 0, "user", "look") + &said("s1", 1, "assistant", "found 文件");
    let agent = agent
        .replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"ag\"")
        .replace("s1-", "ag-");
    shell.write("projects/p/s1.jsonl", talk.clone() + &snapshot(1));
    // Resumed: a copy of the lines, and nothing new yet.
    shell.write("projects/p/s2.jsonl", title.to_owned() + &talk);
    // Half of the last line is not written yet.
    let third = said("s3", 0, "user", "x") + &said("s3", 1, "assistant", "y");
    let next = said("s3", 2, "user", "再来一次");
    shell.write("projects/p/s3.jsonl", third.clone() + &next[..next.len() / 2]);
    shell.write("projects/p/titles.jsonl", title);
    shell.write("projects/p/s1/subagents/agent-ag.jsonl", agent);
    shell.write("projects/p/s1/subagents/agent-ag.meta.json", "{\"agentType\":\"x\"}");
    shell.write("projects/p/s1/tool-results/tk.json", "{\"rows\":[1]}");
    let prompts = "{\"display\":\"你好\",\"timestamp\":1,\"project\":\"p\"}\n";
    shell.write("projects/history.jsonl", prompts);

    let recorded = |ran: &Ran| {
        let rows = ran.json_lines();
        let recorded = rows.iter().map(|row| {
            (row["todo_id"].as_str().unwrap().to_owned(), row["recorded"].as_u64().unwrap())
        });
        recorded.filter(|(_, recorded)| *recorded > 0).collect::<Vec<_>>()
    };
    let all = [("s1", 2), ("s1-agent-ag", 2), ("s3", 2)].map(|(id, n)| (id.to_owned(), n));
    let mut first = recorded(&shell.ok(&["import", "--json", "projects"]));
    first.sort();
    assert_eq!(first, all);
    let exports = |shell: &Shell| {
        let ids = ["s1", "s1-agent-ag", "s3"];
        ids.map(|id| shell.ok(&["export", "--todo", id]).text().to_owned())
    };
    let before = exports(&shell);
    assert!(before[0].contains("你好") && before[1].contains("found 文件"), "{before:?}");
    // A repetition finds nothing new.
    assert_eq!(recorded(&shell.ok(&["import", "--json", "projects"])), []);
    assert_eq!(exports(&shell), before);
    // A log that has grown continues, and the data around the messages follows.
    let more = said("s1", 2, "user", "more") + &said("s1", 3, "assistant", "更多");
    shell.write("projects/p/s1.jsonl", talk + &snapshot(1) + &more + &snapshot(4321));
    shell.write("projects/p/s3.jsonl", third + &next);
    let grown = [("s1", 2), ("s3", 1)].map(|(id, n)| (id.to_owned(), n));
    assert_eq!(recorded(&shell.ok(&["import", "--json", "projects"])), grown);
    let after = exports(&shell);
    assert!(after[0].contains("更多") && after[0].contains("4321"), "{}", after[0]);
    assert!(after[2].contains("再来一次"), "{}", after[2]);
    shell.ok(&["doctor"]);
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
