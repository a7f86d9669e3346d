//! What the API of `foldback serve` answers.

use super::Server;
use crate::shell::{Shell, line};
use foldback::{Memory, NewSent, Options};
use foldback_core::{Message, SeqNo, TodoId, ToolCall, ToolCallId};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// A shell whose store holds the example.
fn with_example() -> Shell {
    let shell = Shell::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/coding-session.jsonl");
    shell.ok(&["import", example.to_str().unwrap()]);
    shell
}

pub(super) fn strings<'v>(values: &'v Value, key: &str) -> Vec<&'v str> {
    values.as_array().unwrap().iter().map(|value| value[key].as_str().unwrap()).collect()
}

#[test]
fn in1_sessions_are_listed_newest_first_with_their_savings() {
    let shell = Shell::new();
    for (id, day) in [("old", 1), ("newest", 3), ("middle", 2)] {
        let at = foldback_core::Timestamp::parse(&format!("2025-01-0{day}T10:00:00Z")).unwrap();
        let messages = vec![
            Message::user(&format!("The {id} berth 泊位\nmore")).at(at),
            Message::assistant("Noted.").at(at),
        ];
        let file = shell.write(&format!("{id}.jsonl"), line(id, messages));
        shell.ok(&["import", &file]);
    }
    let bill = |tokens: u64| {
        format!(r#"{{"bytes":{tokens},"read":0,"written":0,"plain":{tokens},"cost":{tokens}.0}}"#)
    };
    let entry = |session: &str, (sent, whole): (u64, u64), is_estimate: bool| {
        let (sent, whole) = (bill(sent), bill(whole));
        format!(
            "{{\"at\":1735812000000,\"client\":\"c\",\"session\":\"{session}\",\"model\":\"m\",\"class\":\"chat\",\"sent\":{sent},\"whole\":{whole},\"output\":1,\"is_estimate\":{is_estimate}}}\n"
        )
    };
    let ledger = entry("middle", (100, 400), false)
        + &entry("middle", (100, 400), true)
        + &entry("old", (900, 950), false);
    std::fs::write(shell.store().join("ledger.jsonl"), ledger).unwrap();
    let server = Server::of(&shell);
    let list = server.api("sessions");
    assert_eq!(strings(&list["sessions"], "id"), ["newest", "middle", "old"], "{list}");
    assert_eq!((&list["total"], &list["next"]), (&3.into(), &Value::Null));
    let [newest, middle] = [&list["sessions"][0], &list["sessions"][1]];
    assert_eq!(
        (&newest["title"], &newest["messages"], &newest["savings"]),
        (&"The newest berth 泊位".into(), &2.into(), &Value::Null)
    );
    let savings = &middle["savings"];
    assert_eq!(
        (&savings["requests"], &savings["billed"], &savings["estimated"]),
        (&2.into(), &1.into(), &1.into()),
        "{savings}"
    );
    assert_eq!(
        (&savings["sent"]["tokens"], &savings["whole"]["tokens"], &savings["saved"]),
        (&200.into(), &800.into(), &0.75.into())
    );
    assert_eq!((&list["savings"]["requests"], &savings["tokens_saved"]), (&3.into(), &600.into()));
    // Page by page the list is the same.
    let first = server.api("sessions?limit=2");
    assert_eq!(
        (strings(&first["sessions"], "id"), &first["next"]),
        (vec!["newest", "middle"], &"middle".into())
    );
    let ids = |query: &str| server.api(&format!("sessions?{query}"))["sessions"].clone();
    assert_eq!(strings(&ids("limit=2&after=middle"), "id"), ["old"]);
    // In another order as well; what did not pass through the gateway is last.
    assert_eq!(strings(&ids("sort=cost"), "id"), ["old", "middle", "newest"]);
    assert_eq!(strings(&ids("sort=cost&limit=1&after=old"), "id"), ["middle"]);
    assert_eq!(strings(&ids("sort=tokens_saved"), "id"), ["middle", "old", "newest"]);
    assert_eq!(server.wrong("sessions?sort=size").0, 400);
}

#[test]
fn in2_a_session_is_drawn_as_the_report_draws_it() {
    let shell = with_example();
    let server = Server::of(&shell);
    assert_eq!(server.api("sessions/coding-session")["id"], "coding-session");
    let page = server.api("sessions/coding-session/replay");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/coding-session.jsonl");
    let report = shell.run_bare(&["--json", "replay", example.to_str().unwrap()]).json();
    let drawn = &page["index"]["entries"][0]["report"];
    for key in ["messages", "blocks", "calls", "input_tokens", "peak_tokens", "lossless"] {
        assert_eq!(drawn[key], report[key], "{key}");
    }
    let picture = &page["picture"];
    assert_eq!(
        picture["calls"].as_array().unwrap().len() as u64,
        report["calls"].as_u64().unwrap()
    );
    assert!(
        picture["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|block| block["evidence"].as_str().is_some_and(|why| !why.is_empty()))
    );
    // The cost so far only grows, and ends with what the report says.
    let calls = picture["calls"].as_array().unwrap();
    let costs: Vec<f64> = calls.iter().map(|call| call["c"].as_f64().unwrap()).collect();
    assert!(costs.is_sorted() && costs[0] > 0.0, "{costs:?}");
    assert!((costs.last().unwrap() - report["cost_units"].as_f64().unwrap()).abs() <= 1.0);
    // The blocks of the store are those of the replay.
    let blocks = server.api("sessions/coding-session/blocks");
    assert_eq!(strings(&blocks["blocks"], "block_id"), strings(&picture["blocks"], "id"));
    assert_eq!(blocks["next"], Value::Null);
    let first = server.api("sessions/coding-session/blocks?limit=1");
    assert_eq!(
        (first["blocks"].as_array().unwrap().len(), &first["next"], &first["open"]),
        (1, &1.into(), &Value::Null)
    );
    let messages = server.api("sessions/coding-session/messages?from=2&to=5");
    let seqs: Vec<_> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["seq"].as_u64().unwrap())
        .collect();
    assert_eq!((seqs, &messages["total"]), (vec![2, 3, 4], &report["messages"]));
}

#[test]
fn in2_requests_are_listed_with_what_each_cost() {
    let shell = Shell::with_quay();
    let entry = |at: u64, session: &str, sent: u64| {
        format!(
            "{{\"at\":{at},\"client\":\"c\",\"session\":\"{session}\",\"model\":\"m\",\"class\":\"chat\",\
             \"sent\":{{\"bytes\":9,\"read\":40,\"written\":5,\"plain\":{sent},\"cost\":{sent}.5}},\
             \"whole\":{{\"bytes\":9,\"read\":0,\"written\":0,\"plain\":900,\"cost\":900.0}},\
             \"output\":7,\"is_estimate\":false}}\n"
        )
    };
    let ledger = entry(1_735_812_000_000, "quay", 100)
        + &entry(0, "pier", 1)
        + &entry(1_735_812_060_000, "quay", 10);
    std::fs::write(shell.store().join("ledger.jsonl"), ledger).unwrap();
    let server = Server::of(&shell);
    let list = server.api("sessions/quay/requests");
    assert_eq!(list["total"], 2, "{list}");
    let first = &list["requests"][0];
    assert_eq!(
        (&first["at"], &first["sent"], &first["whole"]["tokens"], &first["output"]),
        (
            &"2025-01-02T10:00:00Z".into(),
            &serde_json::json!({"tokens": 145, "read": 40, "written": 5, "cost": 100.5}),
            &900.into(),
            &7.into()
        )
    );
    assert_eq!(list["requests"][1]["sent"]["cost"], 10.5);
}

#[test]
fn in2_branches_are_a_tree() {
    let shell = Shell::new();
    let memory = Memory::open(&shell.store(), Options::default()).unwrap();
    let mut session = memory.session(&TodoId::new("forked").unwrap()).unwrap();
    let said = ["Which berth?", "Berth seven.", "And the crane?", "And the 泊位?"];
    let parents = [None, Some(0), Some(1), Some(1)];
    let sent: Vec<NewSent> = said
        .iter()
        .zip(parents)
        .map(|(text, parent)| NewSent {
            parent,
            tag: vec![0; 32],
            json: String::new(),
            messages: vec![if text.ends_with('?') {
                Message::user(text)
            } else {
                Message::assistant(text)
            }],
        })
        .collect();
    session.record_sent(SeqNo(0), 0, &sent, &[]).unwrap();
    drop((session, memory));
    let server = Server::of(&shell);
    let tree = server.api("sessions/forked/branches");
    assert_eq!(
        strings(&tree["stretches"], "title"),
        ["Which berth?", "And the crane?", "And the 泊位?"]
    );
    let shape: Vec<_> = tree["stretches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["parent"].as_u64(), one["messages"].as_u64().unwrap(), one["is_latest"] == true)
        })
        .collect();
    assert_eq!(shape, [(None, 2, false), (Some(0), 1, false), (Some(0), 1, true)]);
}

#[test]
fn in2_a_session_that_is_too_long_to_be_replayed_is_read_as_it_is() {
    let shell = Shell::new();
    let messages = (0..10_001).map(|n| Message::user(&format!("berth {n}"))).collect();
    let file = shell.write("long.jsonl", line("long", messages));
    shell.ok(&["import", &file]);
    let server = Server::of(&shell);
    assert_eq!(server.api("sessions/long")["messages"], 10_001);
    let replay = server.api("sessions/long/replay");
    assert_eq!((&replay["index"], &replay["picture"]), (&Value::Null, &Value::Null));
    assert!(replay["undrawn"].as_str().unwrap().contains("10,001 messages"), "{replay}");
    let last = server.api("sessions/long/messages?from=10000");
    assert_eq!(last["messages"][0]["message"]["content"], "berth 10000");
}

#[test]
fn in2_large_messages_are_read_a_few_at_a_time() {
    let shell = Shell::new();
    let result = "berth seven 泊位 0123456789\n".repeat(50_000);
    let mut messages = vec![Message::user("Read the logs.")];
    for id in ["c1", "c2", "c3"] {
        messages.push(Message::calls("", vec![ToolCall::new(id, "read", "{}")]));
        messages.push(Message::tool_result(&ToolCallId::new(id), &result));
    }
    let file = shell.write("logs.jsonl", line("logs", messages));
    shell.ok(&["import", &file]);
    let server = Server::of(&shell);
    let list = server.api("sessions/logs/messages");
    assert_eq!((list["messages"].as_array().unwrap().len(), &list["next"]), (6, &6.into()));
    let rest = server.api("sessions/logs/messages?from=6");
    assert_eq!((rest["messages"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    assert_eq!(rest["messages"][0]["message"]["content"], result);
}

#[test]
fn in3_a_search_explains_its_scores_as_the_command_does() {
    let shell = with_example();
    let server = Server::of(&shell);
    let question = "retry limit";
    let told =
        shell.json(&["search", "--todo", "coding-session", "--explain", "-k", "3", question]);
    for path in ["sessions/coding-session/search?q=retry%20limit&k=3", "search?q=retry+limit&k=3"] {
        let found = server.api(path);
        let hits = &found["hits"];
        assert!(!hits.as_array().unwrap().is_empty(), "{found}");
        assert_eq!(hits[0]["block_id"], told["hits"][0]["block_id"], "{path}");
        assert_eq!(hits[0]["todo_id"], "coding-session");
        assert!(hits[0]["explanation"]["line"].as_str().unwrap().contains("bm25"), "{found}");
        let terms = &hits[0]["explanation"]["terms"];
        assert!(strings(terms, "term").iter().any(|term| term.starts_with("retr")), "{terms}");
    }
    let found = server.api("sessions/coding-session/search?q=retry%20limit&k=3");
    let command = &told["hits"][0]["explanation"];
    for (key, value) in command.as_object().unwrap() {
        assert_eq!(&found["hits"][0]["explanation"][key], value, "{key}");
    }
    assert!(server.api("search?q=retry")["blocks"].as_u64().unwrap() > 0);
    assert_eq!(server.api("search?q=zzqqxx")["hits"].as_array().unwrap().len(), 0);
}

#[test]
fn in3_payloads_are_read_by_lines() {
    let shell = Shell::with_quay();
    let server = Server::of(&shell);
    let list = server.api("sessions/quay/payloads");
    let [first, second] = [&list["payloads"][0], &list["payloads"][1]];
    let reference = first["ref"].as_str().unwrap();
    assert_ne!(first["ref"], second["ref"]);
    let whole = shell.ok(&["load", "--todo", "quay", reference]).text().to_owned();
    for name in [reference.replace('/', "%2F"), reference.trim_start_matches("store://").to_owned()]
    {
        let part = server.api(&format!("sessions/quay/payloads/{name}?lines=2-3"));
        let lines: String = whole.split_inclusive('\n').skip(1).take(2).collect();
        assert_eq!(
            (&part["text"], &part["first_line"], &part["last_line"]),
            (&lines.into(), &2.into(), &3.into())
        );
        assert_eq!(
            (&part["bytes"], &part["lines"], &part["ref"]),
            (&(whole.len() as u64).into(), &first["lines"], &reference.into())
        );
    }
    assert_eq!(
        server.api(&format!("sessions/quay/payloads/{}", &reference[8..]))["text"],
        whole.as_str()
    );
    for (lines, status) in [("0", 400), ("9-3", 400), ("x", 400), ("99999-", 404)] {
        assert_eq!(
            server
                .get(&format!("/api/v1/sessions/quay/payloads/{}?lines={lines}", &reference[8..]))
                .status,
            status,
            "{lines}"
        );
    }
    let one = server.api("sessions/quay/payloads?limit=1");
    assert_eq!((one["payloads"].as_array().unwrap().len(), &one["next"]), (1, &1.into()));
}

#[test]
fn in4_a_page_is_told_of_what_another_process_records() {
    let shell = Shell::with_quay();
    let server = Server::of(&shell);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(
        stream,
        "GET /api/v1/events HTTP/1.1\r\n{}\r\n{}\r\n\r\n",
        server.host(),
        server.bearer()
    )
    .unwrap();
    let mut lines = BufReader::new(stream).lines();
    let head: Vec<String> =
        lines.by_ref().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
    assert!(
        head.iter().any(|line| line.eq_ignore_ascii_case("content-type: text/event-stream")),
        "{head:?}"
    );
    // The first look has to be over before something changes.
    std::thread::sleep(Duration::from_millis(1_500));
    let file = shell.write(
        "pier.jsonl",
        line("pier", vec![Message::user("Which pier?"), Message::assistant("Seven.")]),
    );
    shell.ok(&["import", &file]);
    let told = lines
        .map(Result::unwrap)
        .find(|line| line.starts_with("data: ") && line.contains("pier"))
        .unwrap();
    let told: Value = serde_json::from_str(told.trim_start_matches("data: ")).unwrap();
    assert_eq!(told["id"], "pier");
    assert_eq!(
        strings(&server.api("sessions")["sessions"], "id")[..1],
        ["pier"],
        "the store is read as it is now"
    );
    assert_eq!(server.api("search?q=pier+seven")["hits"][0]["todo_id"], "pier");
}

#[test]
fn in6_answers_have_the_keys_that_are_described() {
    let shell = Shell::with_quay();
    let server = Server::of(&shell);
    let described = server.api("openapi.json");
    let schemas = &described["components"]["schemas"];
    let reference = server.api("sessions/quay/payloads")["payloads"][0]["ref"].as_str().unwrap()
        [8..]
        .to_owned();
    for (path, asked) in [
        ("/api/v1/sessions", "sessions".to_owned()),
        ("/api/v1/sessions/{id}", "sessions/quay".to_owned()),
        ("/api/v1/sessions/{id}/replay", "sessions/quay/replay".to_owned()),
        ("/api/v1/sessions/{id}/requests", "sessions/quay/requests".to_owned()),
        ("/api/v1/sessions/{id}/branches", "sessions/quay/branches".to_owned()),
        ("/api/v1/sessions/{id}/runs", "sessions/quay/runs".to_owned()),
        ("/api/v1/sessions/{id}/blocks", "sessions/quay/blocks".to_owned()),
        ("/api/v1/sessions/{id}/messages", "sessions/quay/messages".to_owned()),
        ("/api/v1/sessions/{id}/payloads", "sessions/quay/payloads".to_owned()),
        ("/api/v1/sessions/{id}/payloads/{ref}", format!("sessions/quay/payloads/{reference}")),
        ("/api/v1/sessions/{id}/search", "sessions/quay/search?q=lease".to_owned()),
        ("/api/v1/search", "search?q=lease".to_owned()),
    ] {
        let answer = &described["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
            ["schema"];
        assert!(answer.is_object(), "{path}: {}", described["paths"][path]);
        check(schemas, answer, &server.api(&asked), path);
    }
    let error = server.get("/api/v1/sessions/nobody").json();
    check(schemas, &schemas["ApiError"], &error, "error");
}

/// Checks that an answer has every required key of its schema and no key besides those of it.
fn check(schemas: &Value, schema: &Value, answer: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        return check(schemas, &schemas[name.rsplit('/').next().unwrap()], answer, place);
    }
    for one in ["oneOf", "anyOf"] {
        if let Some(all) = schema[one].as_array() {
            let fitting = all.iter().find(|schema| schema["$ref"].is_string());
            if !answer.is_null() {
                check(schemas, fitting.unwrap(), answer, place);
            }
            return;
        }
    }
    if let Some(all) = schema["allOf"].as_array() {
        let mut joined = serde_json::json!({ "properties": {} });
        for part in all {
            let part = part["$ref"]
                .as_str()
                .map_or(part, |name| &schemas[name.rsplit('/').next().unwrap()]);
            for (key, value) in part["properties"].as_object().unwrap() {
                joined["properties"][key] = value.clone();
            }
        }
        return check(schemas, &joined, answer, place);
    }
    if let Some(items) = answer.as_array() {
        items.iter().for_each(|item| check(schemas, &schema["items"], item, place));
    }
    let (Some(properties), Some(object)) = (schema["properties"].as_object(), answer.as_object())
    else {
        return;
    };
    for key in schema["required"].as_array().into_iter().flatten() {
        assert!(
            object.contains_key(key.as_str().unwrap()),
            "{place}: {key} is missing in {answer}"
        );
    }
    for (key, value) in object {
        let described =
            properties.get(key).unwrap_or_else(|| panic!("{place}: {key} is not described"));
        check(schemas, described, value, &format!("{place} {key}"));
    }
}
