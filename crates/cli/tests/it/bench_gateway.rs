//! GW19: `foldback bench gateway`.

use crate::shell::{Shell, line, quay};
use foldback_testkit::transcript;
use serde_json::{Value, json};
use std::net::TcpListener;

/// An exchange as a gateway keeps it: `n` questions and the answers before the last.
fn exchange(session: Option<&str>, n: u64, status: u16) -> String {
    let mut messages = Vec::new();
    for n in 0..n {
        messages.push(json!({ "role": "user", "content": format!("question {n}") }));
        messages.push(json!({ "role": "assistant", "content": format!("answer {n}") }));
    }
    messages.push(json!({ "role": "user", "content": format!("question {n}") }));
    let request = json!({ "model": "claude-x", "max_tokens": 9, "system": "word ".repeat(2_000), "messages": messages });
    let answer = json!({ "type": "message", "content": [{ "type": "text", "text": format!("answer {n}") }] });
    let taped = json!({
        "at": 1_763_856_000_000_u64 + 400_000 * n,
        "api": "messages",
        "path": "/v1/messages",
        "client": "claude-cli",
        "session": session,
        "headers": { "user-agent": "claude-cli/2.1" },
        "status": status,
        "request": request.to_string(),
        "answer": answer.to_string(),
        "first_ms": null,
        "last_ms": null,
    });
    taped.to_string()
}

fn bill(found: &Value, conversation: usize, bill: usize) -> &Value {
    &found["conversations"][conversation]["bills"][bill]
}

#[test]
fn gw19_recordings_are_played_on_four_terms_in_two_rhythms() {
    let shell = Shell::new();
    let talk = transcript("user: 你好\nassistant: 你好\nuser: again\nassistant: yes");
    let file = shell.write("two.jsonl", line("quay", quay()) + &line("talk", talk));
    let found = shell.run_bare(&["bench", "gateway", "--json", &file]).json();
    let one = &found["conversations"][0];
    assert_eq!((&one["id"], &one["group"]), (&json!("quay"), &json!("agent")));
    assert_eq!(one["bills"].as_array().unwrap().len(), 8);
    let setting = |bill: &Value| ["read", "write", "life", "pause"].map(|key| bill[key].clone());
    assert_eq!(setting(bill(&found, 0, 1)), [json!(0.1), json!(2.0), json!(3_600), json!(10)]);
    for way in ["direct", "gateway", "clearing"] {
        for key in ["requests", "read", "written", "plain", "cost"] {
            assert!(bill(&found, 0, 0)[way][key].is_number(), "{way} {key}");
        }
    }
    assert_eq!(found["sums"].as_array().unwrap().len(), 16);
    let [csv, report] = ["rows.csv", "page.html"].map(|name| shell.path(name));
    let (csv, report) = (csv.to_str().unwrap(), report.to_str().unwrap());
    let ran = shell.run_bare(&["bench", "gateway", &file, "--csv", csv, "--report", report]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in ran.text().lines().filter(|line| !line.contains(": ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 1 + 2 * 8);
    assert!(std::fs::read_to_string(report).unwrap().contains("Agent runs (1)"));
}

#[test]
fn gw19_exchanges_are_played_as_they_passed() {
    let shell = Shell::new();
    shell.folders(&["traffic"]);
    let names = ["1763856000000-1-000000", "1763856000001-1-000001", "1763856000002-2-000000"];
    for (n, name) in (0..).zip(names) {
        shell.write(&format!("traffic/{name}.json"), exchange(Some("s"), n, 200));
    }
    shell.write("traffic/1763856000003-1-000003.json", exchange(None, 0, 200));
    shell.write("traffic/1763856000003-1-000004.json", exchange(Some("s"), 0, 429));
    let folder = shell.path("traffic");
    let folder = folder.to_str().unwrap();
    let found = shell.run_bare(&["bench", "gateway", "--json", folder]).json();
    let one = &found["conversations"][0];
    assert_eq!((&one["id"], &one["requests"]), (&json!("claude-cli-1"), &json!(3)));
    assert_eq!(found["conversations"].as_array().unwrap().len(), 2);
    assert_eq!(one["bills"].as_array().unwrap().len(), 4);
    assert_eq!(
        (&bill(&found, 0, 0)["pause"], &bill(&found, 0, 0)["direct"]["read"]),
        (&Value::Null, &json!(0))
    );
    let args = [
        "bench", "gateway", "--json", "--gap", "60", "--gap", "600", "--prices", "0.1,1.25", folder,
    ];
    let found = shell.run_bare(&args).json();
    assert_eq!(found["conversations"][0]["bills"].as_array().unwrap().len(), 2);
    assert_eq!(bill(&found, 0, 0)["direct"]["read"], 0, "nothing was marked for the cache");
    let other = exchange(Some("s"), 3, 200).replace("\"api\":\"messages\"", "\"api\":3");
    shell.write("traffic/1763856000009-1-000009.json", other);
    let ran = shell.run_bare(&["bench", "gateway", folder]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("000009.json holds something else at line 1"), "{ran:?}");
}

#[test]
fn gw19_what_cannot_be_played_is_named() {
    let shell = Shell::new();
    let file = shell.write("users.jsonl", line("users", transcript("user: a\nuser: b")));
    let ran = shell.run_bare(&["bench", "gateway", &file]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("expected conversations in which a model speaks"), "{ran:?}");
    for prices in ["0.1", "a,b", "0.1,-1", "0.1,1,2,3", "0.1,1,x", "1e300,1"] {
        let ran = shell.run_bare(&["bench", "gateway", "--prices", prices, &file]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("expected two numbers from 0 to 1000000000"), "{ran:?}");
    }
}

#[test]
fn gw19_another_proxy_is_measured_beside() {
    let shell = Shell::new();
    let file = shell.write("one.jsonl", line("quay", quay()));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    // A proxy that does nothing: the provider itself.
    let url = format!("http://{free}");
    let args = ["bench", "gateway", "--proxy", &url, "--provider", &free, &file];
    let ran = shell.run_bare(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("Through the other proxy"), "{ran:?}");
    let found = shell.run_bare(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(bill(&found, 0, 0)["proxy"], bill(&found, 0, 0)["direct"]);
    let ran = shell.run_bare(&[
        "bench",
        "gateway",
        "--proxy",
        "http://127.0.0.1:9",
        "--provider",
        &free,
        &file,
    ]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("the proxy at http://127.0.0.1:9 does not answer"), "{ran:?}");
}
