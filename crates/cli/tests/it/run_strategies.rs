//! Every strategy of `foldback run`, with a model behind HTTP.

use crate::provider::Provider;
use crate::run::{only_run, run};
use crate::settings::user;
use crate::shell::Shell;
use serde_json::{Value, json};
use std::time::Duration;

fn plan(steps: &Value) -> String {
    json!({ "action_plan": steps }).to_string()
}

#[test]
fn one_plan_is_made_and_run() {
    let shell = Shell::new();
    let steps = json!({
        "step1": {"function": "file_write", "args": {"path": "一.md", "content": "小雨"}},
        "step2": {"function": "file_read", "args": {"path": "一.md"}, "dependence": [1]},
        "step3": {"function": "file_write", "args": {"path": "二.md", "content": "$$step2.result$$"}, "dependence": [2]},
    });
    let provider =
        Provider::new(vec![Provider::text(&plan(&steps)), Provider::text("Copied: 小雨.")]);
    let ran = run(&shell, &provider, &["--strategy", "one-plan", "--yes", "Copy it"]);
    assert!(ran.code == 0 && ran.text().contains("Copied: 小雨."), "{ran:?}");
    assert_eq!(std::fs::read_to_string(shell.path("work/二.md")).unwrap(), "小雨");
    assert_eq!(only_run(&shell)["calls"], 2);
}

/// OP8: if the server streams, steps that change nothing start while their plan is still being written, unless a flag
/// says not to, or else the project's file, or else the user's.
#[test]
fn op8_plans_are_streamed_unless_it_is_said_otherwise() {
    let plan = plan(&json!({
        "step1": {"function": "file_list", "args": {}},
        "step2": {"function": "file_list", "args": {"path": "."}},
        "step3": {"function": "file_list", "args": {"path": "./"}},
    }));
    let (yes, no) = (Some(true), Some(false));
    let none: &[&str] = &[];
    for ([of_user, of_project], flags, is_streamed) in [
        ([None, None], none, true),
        ([None, None], &["--no-stream-plans"], false),
        ([no, None], &[], false),
        ([no, None], &["--stream-plans"], true),
        ([no, yes], &[], true),
        ([yes, yes], &["--stream-plans", "--no-stream-plans"], false),
    ] {
        let shell = Shell::new();
        let said = |is: bool| format!("[agent]\nstream_plans = {is}\n");
        if let Some(is) = of_user {
            user(&shell, &said(is));
        }
        if let Some(is) = of_project {
            shell.write("foldback.toml", said(is));
        }
        let provider =
            Provider::new(vec![Provider::pieces(&plan), Provider::text("Nothing is here.")]);
        let provider = provider.slowly(Duration::from_millis(20));
        let args = [&["--strategy", "one-plan"], flags, &["What is here?"]].concat();
        let ran = run(&shell, &provider, &args);
        assert!(ran.code == 0 && ran.text().contains("Nothing is here."), "{ran:?}");
        let early =
            ran.stderr.contains("◇ file_list starts, while the plan is still being written");
        assert_eq!(early, is_streamed, "{of_user:?} {of_project:?} {flags:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("✓ file_list").count(), 3, "{}", ran.stderr);
        let asked = provider.requests();
        assert_eq!((asked.len(), asked[0]["stream"].as_bool()), (2, Some(true)));
    }
}

/// OP14: adaptive plans first, and goes step by step if the planner says that it has to.
#[test]
fn op14_adaptive_goes_on_step_by_step() {
    let shell = Shell::new();
    let declined = json!({"mode": "react", "reason": "What to read depends on what is there"});
    let provider = Provider::new(vec![
        Provider::text(&declined.to_string()),
        Provider::call("file_list", &json!({})),
        Provider::text("Nothing is here."),
    ]);
    let ran = run(&shell, &provider, &["--json", "What is here?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let events = ran.json_lines();
    let chosen = events.iter().filter(|event| event["event"] == "chose");
    let chosen: Vec<&str> = chosen.map(|event| event["strategy"].as_str().unwrap()).collect();
    assert_eq!(chosen, ["one-plan", "react"]);
    assert_eq!(events.last().unwrap()["answer"], "Nothing is here.");
}

/// OM10: each step of a flow has a conversation of its own, and the run's list shows them.
#[test]
fn om10_a_flow_works_through_its_steps() {
    let shell = Shell::new();
    let steps = json!({"command": "create", "plan_id": "p", "title": "Notes", "steps": ["Look", "写下笔记"]});
    let provider = Provider::new(vec![
        Provider::call("planning", &steps),
        Provider::call("file_list", &json!({})),
        Provider::text("Nothing is here."),
        Provider::call("file_write", &json!({"path": "n.md", "content": "没有文件"})),
        Provider::text("Written."),
        Provider::text("It is noted in n.md."),
    ]);
    let args = ["--strategy", "flow", "--yes", "--id", "note", "Note what is here"];
    let ran = run(&shell, &provider, &args);
    assert!(ran.code == 0 && ran.text().contains("It is noted in n.md."), "{ran:?}");
    assert_eq!(std::fs::read_to_string(shell.path("work/n.md")).unwrap(), "没有文件");
    assert!(ran.stderr.contains("☑ 写下笔记"), "{}", ran.stderr);
    assert_eq!(shell.todos().len(), 3, "the run's and one for each step");
}

/// OM11: a flow whose step cannot be done says which and why, ends for good, and names what helps.
#[test]
fn om11_a_flow_that_failed_is_not_resumed() {
    let shell = Shell::new();
    let steps = json!({"command": "create", "plan_id": "p", "title": "Bell", "steps": ["敲钟"]});
    let mut answers = vec![Provider::call("planning", &steps)];
    answers.extend((0..3).map(|_| Provider::text("BLOCKED: 没有钟")));
    answers.extend(["No other way.", "There is no bell."].map(Provider::text));
    let provider = Provider::new(answers);
    let ran = run(&shell, &provider, &["--strategy", "flow", "--id", "bell", "Ring the bell"]);
    let next = "foldback run --todo bell \"...\"\n";
    assert!(ran.code == 1 && ran.text().ends_with(next), "{ran:?}");
    assert!(!ran.text().contains("--resume"), "{}", ran.text());
    let why = "Step 0 could not be done: 没有钟";
    assert_eq!(only_run(&shell)["why"], why);
    let ran = shell.run(&["run", "--resume", "bell", "--max-steps", "9"]);
    assert!(ran.code == 1 && ran.stderr.contains("has ended for good"), "{ran:?}");
    assert!(ran.text().contains("There is no bell.") && ran.text().contains(why), "{ran:?}");
}
