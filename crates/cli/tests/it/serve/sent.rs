//! GW20: what the API says was sent in a request is what the provider got.

use super::Server;
use crate::gateway::Gateway;
use crate::shell::Shell;
use foldback_testkit::upstream::{Answer, CacheTerms, Said, Upstream};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Runtime;

const TURNS: usize = 36;

/// A model that reads one file after the other.
fn provider(runtime: &Runtime) -> Upstream {
    let count = AtomicUsize::new(0);
    let reads = move |_: &_| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        Answer::Said(Said::text("I read on.").call(&format!("c{n}"), "read", json!({ "n": n })))
    };
    runtime.block_on(Upstream::with_cache(reads, CacheTerms::default()))
}

/// Sends a body to a gateway, and returns its answer.
fn ask(gateway: &Gateway, body: &Value) -> Value {
    let host = gateway.url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer sk-canary\r\n\
         x-foldback-todo: files\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let json = &answer[answer.find('{').unwrap()..=answer.rfind('}').unwrap()];
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Plays the turns, and starts the gateway again in the middle.
fn played(shell: &Shell, provider: &Upstream) {
    let start = || {
        let url = format!("{}/v1", provider.url);
        let mut command = shell.command();
        command.arg("--store").arg(shell.store());
        Gateway::start(&mut command, &["--openai-url", &url, "--recall", "stream"])
    };
    let read = json!({ "type": "function", "function": { "name": "read", "parameters": { "type": "object" } } });
    let mut messages = vec![
        json!({ "role": "system", "content": "You read files. ".repeat(200) }),
        json!({ "role": "user", "content": "Read all files 泊位." }),
    ];
    let mut gateway = start();
    for n in 0..TURNS {
        if n == TURNS / 2 {
            gateway.terminate();
            assert_eq!(gateway.code(), Some(0));
            gateway = start();
        }
        let body = json!({ "model": "gpt-5", "messages": messages, "tools": [read] });
        let answer = ask(&gateway, &body)["choices"][0]["message"].clone();
        let call = answer["tool_calls"][0]["id"].clone();
        messages.push(answer);
        let text: String =
            (0..60).map(|m| format!("{n}.{m}: 端口 {} is open, {m}\n", n * 31 + m)).collect();
        messages.push(json!({ "role": "tool", "tool_call_id": call, "content": text }));
    }
    gateway.terminate();
    assert_eq!(gateway.code(), Some(0));
}

/// What a provider reads of a message.
fn words(message: &Value) -> Value {
    json!([message["role"], message["content"], message["tool_calls"], message["tool_call_id"]])
}

#[test]
fn gw20_what_is_recorded_of_a_request_is_what_the_provider_got() {
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    played(&shell, &provider);
    let ledger = shell.store().join("ledger.jsonl");
    let lines = std::fs::read_to_string(&ledger).unwrap();
    for secret in ["sk-canary", "端口", "泊位"] {
        assert!(!lines.contains(secret), "{secret}");
    }
    // A line of an older version.
    let mut old: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("contents");
    std::fs::write(&ledger, format!("{lines}{old}\n")).unwrap();

    let server = Server::of(&shell);
    let recorded = server.api("sessions/files/messages?to=1000")["messages"].clone();
    let list = server.api("sessions/files/requests");
    let seen = provider.seen();
    assert_eq!((&list["total"], seen.len()), (&(TURNS + 1).into(), TURNS));
    let (mut folded, mut shortened) = (0, 0);
    for (n, seen) in (1..).zip(&seen) {
        let told = server.api(&format!("sessions/files/requests/{n}"));
        let mut messages = Vec::new();
        for part in told["sent"].as_array().unwrap() {
            match part["messages"].as_array() {
                Some(own) => messages.extend(own.iter().map(words)),
                None => {
                    assert_eq!(part["kind"], "kept", "{told}");
                    let (from, to) = (part["from"].as_u64().unwrap(), part["to"].as_u64().unwrap());
                    messages
                        .extend((from..to).map(|seq| words(&recorded[seq as usize]["message"])));
                }
            }
            shortened += usize::from(part["kind"] == "shortened");
        }
        let body = seen.json();
        let got: Vec<Value> = body["messages"].as_array().unwrap().iter().map(words).collect();
        assert_eq!(messages, got, "request {n}: {told}");
        // What was neither sent nor shortened is named.
        let left_out = told["left_out"].as_array().unwrap();
        let gone: u64 =
            left_out.iter().map(|run| run[1].as_u64().unwrap() - run[0].as_u64().unwrap()).sum();
        let asked = list["requests"][n - 1]["after"].as_u64().unwrap();
        let added = told["sent"].as_array().unwrap().iter().filter(|part| part["kind"] == "added");
        assert_eq!(asked - gone + added.count() as u64, got.len() as u64, "{told}");
        let declared = body["tools"].to_string().contains("foldback_load");
        assert_eq!((&told["has_tools"], &told["tools"]), (&declared.into(), &json!(["read"])));
        assert_eq!(told["is_as_asked"], gone == 0 && !declared, "{told}");
        folded += usize::from(gone > 0);
    }
    println!("{folded} folded, {shortened} shortened messages, {} bytes of ledger", lines.len());
    assert!(folded > TURNS / 4 && shortened > 0, "{folded} {shortened}");
    // An older version did not record it.
    assert_eq!(list["requests"][TURNS]["after"], Value::Null);
    for number in [TURNS + 1, TURNS + 2, 0] {
        let wrong = server.wrong(&format!("sessions/files/requests/{number}"));
        assert_eq!(wrong, (404, "not_found".to_owned()), "{number}");
    }
}
