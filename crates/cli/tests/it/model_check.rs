//! `foldback model check`: servers that fail in each way.

use crate::provider::{Provider, Turn};
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};

fn check(provider: &Provider, more: &[&str]) -> Ran {
    let url = provider.url();
    let given = ["model", "check", "--model", "m", "--base-url", &url];
    Shell::new().run_bare(&[&given, more].concat())
}

/// The check of a server that answers by `script`: the settings, and what holds.
fn found(script: impl FnMut(&Value) -> Turn + Send + 'static) -> (Vec<String>, Value) {
    let provider = Provider::answering(script);
    let ran = check(&provider, &["--json"]);
    let report = ran.json();
    assert_eq!(ran.code == 0, report["is_usable"] == true, "{ran:?}");
    let settings = report["settings"].as_array().unwrap().iter();
    (settings.map(|line| line.as_str().unwrap().to_owned()).collect(), report)
}

fn holds(report: &Value, question: &str) -> Value {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["question"] == question).unwrap()["holds"].clone()
}

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().unwrap()
}

fn roles(request: &Value) -> Vec<&str> {
    messages(request).iter().map(|message| message["role"].as_str().unwrap()).collect()
}

fn yes() -> Turn {
    Provider::text("Yes.")
}

/// Calls tools if it may, and accepts everything.
fn willing(request: &Value) -> Turn {
    let asks = roles(request).last() == Some(&"user") && request.get("tools").is_some();
    if asks { Provider::call("tide", &json!({"port": "Holm"})) } else { yes() }
}

fn refusing(words: &str) -> Turn {
    Provider::refusal(500, words)
}

#[test]
fn a_server_that_takes_everything_needs_no_settings() {
    let (settings, report) = found(willing);
    assert_eq!(settings, [""; 0], "{report}");
    for question in ["answers", "counts tokens", "accepts tools", "calls tools"] {
        assert_eq!(holds(&report, question), true, "{report}");
    }
    assert_eq!(holds(&report, "reports its window"), Value::Null);
    let provider = Provider::answering(willing);
    let ran = check(&provider, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("No settings are needed."), "{ran:?}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let nobody = ["model", "check", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"];
    let ran = Shell::new().run_bare(&[&nobody[..], &["--json"]].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.json()["is_usable"], false);
    assert_eq!(holds(&ran.json(), "answers"), false);
    let ran = Shell::new().run_bare(&nobody);
    assert!(ran.code == 1 && !ran.text().contains("No settings"), "{ran:?}");
}

/// Each way to fail has its setting, and each question its answer.
#[test]
fn each_failure_names_its_setting() {
    type Refuses = fn(&Value) -> bool;
    let table: [(&str, &str, Refuses); 8] = [
        ("accepts instructions", "system = \"never\"", |request| {
            roles(request).contains(&"system")
        }),
        ("accepts late instructions", "system = \"first\"", |request| {
            roles(request).iter().skip(1).any(|role| *role == "system")
        }),
        ("accepts tools", "tool_calls = \"hermes\"", |request| request.get("tools").is_some()),
        ("accepts a required call", "required_calls = false", |request| {
            request["tool_choice"] == "required"
        }),
        ("accepts a call and its result", "call_ids = \"nine\"", |request| {
            let mut calls = messages(request).iter().filter_map(|m| m["tool_call_id"].as_str());
            calls.any(|id| id.len() != 9)
        }),
        ("accepts parallel calls", "parallel_calls = false", |request| {
            messages(request)
                .iter()
                .any(|m| m["tool_calls"].as_array().is_some_and(|c| c.len() > 1))
        }),
        ("accepts user text after a result", "turns = \"alternating\"", |request| {
            roles(request).windows(2).any(|pair| pair == ["tool", "user"])
        }),
        ("streams", "stream = false", |request| request["stream"] == true),
    ];
    for (question, setting, refuses) in table {
        let (settings, report) = found(move |request| match refuses(request) {
            true => refusing("Jinja Exception: no"),
            false => willing(request),
        });
        assert_eq!(settings, [setting], "{report}");
        assert_eq!(holds(&report, question), false, "{report}");
        assert_eq!(report["is_usable"], true, "{report}");
    }
}

/// Tools that do not arrive, a history that nothing helps.
#[test]
fn what_no_setting_helps_is_told() {
    let (settings, report) = found(|_| yes());
    assert_eq!(settings, ["tool_calls = \"hermes\""], "a tool takes no tokens: {report}");

    let (_, report) = found(|request| {
        if roles(request).contains(&"tool") { refusing("no tools") } else { willing(request) }
    });
    assert_eq!(
        (report["is_usable"].clone(), holds(&report, "accepts a call and its result")),
        (json!(false), json!(false))
    );
}

/// Too many requests say nothing about what a server accepts: they end the check, and lead to no setting.
#[test]
fn what_nobody_answers_leads_to_no_setting() {
    type Fails = fn(&Value) -> bool;
    let table: [(&str, Fails); 4] = [
        ("streams", |request| request["stream"] == true),
        ("accepts instructions", |request| roles(request).contains(&"system")),
        ("accepts tools", |request| request.get("tools").is_some()),
        ("accepts a call and its result", |request| roles(request).contains(&"tool")),
    ];
    for (question, fails) in table {
        let (settings, report) = found(move |request| match fails(request) {
            true => Provider::refusal(429, "slow down, 慢一点"),
            false => willing(request),
        });
        assert_eq!((settings.len(), holds(&report, question)), (0, Value::Null), "{report}");
        assert_eq!(report["is_usable"], false, "{report}");
        let last = report["findings"].as_array().unwrap().iter().rev().nth(1).unwrap();
        assert_eq!(last["question"], question, "only the window is told behind it: {report}");
    }
}

/// Some servers fail when they mean to refuse: one that fails at the same request twice, and answers others, refuses
/// it; one that failed once does not.
#[test]
fn a_server_that_fails_at_one_request_refuses_it() {
    let is_due = |request: &Value| request["tool_choice"] == "required";
    let (settings, report) = found(move |request| match is_due(request) {
        true => Provider::refusal(500, "string indices must be integers"),
        false => willing(request),
    });
    assert_eq!(settings, ["required_calls = false"], "{report}");
    let mut failed = false;
    let (settings, report) =
        found(move |request| match is_due(request) && !std::mem::replace(&mut failed, true) {
            true => Provider::refusal(503, "restarting"),
            false => willing(request),
        });
    assert_eq!((settings, report["is_usable"].clone()), (Vec::new(), json!(true)), "{report}");
}

/// Under Hermes, earlier findings stay, and calls are tried as text.
#[test]
fn what_was_found_stays_where_tools_are_told_as_text() {
    let (settings, report) = found(|request| {
        if request.get("tools").is_some() {
            refusing("Jinja Exception: no tools")
        } else if roles(request).iter().skip(1).any(|role| *role == "system") {
            refusing("System message must be at the beginning (jinja)")
        } else {
            yes()
        }
    });
    assert_eq!(settings, ["tool_calls = \"hermes\"", "system = \"first\""], "{report}");
    for question in ["accepts tools as text", "accepts a call and its result"] {
        assert_eq!(holds(&report, question), true, "{report}");
    }
    assert_eq!(
        (&report["is_usable"], holds(&report, "accepts tools")),
        (&json!(true), json!(false))
    );
}

/// Providers whose templates are their own are not asked what a template takes.
#[test]
fn templates_are_asked_of_servers_of_ones_own_only() {
    let refuses = |request: &Value| request.get("tools").is_some();
    let provider = Provider::answering(move |request| match refuses(request) {
        true => Provider::refusal(400, "no tools"),
        false => yes(),
    });
    let url = provider.url();
    let given = ["model", "check", "--json", "--provider", "openai", "--model", "gpt-x"];
    let shell = Shell::new();
    let mut command = shell.command();
    command.args(given).args(["--base-url", &url]).env("FOLDBACK_API_KEY", "k");
    let ran = Ran::of(command.output().unwrap());
    let report = ran.json();
    assert_eq!((ran.code, &report["settings"]), (1, &json!([])), "{report}");
    let questions = report["findings"].as_array().unwrap().iter();
    let questions: Vec<&str> = questions.map(|it| it["question"].as_str().unwrap()).collect();
    let expected = ["answers", "counts tokens", "streams", "accepts tools", "reports its window"];
    assert_eq!(questions, expected);
}

/// A window that is too small is the server's, and the rest is found out all the same.
#[test]
fn a_server_with_too_small_a_window_is_named() {
    let props = json!({"default_generation_settings": {"n_ctx": 512}});
    let provider = Provider::telling(Some(props), vec![yes(); 24]);
    let ran = check(&provider, &["--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["is_usable"]), (1, &json!(false)), "{ran:?}");
    assert_eq!(holds(&report, "has room for an agent"), false, "{report}");
    let told = report["findings"].as_array().unwrap().last().unwrap()["detail"].to_string();
    assert!(told.contains("the server of the model") && told.contains("-c 8192"), "{report}");
    assert_eq!(holds(&report, "accepts a call and its result"), true, "{report}");
}
