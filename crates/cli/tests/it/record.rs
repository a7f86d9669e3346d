//! Messages as they arrive.

use crate::shell::{Ran, Shell};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

fn begin(shell: &Shell, args: &[&str]) -> Child {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn every_message_is_answered_before_the_next_is_sent() {
    let shell = Shell::new();
    let mut child = begin(&shell, &["record", "--json", "--todo", "live"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let mut closed = 0;
    for seq in 0..24 {
        let role = if seq % 2 == 0 { "user" } else { "assistant" };
        let content = format!("第 {seq} 条: about topic {}", seq / 6);
        writeln!(stdin, "{}", json!({"role": role, "content": content})).unwrap();
        // The next line is sent only when the answer to this one is there.
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["todo_id"], "live");
        assert_eq!(answer["seq"], seq);
        closed += answer["closed"].as_array().unwrap().len();
        // It is durable: another process sees it now.
        if seq % 8 == 7 {
            assert_eq!(shell.json(&["todos"])[0]["messages"], seq + 1);
        }
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert!(closed >= 2, "{closed} blocks closed");
    // The end of the input does not close the conversation.
    let todos = shell.json(&["todos"]);
    assert_eq!(todos[0]["blocks"], closed);
    assert!(todos[0]["open"].as_u64().unwrap() > 0, "{todos}");
}

#[test]
fn a_bad_line_ends_it_and_what_came_before_stays() {
    let shell = Shell::new();
    let good = r#"{"role":"user","content":"好"}"#;
    for (bad, expected) in [
        ("{\"role\":7}", "line 3: the key \"role\" of a message must be a string"),
        ("not json", "line 3: this is not a message, which is a JSON object; 2 messages"),
        ("{\"content\":\"x\"}", "has the key \"role\""),
        ("\u{1}", "line 3"),
    ] {
        let todo = format!("t{}", bad.len());
        let mut child = begin(&shell, &["record", "--todo", &todo]);
        let mut stdin = child.stdin.take().unwrap();
        write!(stdin, "{good}\n{good}\n{bad}\n{good}\n").unwrap();
        drop(stdin);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(expected) && ran.stderr.contains("line 3"), "{ran:?}");
        let todos = shell.json(&["todos"]);
        let held = todos.as_array().unwrap().iter().find(|row| row["todo_id"] == *todo).unwrap();
        assert_eq!(held["messages"], 2);
    }
}

/// S10: at a limit, what was recorded before it is counted, and the line and the limit are named.
#[test]
fn s10_a_limit_says_how_many_messages_were_recorded_before_it() {
    let shell = Shell::new();
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["record", "--todo", "t"]);
    command.env("FOLDBACK_MEMORY_MAX_MESSAGES", "2");
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = "{\"role\":\"user\",\"content\":\"好\"}\n";
    child.stdin.take().unwrap().write_all(format!("\n{}", said.repeat(4)).as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(!ran.stderr.contains("nothing was recorded"), "{ran:?}");
    for words in ["2 messages were recorded before it", "line 4", "memory.max_messages"] {
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
    }
    assert_eq!(shell.json(&["todos"])[0]["messages"], 2);
}

#[test]
fn for_a_person_it_says_what_closed_and_how_much_there_is() {
    let shell = Shell::new();
    let mut child = begin(&shell, &["record", "--todo", "live"]);
    let mut stdin = child.stdin.take().unwrap();
    for i in 0..30 {
        writeln!(stdin, "{}", json!({"role": "user", "content": format!("note {i}")})).unwrap();
    }
    drop(stdin);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0);
    assert!(ran.text().starts_with("b_live_001 closed\n"), "{}", ran.text());
    assert!(ran.text().ends_with("live: 30 messages recorded, 30 in all\n"), "{}", ran.text());
}

#[test]
fn an_input_without_a_message_leaves_nothing_behind() {
    let shell = Shell::new();
    for (input, code) in [("", 0), ("\n\n", 0), ("not json\n", 2), ("{\"role\":7}\n", 2)] {
        for json in [&["record"][..], &["--json", "record"]] {
            let mut child = begin(&shell, &[json, &["--todo", "t"]].concat());
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            let ran = Ran::of(child.wait_with_output().unwrap());
            assert_eq!(ran.code, code, "{input:?}: {ran:?}");
            assert_eq!(ran.text(), "", "{input:?}");
            assert!(!shell.store().exists(), "{input:?}");
        }
    }
}

#[test]
fn recording_ends_when_nobody_reads_the_answers() {
    let shell = Shell::new();
    let mut child = begin(&shell, &["record", "--json", "--todo", "t"]);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..3 {
        // The command may be gone already.
        drop(stdin.write_all("{\"role\":\"user\",\"content\":\"好\"}\n".as_bytes()));
    }
    drop(stdin);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("nobody reads the answers any more"), "{ran:?}");
    assert!(ran.stderr.contains("1 message recorded"), "{ran:?}");
    assert_eq!(shell.json(&["todos"])[0]["messages"], 1);
}

/// The greatest memory that a process has held so far, in MB.
#[cfg(target_os = "linux")]
fn peak_mb(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1_000
}

/// R5, S11: a message may have 100 MB; a longer one is never held, and takes under 64 MB beyond that.
#[cfg(target_os = "linux")]
#[test]
fn r5_s11_a_line_of_300_mb_is_refused_within_the_memory_of_a_message() {
    let shell = Shell::new();
    let mut child = begin(&shell, &["record", "--json", "--lenient", "--todo", "long"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answer = || serde_json::from_str::<Value>(&answers.next().unwrap().unwrap()).unwrap();
    writeln!(stdin, "{}", json!({"role": "user", "content": "before"})).unwrap();
    assert_eq!(answer()["seq"], 0);
    let before = peak_mb(&child);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..300 {
        stdin.write_all(&piece).unwrap();
    }
    writeln!(stdin, "\n{}", json!({"role": "user", "content": "behind"})).unwrap();
    let skipped = answer();
    assert_eq!(skipped["line"], 2);
    assert!(skipped["skipped"].as_str().unwrap().contains("100000000 bytes"), "{skipped}");
    assert_eq!(answer()["seq"], 1);
    let grown = peak_mb(&child) - before;
    assert!(grown < 100 + 64, "{grown} MB");
    drop(stdin);
    assert!(child.wait().unwrap().success());
    // Without --lenient it ends there, and does not wait for the rest.
    let mut child = begin(&shell, &["record", "--todo", "long"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut taken = 0;
    while taken < 300 && stdin.write_all(&piece).is_ok() {
        taken += 1;
    }
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("line 1"), "{ran:?}");
    assert!(taken < 110, "{taken} MiB were taken");
}
