//! `foldback run --demo`: what it shows, what it leaves, and that it can be killed at any point.

use crate::shell::{Ran, Shell};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

/// The run's name in these tests.
const ID: &str = "tide";

/// The todos that the demo leaves; the last has what is granted to the item that waits for the others.
const TODOS: [&str; 4] = ["tide", "tide.data", "tide.docs", "tide.mend"];

fn demo(shell: &Shell) -> Vec<Value> {
    shell.ok(&["--json", "run", "--demo", "--id", ID]).json_lines()
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// What was said in each todo, a message per line, without anything that differs from store to store: no time, neither
/// a message's own nor that of a block that was looked up, and no secret of the marks.
fn said(shell: &Shell) -> BTreeMap<String, Vec<String>> {
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?").unwrap();
    let marks = regex::Regex::new(r"recalled-[a-z0-9]+").unwrap();
    let todos = TODOS.iter().map(|todo| {
        let exported: Value = shell.ok(&["export", "--todo", todo]).json();
        let mut messages = exported["messages"].as_array().unwrap().clone();
        for message in &mut messages {
            message.as_object_mut().unwrap().remove("timestamp");
        }
        let plain = |message: &Value| {
            let timeless = time.replace_all(&message.to_string(), "T").into_owned();
            marks.replace_all(&timeless, "recalled").into_owned()
        };
        ((*todo).to_owned(), messages.iter().map(plain).collect())
    });
    todos.collect()
}

#[test]
fn the_demo_shows_what_an_agent_with_a_memory_does() {
    let shell = Shell::new();
    let events = demo(&shell);
    let report = events.last().unwrap();
    assert_eq!(report["event"], "report");
    assert_eq!(report["state"], "done");
    assert!(events.iter().all(|event| event["event"] == "report" || event["time"].is_string()));

    // A todo list, and its progress.
    let lists = of_kind(&events, "todos");
    let states = |list: &Value| -> Vec<String> {
        let items = list["list"].as_array().unwrap().iter();
        items.map(|item| item["state"].as_str().unwrap().to_owned()).collect()
    };
    let own: Vec<&&Value> = lists.iter().filter(|list| list["todo"] == ID).collect();
    assert_eq!(states(own.first().unwrap())[0], "in_progress");
    assert!(states(own.last().unwrap()).iter().all(|state| state == "completed"));

    // Calls that run together, an error that is kept, a command in the sandbox or its refusal.
    let planned = of_kind(&events, "planned");
    assert!(planned.iter().any(|plan| plan["steps"].as_array().unwrap().len() >= 4));
    let ended = of_kind(&events, "call_ended");
    let failed = |tool: &str| ended.iter().any(|c| c["tool"] == tool && c["success"] == false);
    assert!(failed("file_read"), "a file that is not there");
    assert_eq!(ended.iter().filter(|call| call["tool"] == "shell_run").count(), 2);

    // Two sub-agents, which work at the same time.
    let delegated: Vec<&str> =
        of_kind(&events, "delegated").iter().map(|e| e["item"].as_str().unwrap()).collect();
    assert_eq!(delegated, ["tide.data", "tide.docs"]);
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    let place = |kind: &str| kinds.iter().position(|found| *found == kind).unwrap();
    let second = kinds.iter().rposition(|found| *found == "delegated").unwrap();
    assert!(second < place("handed_back"), "the second began before the first was done");

    // Blocks close, and what left the view is found again and used.
    assert!(!of_kind(&events, "folded").is_empty());
    let recalled: Vec<&str> =
        of_kind(&events, "recalled").iter().map(|e| e["tool"].as_str().unwrap()).collect();
    assert_eq!(recalled, ["search_block", "load"]);
    assert!(report["answer"].as_str().unwrap().contains("37 mm"), "{report}");
    assert!(report["blocks"].as_u64().unwrap() >= 2, "{report}");

    // It saves more than a third, though it is short.
    let figure = |name: &str| report[name].as_u64().unwrap();
    assert!(figure("sent_tokens") * 3 < figure("full_tokens") * 2, "{report}");
}

#[test]
fn the_demo_works_on_real_files() {
    let shell = Shell::new();
    let ran = shell.ok(&["run", "--demo", "--id", ID]);
    assert!(ran.text().contains("add 37 mm"), "{}", ran.text());
    let workspace = shell.store().join("runs").join(ID).join("workspace");
    let read = |name: &str| std::fs::read_to_string(workspace.join(name)).unwrap();
    assert!(read("report.awk").contains("$4 == -9999"));
    assert!(read("docs/format.md").contains("-9999 for an hour"));
    assert!(read("docs/stations.md").contains("add 37 mm to each"));
    // Without a terminal there is a line for each thing that happens, and no control character.
    assert!(ran.stderr.contains("file_read") && !ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    let ran = shell.ok(&["--quiet", "run", "--demo"]);
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.text().lines().count(), 1, "the answer alone: {}", ran.text());
}

#[test]
fn the_demo_leaves_a_store_that_can_be_looked_into() {
    let shell = Shell::new();
    demo(&shell);
    let mut todos = shell.todos();
    todos.sort();
    assert_eq!(todos, TODOS);
    // TD4: what a sub-agent did can be read by the name that its caller was given.
    let told = said(&shell)[ID].join("\n");
    assert!(told.contains("b_tide.data_001"), "{told}");
    let blocks = shell.json(&["blocks", "--todo", ID]);
    assert!(blocks.as_array().unwrap().len() >= 2, "{blocks}");
    let found = shell.json(&["search", "--todo", ID, "correction for Holm"]);
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.iter().any(|hit| hit["block_id"] == "b_tide_002"), "{found}");
    shell.ok(&["verify"]);
    assert_eq!(shell.json(&["doctor"])["clean"], true);
    let listed = shell.json(&["sessions"]);
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&json!(ID), &json!("done")));
    assert!(listed[0]["task"].as_str().unwrap().starts_with("The tide report shows"), "{listed}");
    let told = shell.ok(&["sessions"]);
    let words = told.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with("tide done · adaptive · foldback · 16 model calls"), "{words}");
    let last = told.text().lines().last().unwrap();
    assert!(last.starts_with("    The tide report shows"), "{last}");
    assert_eq!(shell.ok(&["trajectories", "export", ID]).json_lines().len(), 1);
}

/// A run that cannot be read keeps no other from being exported.
#[test]
fn an_unreadable_run_is_named_and_the_others_are_exported() {
    let shell = Shell::new();
    shell.ok(&["run", "--demo", "--id", "ebb"]);
    shell.ok(&["run", "--demo", "--id", ID]);
    let runs = shell.store().join("runs");
    let of_tide = runs.join(ID);
    for file in ["run.json", "trajectory.jsonl"] {
        let sound = std::fs::read(of_tide.join(file)).unwrap();
        std::fs::write(of_tide.join(file), "{").unwrap();
        for flat in [&[][..], &["--flat"]] {
            let export = [&["trajectories", "export"], flat].concat();
            let ran = shell.run(&export);
            assert_eq!(ran.code, 1, "{file}: {ran:?}");
            let exported = ran.json_lines();
            assert!(exported.iter().all(|run| run["situation"]["todo"] != "tide"), "{file}");
            assert_eq!(exported[0]["situation"]["todo"], "ebb", "{file}");
            let named = format!("runs/{ID}/{file}");
            assert!(ran.stderr.contains("skipped") && ran.stderr.contains(&named), "{ran:?}");
            // One that is asked for by name is an error.
            assert_eq!(shell.run(&[&export[..], &[ID]].concat()).code, 2, "{file}");
        }
        std::fs::write(of_tide.join(file), sound).unwrap();
    }
}

/// The result of a call that a kill has cut short, if repeating it might do harm.
const CUT_SHORT: &str = "an earlier run was killed while it called shell_run";

/// Fails at the first message that differs. A command that was cut short is not run again; what follows may differ
/// then. Returns whether that was so.
#[track_caller]
fn assert_said(shell: &Shell, expected: &BTreeMap<String, Vec<String>>, when: &str) -> bool {
    let mut cut_short = false;
    let said = said(shell);
    assert_eq!(said.len(), expected.len(), "todos, {when}");
    for (todo, said) in said {
        let whole = said.iter().take_while(|message| !message.contains(CUT_SHORT)).count();
        cut_short |= whole < said.len();
        for (n, (said, expected)) in said[..whole].iter().zip(&expected[&todo]).enumerate() {
            assert_eq!(said, expected, "message {n} of {todo}, {when}");
        }
        assert_eq!(said.len(), expected[&todo].len(), "messages of {todo}, {when}");
    }
    cut_short
}

/// Every trajectory of the run, sub-agents' after their caller's, as a trainer reads them.
fn trajectories(shell: &Shell) -> Vec<Value> {
    shell.ok(&["trajectories", "export", "--flat", ID]).json_lines()
}

fn model_calls(trajectory: &Value) -> Vec<&Value> {
    let calls = trajectory["calls"].as_array().unwrap().iter();
    calls.filter_map(|call| call.get("model")).collect()
}

/// What the model answered in each todo, according to the trajectories.
fn answered(shell: &Shell) -> Vec<(Value, Vec<Value>)> {
    let runs = trajectories(shell).into_iter().map(|run| {
        let calls = model_calls(&run).into_iter().map(|call| call["message"].clone());
        (run["situation"]["todo"].clone(), calls.collect())
    });
    runs.collect()
}

/// ET10, ET16: the export has all calls of the model, those of the sub-agents within the call that started them, each
/// with rewards and an outcome of its own.
#[test]
fn et10_the_trajectory_of_the_demo_holds_its_sub_agents() {
    let shell = Shell::new();
    let report = demo(&shell).pop().unwrap();
    let nested = shell.ok(&["trajectories", "export", ID]).json_lines().pop().unwrap();
    let calls = nested["calls"].as_array().unwrap();
    let delegate = calls.iter().find(|call| call["tool"]["function"] == "delegate").unwrap();
    let below = delegate["tool"]["sub_agents"].as_array().unwrap();
    let todos: Vec<&Value> = below.iter().map(|run| &run["situation"]["todo"]).collect();
    assert_eq!(todos, ["tide.data", "tide.docs"]);
    for run in below {
        assert_eq!(run["outcome"]["stop"]["reason"], "answered");
        assert!(!run["rewards"].as_object().unwrap().is_empty(), "judged: {run}");
    }
    let all = trajectories(&shell);
    let of = |todo: &str| all.iter().find(|run| run["situation"]["todo"] == todo).unwrap();
    assert_eq!(all.iter().map(|run| model_calls(run).len()).sum::<usize>(), 16);
    assert_eq!(json!(16), report["calls"]);
    assert_eq!(model_calls(of(ID)).len(), 11);
    let (turn, step) = (&delegate["tool"]["turn"], &delegate["tool"]["step"]);
    let parent = json!({"todo": ID, "turn": turn, "step": step});
    assert_eq!(of("tide.data")["situation"]["parent"], parent);
    assert_eq!(of(ID)["situation"].get("parent"), None);
    assert!(all.iter().all(|run| !run.to_string().contains("sub_agents")));
}

#[test]
fn the_demo_says_the_same_each_time() {
    let [one, other] = [Shell::new(), Shell::new()];
    demo(&one);
    demo(&other);
    assert!(!assert_said(&other, &said(&one), "the second time"));
}

/// Kills the demo, or its resumption, once it has reported `after` events. Returns whether it was killed.
fn killed_after(shell: &Shell, args: &[&str], after: usize) -> bool {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).arg("--json").args(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = lines.take(after).count();
    // SIGKILL: nothing is brought to an end.
    child.kill().unwrap();
    let status = child.wait().unwrap();
    told == after && !status.success()
}

/// ET10: its output and its trajectory are the same wherever it was killed.
#[test]
fn et10_the_demo_is_killed_at_any_step_and_goes_on() {
    let undisturbed = Shell::new();
    let events = demo(&undisturbed).len();
    let (expected, trajectories) = (said(&undisturbed), answered(&undisturbed));
    let (mut killed, mut same) = (0, 0);
    let points = 32;
    for point in 0..points {
        let shell = Shell::new();
        let after = 1 + point * (events - 2) / points;
        if killed_after(&shell, &["run", "--demo", "--id", ID], after) {
            killed += 1;
            let state = shell.json(&["sessions"])[0]["state"].clone();
            assert!(state == "interrupted" || state == "done", "{after}: {state}");
        }
        let resume = ["run", "--resume", ID];
        // And a second time, a little further on.
        killed_after(&shell, &resume, 1 + after / 2);
        let ran = shell.run(&resume);
        assert_eq!(ran.code, 0, "killed after {after} of {events}: {ran:?}");
        assert!(ran.text().contains("add 37 mm"), "{ran:?}");
        let when = format!("killed after {after} of {events}");
        if !assert_said(&shell, &expected, &when) {
            same += 1;
            assert_eq!(answered(&shell), trajectories, "{when}");
        }
        shell.ok(&["verify"]);
    }
    assert!(killed >= 20, "{killed} of {points} were killed in time");
    assert!(same >= 20, "only {same} of {points} said the same");
}

/// Interrupts the demo after its first call; returns false if it was quicker than the signal.
#[cfg(unix)]
fn is_stopped(shell: &Shell) -> bool {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["--json", "run", "--demo", "--id", ID]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_call = |line: &String| line.contains("\"call_ended\"");
    lines.by_ref().map(Result::unwrap).find(is_call).unwrap();
    let pid = child.id().to_string();
    let interrupted = std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(interrupted.success());
    let last = lines.map(Result::unwrap).last().unwrap_or_default();
    let ran = Ran::of(child.wait_with_output().unwrap());
    let report: Value = serde_json::from_str(&last).unwrap();
    if report["state"] == "done" {
        return false;
    }
    assert_eq!((ran.code, &report["state"]), (1, &json!("cancelled")), "{ran:?}");
    true
}

#[cfg(unix)]
#[test]
fn the_demo_is_stopped_and_goes_on() {
    let shell = (0..10).map(|_| Shell::new()).find(is_stopped).expect("a demo that was stopped");
    assert_eq!(shell.json(&["sessions"])[0]["state"], "cancelled");
    let ran = shell.ok(&["run", "--resume", ID]);
    assert!(ran.text().contains("add 37 mm"), "{ran:?}");
    shell.ok(&["verify"]);
}
