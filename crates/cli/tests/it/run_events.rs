//! `foldback run --json`: what a program reads.

use crate::provider::Provider;
use crate::run::run;
use crate::shell::{Ran, Shell};
use foldback_agent::AgentEvent;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The help of a command, on one line.
fn help(shell: &Shell, command: &str) -> String {
    let help = shell.run_bare(&[command, "--help"]);
    help.text().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The keys that the help names after some words, up to the end of the object.
fn documented<'h>(help: &'h str, behind: &str) -> BTreeSet<&'h str> {
    let object = help.split(behind).nth(1).unwrap().split('}').next().unwrap();
    let named = object.split('"').skip(1).step_by(2);
    // The report is identified by its `event`.
    named.filter(|key| *key != "report").collect()
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

#[test]
fn what_the_help_says_of_events_is_what_is_sent() {
    let shell = Shell::new();
    let events = shell.ok(&["--json", "run", "--demo", "--id", "tide"]).json_lines();
    let help = help(&shell, "run");
    let (report, events) = events.split_last().unwrap();
    assert_eq!(keys(report), documented(&help, "The last line is "));
    let named = help.split("`event` is ").nth(1).unwrap().split('.').next().unwrap();
    // The help names all of them, and no others.
    let there_are: Vec<&str> =
        named.split([',', ' ']).filter(|w| !["", "or"].contains(w)).collect();
    assert_eq!(there_are, AgentEvent::KINDS);
    for event in events {
        assert!(event["time"].is_string() && event["todo"].is_string(), "{event}");
        assert!(there_are.contains(&event["event"].as_str().unwrap()), "{event}");
    }
    let listed = shell.json(&["sessions"]);
    assert_eq!(keys(&listed[0]), documented(&self::help(&shell, "sessions"), "JSON: "));
}

/// S13: without a terminal nothing is changed, and a program learns whose call that was.
#[test]
fn s13_who_wants_to_change_something_is_told() {
    let shell = Shell::new();
    let provider = Provider::answering(|asked| {
        let messages = asked["messages"].as_array().unwrap();
        let is_sub_agent = messages[1]["content"].as_str().unwrap().contains("写进 a.md");
        let has_results = messages.iter().any(|message| message["role"] == "tool");
        match (is_sub_agent, has_results) {
            (false, false) => Provider::call(
                "delegate",
                &json!({"items": [{"id": "write", "task": "写进 a.md"}]}),
            ),
            (true, false) => Provider::call("file_write", &json!({"path": "a.md", "content": "x"})),
            (_, true) => Provider::text("It could not be written."),
        }
    });
    // A sub-agent would plan first.
    let args = ["--json", "--strategy", "react", "--id", "task", "Have it written"];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let events = ran.json_lines();
    let asked = events.iter().find(|event| event["event"] == "approval_asked").unwrap();
    assert_eq!((&asked["todo"], &asked["tool"]), (&json!("task.write"), &json!("file_write")));
    let decided = events.iter().find(|event| event["event"] == "approval_decided").unwrap();
    assert_eq!((&decided["todo"], &decided["decision"]), (&json!("task.write"), &json!("denied")));
    assert!(decided["reason"].as_str().unwrap().contains("without a terminal"), "{decided}");
    assert!(!shell.path("work/a.md").exists());
}

#[test]
fn a_call_that_cannot_be_made_is_told() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::call("web_fetch", &json!({"url": "https://example.org"})),
        Provider::text("There is no network."),
    ]);
    let ran = run(&shell, &provider, &["--json", "--strategy", "react", "Fetch it"]);
    let events = ran.json_lines();
    let ended = events.iter().find(|event| event["event"] == "call_ended").unwrap();
    assert_eq!((&ended["tool"], &ended["success"]), (&json!("web_fetch"), &json!(false)));
    assert!(ended["excerpt"].as_str().unwrap().contains("there is no function"), "{ended}");
    // A person sees it, too.
    let provider = Provider::new(vec![
        Provider::call("web_fetch", &json!({"url": "https://example.org"})),
        Provider::text("There is no network."),
    ]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Fetch it"]);
    assert!(ran.stderr.contains("✗ web_fetch"), "{}", ran.stderr);
}

/// S13: if no sandbox is available, here because the command runs in one itself, the demo says so, runs no command, and
/// finishes.
#[cfg(target_os = "linux")]
#[test]
fn s13_the_demo_does_without_a_sandbox() {
    use foldback_sandbox::{Command, Sandbox};
    if let Err(error) = Sandbox::available() {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let shell = Shell::new();
    let home = shell.path("");
    let program = assert_cmd::cargo::cargo_bin!("foldback");
    let sandbox = Sandbox::new().read_system().read(program).write(&home).env("HOME", &home);
    let args = ["--store", "store", "--json", "run", "--demo", "--id", "tide"];
    let finished = sandbox.run(&Command::new(program).args(args).folder(&home)).unwrap();
    let ran = Ran {
        code: finished.status.code().unwrap(),
        stdout: finished.stdout.text().into_bytes(),
        stderr: finished.stderr.text(),
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    let events = ran.json_lines();
    assert_eq!(events[0]["event"], "noted");
    let told = events[0]["text"].as_str().unwrap();
    assert!(told.starts_with("commands cannot be run: no sandbox is available"), "{told}");
    let shells: Vec<&Value> =
        events.iter().filter(|e| e["event"] == "call_ended" && e["tool"] == "shell_run").collect();
    assert!(shells.len() == 2 && shells.iter().all(|call| call["success"] == false), "{shells:?}");
    assert_eq!(kinds(&events).last(), Some(&"report"));
    assert!(events.last().unwrap()["answer"].as_str().unwrap().contains("37 mm"));
    assert_eq!(shell.json(&["sessions"])[0]["state"], "done");
}
