//! What was acknowledged stays, whatever happens to the process.

use crate::shell::{Shell, line, quay};
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
        while !shell.store().join("FORMAT").exists() && begun.elapsed() < Duration::from_secs(20) {
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
    // Once more changes nothing.
    let again = shell.json(&["replay", &file]);
    assert_eq!((&again["resumed_at"], &again["calls"]), (&800.into(), &0.into()));
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
    assert!(ran.text().contains("behind 9 that were there"), "{}", ran.text());
    let again = shell.json(&["import", &whole]);
    assert_eq!((&again["held"], &again["recorded"]), (&all.len().into(), &0.into()));
    // Something else is refused, by import and by replay, and nothing of it is written.
    let mut other = all.clone();
    other[3] = foldback_core::Message::user("something else");
    let other = shell.write("other.jsonl", line("quay", other));
    let short = shell.write("short.jsonl", line("quay", all[..4].to_vec()));
    for args in [["import", &other], ["replay", &other], ["import", &short]] {
        let ran = shell.run(&args);
        assert_eq!(ran.code, 2, "{ran:?}");
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
