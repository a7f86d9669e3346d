//! `foldback run --mcp`: the tools of servers, one of which may be missing or end.
//!
//! `FOLDBACK_PYTHON_MCP` names a Python that has the package `mcp`; without it the test of a real server reports that
//! it is skipped.

use crate::provider::Provider;
use crate::run::run;
use crate::shell::Shell;
use serde_json::{Value, json};

/// A file that lists servers.
fn list(shell: &Shell, servers: &Value) -> String {
    shell.write("servers.json", json!({ "mcpServers": servers }).to_string())
}

/// The results of its calls that the model was sent, in the last request.
fn results(provider: &Provider) -> Vec<String> {
    let last = provider.requests().pop().unwrap();
    let messages = last["messages"].as_array().unwrap().clone();
    let results = messages.into_iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_real_server_is_listed_called_and_started_again() {
    let Some(python) = std::env::var("FOLDBACK_PYTHON_MCP").ok().filter(|it| !it.is_empty()) else {
        eprintln!("SKIPPED: set FOLDBACK_PYTHON_MCP to a Python that has the package mcp");
        return;
    };
    let shell = Shell::new();
    // The server is beside the list, and is named relative to it.
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/weather.py");
    std::fs::copy(server, shell.path("weather.py")).unwrap();
    let servers = list(&shell, &json!({"weather": {"command": python, "args": ["weather.py"]}}));
    let provider = Provider::new(vec![
        Provider::calls(&[
            ("weather_forecast", json!({"city": "杭州"})),
            ("weather_fail", json!({})),
        ]),
        Provider::call("weather_die", &json!({})),
        Provider::call("weather_add", &json!({"a": 4, "b": 5})),
        Provider::text("小雨, and 9."),
    ]);
    let args = ["--strategy", "react", "--context", "full", "--yes", "--mcp", &servers, "天气?"];
    let ran = run(&shell, &provider, &args);
    assert!(ran.code == 0 && ran.text().contains("小雨, and 9."), "{ran:?}");
    let declared = provider.requests()[0]["tools"].to_string();
    assert!(declared.contains("The MCP server \\\"weather\\\" says of its tool"), "{declared}");
    let results = results(&provider);
    assert!(results[0].contains("小雨"), "{results:?}");
    assert!(results[1].starts_with("Error (tool)") && results[1].contains("no station in 杭州"));
    assert!(results[2].contains("has ended: exit status: 7"), "{results:?}");
    assert!(results[3].contains('9'), "{results:?}");
}

/// A server that does not start is reported to a person and to a program, and the run continues without it.
#[test]
fn a_server_that_does_not_start_is_told() {
    for is_json in [false, true] {
        let shell = Shell::new();
        let servers = list(&shell, &json!({"gone": {"command": "no-such-program"}}));
        let provider = Provider::new(vec![Provider::text("Yes.")]);
        let mut args = vec!["--strategy", "react", "--mcp", &servers, "Yes?"];
        args.extend(is_json.then_some("--json"));
        let ran = run(&shell, &provider, &args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let told = "the MCP server \"gone\" could not be started: no-such-program: No such file";
        if is_json {
            let first = &ran.json_lines()[0];
            assert_eq!(first["event"], "noted");
            assert!(first["text"].as_str().unwrap().starts_with(told), "{first}");
        } else {
            assert!(ran.stderr.replace('\n', " ").contains(told), "{}", ran.stderr);
        }
    }
}

/// S5: a program is looked up beside the list that names it, and not where the agent may write.
#[cfg(unix)]
#[test]
fn s5_a_server_runs_beside_its_list() {
    let shell = Shell::new();
    let servers =
        list(&shell, &json!({"here": {"command": "sh", "args": ["-c", "echo there > seen"]}}));
    let provider = Provider::new(vec![Provider::text("Yes.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "--mcp", &servers, "Yes?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(shell.path("seen").exists() && !shell.path("work/seen").exists(), "{ran:?}");
}

/// The scripted server of these tests; `None` if there is no Python to run it.
pub(crate) fn harbour(shell: &Shell) -> Option<String> {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no python3");
        return None;
    }
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers.py");
    std::fs::copy(server, shell.path("servers.py")).unwrap();
    Some(list(shell, &json!({"harbour": {"command": "python3", "args": ["servers.py"]}})))
}

/// CX6, BS4, BS8: a deck of slides that one tool makes is given by its name to the next, to a file and to a command,
/// and its bytes are in no request.
#[test]
fn cx6_bs8_a_deck_goes_from_tool_to_tool_by_reference() {
    let shell = Shell::new();
    let Some(servers) = harbour(&shell) else { return };
    let name = regex::Regex::new(r"store://1-[a-z0-9]{4}").unwrap();
    let provider = Provider::answering(move |request| {
        let request = request.to_string();
        let deck = name.find(&request).map(|found| found.as_str().to_owned());
        let results = request.matches(r#""role":"tool""#).count();
        match (results, deck) {
            (0, _) => Provider::call("harbour_make", &json!({"subject": "杭州湾的潮汐"})),
            (1, Some(deck)) => Provider::calls(&[
                ("harbour_render", json!({ "deck": deck })),
                ("file_write", json!({"path": "deck.html", "content": deck})),
                ("harbour_render", json!({"deck": "store://9-aaaa"})),
            ]),
            _ => Provider::text("60 slides."),
        }
    });
    let args = ["--strategy", "react", "--yes", "--id", "deck", "--mcp", &servers, "做幻灯片"];
    let ran = run(&shell, &provider, &args);
    assert!(ran.code == 0 && ran.text().contains("60 slides."), "{ran:?}");
    let deck = std::fs::read_to_string(shell.path("work/deck.html")).unwrap();
    let told = results(&provider);
    assert!(
        told[1].contains(&format!("60 slides, {} characters", deck.chars().count())),
        "{told:?}"
    );
    assert!(told[2].starts_with(&format!("made deck.html: {} bytes", "26,820")), "{told:?}");
    assert!(told[3].contains("Nothing is stored under \"store://9-aaaa\""), "{told:?}");
    for request in provider.requests() {
        assert!(request.to_string().len() < deck.len(), "{request}");
    }
    shell.ok(&["verify"]);
}
