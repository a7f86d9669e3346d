//! What real servers and the chat templates of many models make of what an agent sends.

use crate::llama::{Llama, alone, folder, templates};
use crate::provider::Provider;
use crate::run::run;
use crate::shell::{Ran, Shell};
use foldback_providers::ChatTemplate;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The requests of a run step by step under a server that reports this template: two calls at once, one that fails, a
/// todo list, an answer.
fn requests_of_steps(template: Option<&str>) -> Vec<Value> {
    let shell = Shell::new();
    shell.folders(&["work"]);
    shell.write("work/notes.md", "The gate of 杭州湾 opens at 6.4 m.\n");
    let items =
        json!({"items": [{"id": "read", "title": "Read the notes", "state": "in_progress"}]});
    let provider = Provider::telling(
        props(template),
        vec![
            Provider::calls(&[("todo_write", items), ("file_read", json!({"path": "notes.md"}))]),
            Provider::call("file_read", &json!({"path": "not-there.md"})),
            Provider::call("file_list", &json!({})),
            Provider::text("It opens at 6.4 m."),
        ],
    );
    let ran = run(&shell, &provider, &["--strategy", "react", "When does the gate open?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = provider.requests();
    assert_eq!(requests.len(), 4);
    requests
}

/// What a server with this template reports about itself.
fn props(template: Option<&str>) -> Option<Value> {
    template.map(|template| json!({"chat_template": template}))
}

/// The requests of a planner and of a flow, those for their answers among them, under a server that reports this
/// template.
fn requests_of_plans(template: Option<&str>) -> Vec<Value> {
    let mut all = Vec::new();
    let plan = r#"{"action_plan": {"step1": {"function": "file_list", "args": {}}}}"#;
    let planned =
        json!({"command": "create", "plan_id": "p", "title": "t", "steps": ["看 the notes"]});
    for (strategy, answers) in [
        ("one-plan", vec![Provider::text(plan), Provider::text("Done.")]),
        (
            "one-plan",
            vec![Provider::text("no plan"), Provider::text(plan), Provider::text("Done.")],
        ),
        (
            "flow",
            vec![
                Provider::call("planning", &planned),
                Provider::text("I looked."),
                Provider::text("Done."),
            ],
        ),
    ] {
        let shell = Shell::new();
        shell.folders(&["work"]);
        let provider = Provider::telling(props(template), answers);
        let ran = run(&shell, &provider, &["--strategy", strategy, "Look at what is here."]);
        assert_eq!(ran.code, 0, "{ran:?}");
        all.extend(provider.requests());
    }
    all
}

/// Every request that an agent makes can be expressed under every chat template that llama.cpp ships. What a template
/// does not support is detected automatically, because the server reports its template. Nothing is asked of the model.
#[test]
fn every_request_can_be_said_under_every_chat_template() {
    let Some(folder) = folder("every_request_can_be_said_under_every_chat_template") else {
        return;
    };
    let _alone = alone();
    let requests_under = |template: Option<&str>| {
        [requests_of_steps(template), requests_of_plans(template)].concat()
    };
    let plain = requests_under(None);
    // Two templates may have the same properties, and then the requests are the same.
    let mut known: HashMap<String, Vec<Value>> = HashMap::new();
    let (mut refused, mut said) = (Vec::new(), 0);
    for (name, path) in templates(&folder) {
        let text = std::fs::read_to_string(&path).unwrap();
        let reading = ChatTemplate::read(&text);
        let knows_no_tools = ChatTemplate::knows_no_tools(&text);
        let requests = match reading == ChatTemplate::default() && !knows_no_tools {
            true => &plain,
            false => known
                .entry(format!("{reading:?} {knows_no_tools}"))
                .or_insert_with(|| requests_under(Some(&text))),
        };
        let server = Llama::cpp(&folder, &path);
        for (at, request) in requests.iter().enumerate() {
            let (status, words) = server.ask("POST", "/apply-template", Some(request));
            if status == 200 {
                said += 1;
            } else {
                refused.push(format!("{name}, request {at}: {status} {words}"));
            }
        }
    }
    assert!(refused.is_empty(), "{}\n{said} others are said", refused.join("\n"));
    assert!(said > 600, "{said}");
}

/// A run over a real server with a model of 135 million parameters. Its answers are not checked; what was sent and
/// counted is: the server accepts every request, limits hold, and tokens are counted.
fn a_run_keeps_to_the_protocol(server: &Llama) {
    let shell = Shell::new();
    shell.folders(&["work"]);
    shell.write("work/notes.md", "The gate of 杭州湾 opens at 6.4 m.\n");
    let given = ["--model", "smollm2", "--base-url", &server.url(), "--workspace", "work"];
    let bounds = ["--tools", "file,shell", "--max-calls", "3", "--strategy", "react", "--yes"];
    let task = ["--json", "--id", "gate", "When does the gate in notes.md open?"];
    let args: Vec<&str> = ["run"].into_iter().chain(given).chain(bounds).chain(task).collect();
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(args);
    // It may never end by itself.
    let ran = Ran::of(command.env("FOLDBACK_MODEL_MAX_TOKENS", "64").output().unwrap());
    let report = ran.json_lines().into_iter().last().unwrap_or_default();
    assert_eq!(report["event"], "report", "{ran:?}");
    let calls = report["calls"].as_u64().unwrap();
    assert!((1..=3).contains(&calls), "{report}");
    assert!(report["input_tokens"].as_u64().unwrap() > 200 * calls, "{report}");
    assert!(report["output_tokens"].as_u64().unwrap() > 0, "{report}");
    // Whatever the result, no request was refused.
    let why = report["why"].as_str().unwrap_or_default();
    assert!(!why.contains("status") && !why.contains("could not be reached"), "{report}");
    shell.ok(&["export", "--todo", "gate"]);
}

/// The findings of `model check` on a server, by question.
fn checked(server: &Llama) -> Value {
    let shell = Shell::new();
    let ran =
        shell.run(&["model", "check", "--json", "--model", "smollm2", "--base-url", &server.url()]);
    let check = ran.json();
    assert_eq!((ran.code, &check["is_usable"]), (0, &json!(true)), "{check}");
    check
}

fn holds(check: &Value, question: &str) -> Value {
    let findings = check["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["question"] == question);
    finding.unwrap_or_else(|| panic!("{question} is asked: {check}"))["holds"].clone()
}

#[test]
fn a_real_model_behind_llama_cpp_is_worked_with() {
    let Some(folder) = folder("a_real_model_behind_llama_cpp_is_worked_with") else { return };
    let _alone = alone();
    let server = Llama::cpp(&folder, &folder.join("templates/Qwen-Qwen2.5-7B-Instruct.jinja"));
    let check = checked(&server);
    for question in
        ["answers", "counts tokens", "streams", "accepts tools", "accepts a required call"]
    {
        assert_eq!(holds(&check, question), true, "{check}");
    }
    assert_eq!(check["settings"][0], "context_tokens = 8192", "{check}");
    a_run_keeps_to_the_protocol(&server);
}

#[test]
fn a_real_model_behind_llama_cpp_python_is_worked_with() {
    let Some(folder) = folder("a_real_model_behind_llama_cpp_python_is_worked_with") else {
        return;
    };
    let _alone = alone();
    let server = Llama::python(&folder);
    let check = checked(&server);
    for question in ["answers", "counts tokens", "accepts tools", "accepts a call and its result"] {
        assert_eq!(holds(&check, question), true, "{check}");
    }
    assert_eq!(holds(&check, "accepts a required call"), false, "{check}");
    a_run_keeps_to_the_protocol(&server);
}
