//! `foldback run`, interrupted at different moments and resumed.

#![cfg(unix)]

use crate::provider::Provider;
use crate::run::command;
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sends Ctrl-C's signal.
fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

/// Interrupts a run with Ctrl-C's signal once it has reported something this often, and resumes it.
fn interrupted_at(event: &str, times: usize) {
    let shell = Shell::new();
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let provider = Provider::answering(move |request| {
        let results = request["messages"].as_array().unwrap().iter();
        match results.filter(|message| message["role"] == "tool").count() {
            0 => Provider::call("file_write", &json!({"path": "a.md", "content": "小雨"})),
            // The process is already gone.
            _ if slow.load(Ordering::Relaxed) => {
                Provider::text("Too late.").after(Duration::from_secs(60))
            }
            _ => Provider::text("写好了。"),
        }
    });
    let args = ["--json", "--strategy", "react", "--yes", "--id", "note", "写下来"];
    let mut command = command(&shell, &provider, &args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.by_ref().filter(|line| line.contains(event)).nth(times - 1).unwrap();
    interrupt(&child);
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    is_slow.store(false, Ordering::Relaxed);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &last["state"]), (1, &json!("cancelled")), "{event}: {ran:?}");

    let ran = shell.ok(&["--json", "run", "--resume", "note"]);
    let report = ran.json_lines().pop().unwrap();
    assert_eq!(report["answer"], "写好了。", "{event}: {report}");
    assert_eq!(std::fs::read_to_string(shell.path("work/a.md")).unwrap(), "小雨");
    assert_eq!(shell.json(&["sessions"])[0]["state"], "done");
    shell.ok(&["verify"]);
}

#[test]
fn it_goes_on_where_a_call_had_ended() {
    interrupted_at("\"call_ended\"", 1);
}

#[test]
fn it_goes_on_where_the_model_was_being_asked() {
    interrupted_at("\"asked\"", 2);
}

/// OM3: a command that was running when the run was interrupted is not run again: what it did is done.
#[cfg(target_os = "linux")]
#[test]
fn om3_a_command_that_was_interrupted_is_not_run_again() {
    if let Err(error) = foldback_sandbox::Sandbox::available() {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let shell = Shell::new();
    let provider = Provider::answering(|request| {
        let results = request["messages"].as_array().unwrap().iter();
        match results.filter(|message| message["role"] == "tool").count() {
            0 => Provider::call("shell_run", &json!({"command": "echo 一行 >> a.md; sleep 60"})),
            _ => Provider::text("写好了。"),
        }
    });
    let args = ["--json", "--strategy", "react", "--yes", "--id", "note", "写下来"];
    let mut command = command(&shell, &provider, &args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.by_ref().find(|line| line.contains("\"call_began\"")).unwrap();
    let written = || std::fs::read_to_string(shell.path("work/a.md")).unwrap_or_default();
    while written().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it wrote anything");
        std::thread::sleep(Duration::from_millis(10));
    }
    interrupt(&child);
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &last["state"]), (1, &json!("cancelled")), "{ran:?}");

    let report = shell.ok(&["--json", "run", "--resume", "note"]).json_lines().pop().unwrap();
    assert_eq!((&report["answer"], written().as_str()), (&json!("写好了。"), "一行\n"), "{report}");
}
