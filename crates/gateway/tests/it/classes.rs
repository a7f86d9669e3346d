//! GW6: a session of each client with a title, an agent of an agent and a compaction.

use crate::world::{World, exports, todos};
use foldback::Memory;
use foldback_testkit::upstream::{Answer, Raw, Said};
use serde_json::{Value, json};

/// Asks as a client does, and reads the answer to its end.
async fn ask(world: &World, path: &str, headers: &[(&str, &str)], body: &Value) {
    let mut request = world.client.post(format!("{}{path}", world.url)).body(body.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert_eq!(status, 200, "{body}: {text}");
}

/// Every branch of each todo in a line, the largest todo first.
fn recorded(memory: &Memory) -> Vec<Vec<String>> {
    let branches = |todo: &_| {
        exports(memory, todo).iter().map(|branch| branch.concat()).collect::<Vec<String>>()
    };
    let mut all: Vec<_> = todos(memory).iter().map(branches).collect();
    all.sort_by_key(|branches| std::cmp::Reverse(branches.len()));
    all
}

/// Asserts that each branch says these words, one after the other, and no other branch is there.
fn assert_branches(branches: &[String], expected: &[&[&str]]) {
    assert_eq!(branches.len(), expected.len(), "{branches:#?}");
    for (branch, words) in branches.iter().zip(expected) {
        let mut rest = branch.as_str();
        for word in *words {
            let found = rest.split_once(word);
            assert!(found.is_some(), "{word:?} of {words:?} in {branch}");
            rest = found.unwrap().1;
        }
    }
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn tools(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name, "input_schema": { "type": "object" } })).collect()
}

#[tokio::test]
async fn gw6_claude_code() {
    let world = World::new(|seen| {
        Answer::Said(Said::text(&format!(
            "answer to {}",
            seen.json()["messages"].as_array().unwrap().len()
        )))
    })
    .await;
    let headers = [
        ("anthropic-version", "2023-06-01"),
        ("user-agent", "claude-cli/2.1.330 (external, cli)"),
        ("x-claude-code-session-id", "s1"),
    ];
    let model = |n: usize| json!({ "role": "assistant", "content": [{ "type": "text", "text": format!("answer to {n}") }] });
    let body = |tools: Value, messages: Value| {
        json!({
            "model": "m", "max_tokens": 9, "tools": tools, "messages": messages, "thinking": { "type": "adaptive" },
            "system": [{ "type": "text", "text": "x-anthropic-billing-header: cc_version=2.1;" }],
        })
    };
    let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } }, "required": ["title"] });
    let title = json!({
        "model": "m", "max_tokens": 9, "tools": [], "messages": [user("<session>\nfind the pier")],
        "output_config": { "format": { "type": "json_schema", "schema": schema } },
    });
    ask(&world, "/v1/messages?beta=true", &headers, &title).await;
    let own = || tools(&["Agent", "Read"]);
    let mut messages = vec![user("find the pier")];
    ask(&world, "/v1/messages?beta=true", &headers, &body(own(), json!(messages))).await;
    for agent in ["a1", "a2"] {
        let headers = [&headers[..], &[("x-claude-code-agent-id", agent)]].concat();
        let body = body(tools(&["Read"]), json!([user("look at the harbour")]));
        ask(&world, "/v1/messages?beta=true", &headers, &body).await;
    }
    messages.extend([model(1), user("and the ship?")]);
    ask(&world, "/v1/messages?beta=true", &headers, &body(own(), json!(messages))).await;
    let mut marked = model(3);
    marked["content"][0]["cache_control"] = json!({ "type": "ephemeral" });
    messages.extend([marked, user("CRITICAL: Respond with TEXT ONLY. Sum up.")]);
    ask(&world, "/v1/messages?beta=true", &headers, &body(own(), json!(messages))).await;
    let after = json!([user("This session is being continued: a pier, a ship."), user("go on")]);
    ask(&world, "/v1/messages?beta=true", &headers, &body(own(), after)).await;
    let (memory, _) = world.end().await;
    let recorded = recorded(&memory);
    assert_eq!(recorded.len(), 3, "{recorded:#?}");
    assert_branches(
        &recorded[0],
        &[
            &["find the pier", "answer to 1", "the ship?", "answer to 3", "Sum up", "answer to 5"],
            &["is being continued", "go on", "answer to 2"],
        ],
    );
    for agent in &recorded[1..] {
        assert_branches(agent, &[&["look at the harbour", "answer to 1"]]);
    }
}

#[tokio::test]
async fn gw6_codex() {
    let world = World::new(|seen| {
        let input = seen.json()["input"].clone();
        if input.to_string().ends_with(r#"{"type":"compaction_trigger"}]"#) {
            let output = json!([{ "type": "compaction", "encrypted_content": "e1" }]);
            let body = json!({ "id": "r", "output": output }).to_string().into_bytes();
            return Answer::Raw(Raw { status: 200, headers: Vec::new(), pieces: vec![body] });
        }
        Answer::Said(Said::text(&format!("answer to {}", input.as_array().unwrap().len())))
    })
    .await;
    let said = |role: &str, text: &str| {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
    };
    let send = async |thread: &str, kind: &str, items: &[Value]| {
        let turn = json!({ "request_kind": kind, "session_id": "s1" }).to_string();
        let mut headers = vec![
            ("user-agent", "codex_exec/0.169.0 (Debian)"),
            ("session-id", "s1"),
            ("thread-id", thread),
            ("x-codex-turn-metadata", &turn),
        ];
        if thread != "t1" {
            headers.push(("x-openai-subagent", "collab_spawn"));
        }
        let body = json!({ "model": "m", "store": false, "input": items });
        ask(&world, "/v1/responses", &headers, &body).await;
    };
    let tools = json!({ "type": "additional_tools", "role": "developer", "tools": [] });
    let opening = [tools, said("developer", "Be brief."), said("user", "find the pier")];
    send("t1", "prewarm", &[said("developer", "Warm up.")]).await;
    send("t1", "turn", &opening).await;
    let mut items = opening.to_vec();
    items.extend([said("assistant", "answer to 3"), said("user", "and the ship?")]);
    send("t1", "turn", &items).await;
    let mut forked = items.clone();
    forked.push(said("developer", "You are a child."));
    send("t2", "turn", &forked).await;
    items.extend([said("assistant", "answer to 5"), json!({ "type": "compaction_trigger" })]);
    send("t1", "compaction", &items).await;
    let compacted = json!({ "type": "compaction", "encrypted_content": "e1" });
    let after = [&opening[..], &[said("user", "and the ship?"), compacted]].concat();
    send("t1", "turn", &after).await;
    let (memory, _) = world.end().await;
    let recorded = recorded(&memory);
    assert_eq!(recorded.len(), 2, "{recorded:#?}");
    assert_branches(
        &recorded[0],
        &[
            &["Be brief", "find the pier", "answer to 3", "ship?", "compaction_trigger", "e1"],
            &["Be brief", "find the pier", "ship?", "e1", "answer to 5"],
        ],
    );
    assert_branches(&recorded[1], &[&["find the pier", "and the ship?", "a child", "answer to 6"]]);
    assert!(!recorded.concat().concat().contains("Warm up"), "{recorded:#?}");
}

#[tokio::test]
async fn gw6_opencode() {
    let world = World::new(crate::world::counting()).await;
    let send = async |session: &str, opening: &str, tools: &[&str], said: &[Value]| {
        let mut headers = vec![
            ("user-agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.46"),
            ("x-session-affinity", session),
            ("x-session-id", session),
        ];
        if session != "s1" {
            headers.push(("x-parent-session-id", "s1"));
        }
        let function = |name: &&str| json!({ "type": "function", "function": { "name": name } });
        let messages = [&[json!({ "role": "system", "content": opening })], said].concat();
        let mut body = json!({ "model": "m", "messages": messages });
        if !tools.is_empty() {
            body["tools"] = tools.iter().map(function).collect();
        }
        ask(&world, "/v1/chat/completions", &headers, &body).await;
    };
    let (own, tools) = ("You are OpenCode.", &["task", "read"][..]);
    let title = [user("Generate a title for this conversation:\n"), user("find the pier")];
    send("s1", "You are a title generator. You output ONLY a thread title.", &[], &title).await;
    let first = user("find the pier");
    send("s1", own, tools, std::slice::from_ref(&first)).await;
    send("s2", own, &["read"], &[user("look at the harbour")]).await;
    let model = json!({ "role": "assistant", "content": "answer to 2" });
    send("s1", own, tools, &[first, model.clone(), user("and the ship?")]).await;
    let summarises = "You are a context summarization agent. You are given a conversation.";
    send("s1", summarises, &[], &[user("<conversation>\n[User]: find the pier")]).await;
    let after = [user("What did we do so far?"), model, user("Continue.")];
    send("s1", own, tools, &after).await;
    let (memory, _) = world.end().await;
    let recorded = recorded(&memory);
    assert_eq!(recorded.len(), 2, "{recorded:#?}");
    assert_branches(
        &recorded[0],
        &[
            &["OpenCode", "find the pier", "answer to 2", "and the ship?", "answer to 4"],
            &["summarization", "<conversation>", "answer to 2"],
            &["OpenCode", "so far?", "answer to 2", "Continue.", "answer to 4"],
        ],
    );
    assert_branches(&recorded[1], &[&["OpenCode", "look at the harbour", "answer to 2"]]);
    assert!(!recorded.concat().concat().contains("title"), "{recorded:#?}");
}
