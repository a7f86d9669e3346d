//! What was acknowledged stays, whatever happens to the process.

use crate::shell::{Ran, Shell, line, quay};
use foldback_core::Message;
use foldback_testkit::transcript;
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn long() -> Vec<foldback_core::Message> {
    let mut script = String::new();
    for i in 0..400 {
        writeln!(script, "user: question {i} about gate {}", i % 7).unwrap();
        writeln!(script, "assistant: answer {i}: it opens at {} o'clock", i % 24).unwrap();
    }
    transcript(&script)
}

#[test]
fn r1_a_replay_that_is_killed_goes_on_where_it_was() {
    let shell = Shell::new();
    let source = line("long", long());
    let file = shell.write("long.jsonl", &source);
    let mut killed = 0;
    for after in [60, 150, 300] {
        let mut child = shell
            .command()
            .args(["--store", shell.store().to_str().unwrap(), "replay", &file])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed once there is a store and a little more time has passed.
        let begun = Instant::now();
        let is_made = || {
            let format = std::fs::read_to_string(shell.store().join("FORMAT"));
            format.is_ok_and(|format| !format.contains("unfinished"))
        };
        while !is_made() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(after));
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        let held = shell.json(&["todos"]);
        let held = held[0]["messages"].as_u64().unwrap_or(0);
        assert!(held <= 800, "{held}");
        assert_eq!(shell.ok(&["verify"]).stderr, "");
    }
    assert!(killed > 0, "every replay was over before it could be killed");
    let report = shell.json(&["replay", &file]);
    assert_eq!(report["lossless"], true);
    assert_eq!(report["messages"], 800);
    assert_eq!(shell.ok(&["export", "--todo", "long"]).text(), source);
    // A repetition changes nothing.
    let again = shell.json(&["replay", &file]);
    assert_eq!(again["resumed_at"], 800);
    assert_eq!(again["blocks"], report["blocks"]);
}

#[test]
fn an_import_goes_on_behind_what_is_there() {
    let shell = Shell::new();
    let all = quay();
    let half = shell.write("half.jsonl", line("quay", all[..9].to_vec()));
    let whole = shell.write("whole.jsonl", line("quay", all.clone()));
    shell.ok(&["import", &half]);
    let ran = shell.ok(&["import", &whole]);
    assert!(ran.text().contains("after 9 already there"), "{}", ran.text());
    let again = shell.json(&["import", &whole]);
    assert_eq!((&again["held"], &again["recorded"]), (&all.len().into(), &0.into()));
    // Something else is refused, by import and by replay, and nothing of it is written.
    let mut other = all.clone();
    other[3] = foldback_core::Message::user("something else");
    let other = shell.write("other.jsonl", line("quay", other));
    let short = shell.write("short.jsonl", line("quay", all[..4].to_vec()));
    for args in [["import", &other], ["replay", &other], ["import", &short]] {
        let ran = shell.run(&args);
        assert_eq!(ran.code, if args[0] == "import" { 1 } else { 2 }, "{ran:?}");
        assert!(ran.stderr.contains("already holds"), "{}", ran.stderr);
    }
    assert_eq!(shell.json(&["todos"])[0]["messages"], all.len());
}

#[test]
fn bad_input_behind_good_writes_nothing() {
    let shell = Shell::new();
    let good = line("good", quay());
    let file = shell.write("both.jsonl", format!("{good}{{\"id\":\"bad\",\"messages\":[{{}}]}}\n"));
    let ran = shell.run(&["import", &file]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("both.jsonl, line 2"), "{}", ran.stderr);
    assert!(!shell.store().exists());
    let good = shell.write("good.jsonl", good);
    let ran = shell.run(&["replay", &good, "missing.jsonl"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("missing.jsonl"), "{}", ran.stderr);
    assert!(!shell.store().exists());
}

#[test]
fn a_replay_of_what_is_there_measures_all_of_it() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let half = shell.write("half.jsonl", line("quay", quay()[..9].to_vec()));
    let fresh = shell.run_bare(&["--json", "replay", &file]).json();
    // Whether nothing, a beginning or everything was there before.
    for before in [None, Some(&half), Some(&file)] {
        let shell = Shell::new();
        let recorded =
            before.map_or(0, |file| shell.json(&["import", file])["recorded"].as_u64().unwrap());
        let report = shell.json(&["replay", &file]);
        assert_eq!(report["resumed_at"], recorded);
        for key in ["calls", "full", "tokens"] {
            assert_eq!(report[key], fresh[key], "{key} with {recorded} there");
        }
        if recorded != 9 {
            for key in ["input_tokens", "cached_tokens", "prefix_moves", "window_max_messages"] {
                assert_eq!(report[key], fresh[key], "{key} with {recorded} there");
            }
        }
        let text = shell.ok(&["replay", &file]);
        assert!(text.text().contains("recorded before 24 messages"), "{}", text.text());
        assert!(text.text().contains("input tokens of 11 calls"), "{}", text.text());
    }
}

/// Two runs of a command at once, into one store.
fn race(shell: &Shell, args: &[&str]) -> Vec<Ran> {
    let begin = || {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [begin(), begin()];
    children.map(|child| Ran::of(child.wait_with_output().unwrap())).into()
}

#[test]
fn two_writers_of_one_conversation_record_it_once() {
    let source = line("long", long());
    for command in ["import", "replay"] {
        let shell = Shell::new();
        // The store is there before, so that the two meet in the todo.
        shell.ok(&["import", &shell.write("quay.jsonl", line("quay", quay()))]);
        let file = shell.write("long.jsonl", &source);
        let mut recorded = 0;
        for ran in race(&shell, &["--json", command, &file]) {
            assert_eq!(ran.code, 0, "{command}: {ran:?}");
            let report = ran.json();
            recorded += match command {
                "import" => report["recorded"].as_u64().unwrap(),
                _ => 800 - report["resumed_at"].as_u64().unwrap(),
            };
            if command == "replay" {
                assert_eq!((&report["lossless"], &report["calls"]), (&true.into(), &400.into()));
            }
        }
        assert_eq!(recorded, 800, "{command}");
        assert_eq!(shell.ok(&["export", "--todo", "long"]).text(), source, "{command}");
        assert_eq!(shell.json(&["doctor"])["clean"], true, "{command}");
    }
}

#[test]
fn work_is_finished_when_nobody_reads_of_it() {
    let many: String = (0..100)
        .map(|i| line(&format!("c{i}"), vec![Message::user("好"), Message::assistant("go")]))
        .collect();
    for args in [&["import"][..], &["--json", "import"], &["replay"], &["--json", "replay"]] {
        let shell = Shell::new();
        let file = shell.write("many.jsonl", &many);
        let ran = shell.run_unread(&[args, &[file.as_str()]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        assert_eq!(shell.json(&["todos"]).as_array().unwrap().len(), 100, "{args:?}");
        // Only one, with everything that is shown of it.
        let one = shell.write("quay.jsonl", line("quay", quay()));
        let ran = shell.run_unread(&[args, &[one.as_str()]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        assert_eq!(shell.ok(&["export", "--todo", "quay"]).text(), line("quay", quay()));
    }
}
