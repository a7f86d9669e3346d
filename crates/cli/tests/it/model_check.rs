//! `foldback model check`: servers that fail in each way.

use crate::provider::{Provider, Turn};
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};

fn check(provider: &Provider, more: &[&str]) -> Ran {
    let url = provider.url();
    let given = ["model", "check", "--model", "m", "--base-url", &url];
    Shell::new().run_bare(&[&given, more].concat())
}

/// What a server is found to be that answers by `script`: the settings, and what holds.
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

/// Calls where it may, and takes everything.
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
    for question in ["answers", "counts tokens", "takes tools", "calls tools", "takes null content"]
    {
        assert_eq!(holds(&report, question), true, "{report}");
    }
    assert_eq!(holds(&report, "tells its window"), Value::Null);
    let provider = Provider::answering(willing);
    let ran = check(&provider, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("Nothing has to be set."), "{ran:?}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let ran = Shell::new().run_bare(&[
        "model",
        "check",
        "--json",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
    ]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.json()["is_usable"], false);
    assert_eq!(holds(&ran.json(), "answers"), false);
}

/// Each way to fail has its setting, and the question its answer.
#[test]
fn each_failure_names_its_setting() {
    type Refuses = fn(&Value) -> bool;
    let table: [(&str, &str, Refuses); 8] = [
        ("takes instructions", "system = \"never\"", |request| roles(request).contains(&"system")),
        ("takes late instructions", "system = \"first\"", |request| {
            roles(request).iter().skip(1).any(|role| *role == "system")
        }),
        ("takes tools", "tool_calls = \"hermes\"", |request| request.get("tools").is_some()),
        ("takes that a call is required", "required_calls = false", |request| {
            request["tool_choice"] == "required"
        }),
        ("takes a call and its result", "call_ids = \"nine\"", |request| {
            let mut calls = messages(request).iter().filter_map(|m| m["tool_call_id"].as_str());
            calls.any(|id| id.len() != 9)
        }),
        ("takes calls beside each other", "parallel_calls = false", |request| {
            messages(request)
                .iter()
                .any(|m| m["tool_calls"].as_array().is_some_and(|c| c.len() > 1))
        }),
        ("takes the user behind a result", "turns = \"alternating\"", |request| {
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

/// Tools that do not arrive, null that is refused, a history that nothing helps.
#[test]
fn what_no_setting_helps_is_told() {
    let (settings, report) = found(|_| yes());
    assert_eq!(settings, ["tool_calls = \"hermes\""], "a tool takes no tokens: {report}");

    let (settings, report) = found(|request| {
        let is_null = |m: &Value| m.get("tool_calls").is_some() && m["content"].is_null();
        if messages(request).iter().any(is_null) { refusing("NoneType") } else { willing(request) }
    });
    assert_eq!((settings.len(), holds(&report, "takes null content")), (0, json!(false)));

    let (_, report) = found(|request| {
        if roles(request).contains(&"tool") { refusing("no tools") } else { willing(request) }
    });
    assert_eq!(
        (report["is_usable"].clone(), holds(&report, "takes a call and its result")),
        (json!(false), json!(false))
    );
}
