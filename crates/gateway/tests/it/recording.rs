//! GW3, GW4, GW6: what is recorded, and where.

use crate::world::{World, body, counting, exports, todos};
use foldback_testkit::upstream::{Answer, Raw, Said};
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn texts(messages: &[String]) -> Vec<Value> {
    messages.iter().map(|message| serde_json::from_str(message).unwrap()).collect()
}

/// A conversation is recorded once, however often it is sent, with its instructions and the model's answers.
#[tokio::test]
async fn a_conversation_is_recorded_as_it_grows() {
    for stream in [false, true] {
        let world =
            World::new(|seen| match seen.json()["messages"].as_array().map_or(0, Vec::len) {
                1 => Answer::Said(Said::text("Let me look.").call(
                    "c1",
                    "read",
                    json!({ "path": "a.txt", "n": 1 }),
                )),
                _ => Answer::Said(Said::text("It is port 七.")),
            })
            .await;
        let mut messages = vec![json!({ "role": "user", "content": "Which port?" })];
        let mut asked = body(json!(messages));
        asked["stream"] = json!(stream);
        assert!(world.messages(&asked).send().await.unwrap().bytes().await.is_ok());
        messages.push(json!({ "role": "assistant", "content": [
            { "type": "text", "text": "Let me look." },
            { "type": "tool_use", "id": "c1", "name": "read", "input": { "n": 1, "path": "a.txt" } },
        ] }));
        messages.push(json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c1", "content": "port 七" },
            { "type": "text", "text": "Well?", "cache_control": { "type": "ephemeral" } },
        ] }));
        asked["messages"] = json!(messages);
        let answer = world.messages(&asked).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
        assert!(answer.bytes().await.is_ok());
        let (memory, _) = world.end().await;
        let todos = todos(&memory);
        assert_eq!(todos.len(), 1, "{todos:?}");
        assert!(todos[0].as_str().starts_with("claude-cli-"), "{todos:?}");
        let recorded = memory.conversations().export(&todos[0]).unwrap().messages;
        let roles: Vec<_> = recorded.iter().map(|message| message.role().as_str()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "user", "assistant"]);
        assert_eq!(recorded[5].text(), "It is port 七.");
        assert_eq!(recorded[2].tool_calls().len(), 1);
        let exports = exports(&memory, &todos[0]);
        assert_eq!(exports.len(), 1);
        assert_eq!(texts(&exports[0])[..1], messages[..1]);
        assert_eq!(exports[0][2], messages[2].to_string());
    }
}

/// GW3: a client that keeps 64 bits of a number continues its conversation, although it sends other digits than the
/// model wrote. These are recorded.
#[tokio::test]
async fn gw3_a_rounded_number_begins_no_other_conversation() {
    let call = |n: u64| json!({ "港口": n });
    let world =
        World::new(move |seen| match seen.json()["messages"].as_array().map_or(0, Vec::len) {
            1 => Answer::Said(Said::text("看").call("c1", "read", call(9_007_199_254_740_993))),
            _ => Answer::Said(Said::text("七")),
        })
        .await;
    let mut messages = vec![json!({ "role": "user", "content": "Which port?" })];
    assert!(world.messages(&body(json!(messages))).send().await.unwrap().bytes().await.is_ok());
    messages.push(json!({ "role": "assistant", "content": [
        { "type": "text", "text": "看" },
        { "type": "tool_use", "id": "c1", "name": "read", "input": call(9_007_199_254_740_992) },
    ] }));
    messages.push(json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": "c1", "content": "port 七" },
    ] }));
    assert!(world.messages(&body(json!(messages))).send().await.unwrap().bytes().await.is_ok());
    let (memory, _) = world.end().await;
    let todos = todos(&memory);
    assert_eq!(todos.len(), 1, "{todos:?}");
    assert_eq!(exports(&memory, &todos[0]).len(), 1);
    let recorded = memory.conversations().export(&todos[0]).unwrap().messages;
    assert_eq!(recorded[2].tool_calls()[0].arguments, "{\"港口\":9007199254740993}");
}

/// GW2: a conversation over Responses, as Codex has it: answers of several items, and instructions in the input or
/// beside it.
#[tokio::test]
async fn gw2_responses_are_recorded() {
    for stream in [false, true] {
        let world = World::new(|seen| match seen.json()["input"].to_string().contains("port 七") {
            false => {
                Answer::Said(Said::text("I look.").call("c1", "read", json!({ "path": "a.txt" })))
            }
            true => Answer::Said(Said::text("It is port 七.")),
        })
        .await;
        let mut items = vec![
            json!({ "type": "additional_tools", "role": "developer", "tools": [] }),
            json!({ "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "Be brief." }] }),
            json!({ "role": "user", "content": "Which port?" }),
        ];
        for turn in 0..2 {
            let asked =
                json!({ "model": "m", "stream": stream, "instructions": "Think.", "input": items });
            let request = world.client.post(format!("{}/v1/responses", world.url));
            let request = request.header("session-id", "s1").header("thread-id", "t1");
            let answer = request.header("user-agent", "codex_exec/0.169").body(asked.to_string());
            let answer = answer.send().await.unwrap();
            assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
            assert!(answer.bytes().await.is_ok());
            if turn == 0 {
                // As clients do, without ids and states.
                items.extend([
                    json!({ "type": "reasoning", "summary": [] }),
                    json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] }),
                    json!({ "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a.txt\"}" }),
                    json!({ "type": "function_call_output", "call_id": "c1", "output": "port 七" }),
                ]);
            }
        }
        let (memory, _) = world.end().await;
        let todos = todos(&memory);
        assert_eq!(todos.len(), 1, "{todos:?}");
        assert!(todos[0].as_str().starts_with("codex-exec-"), "{todos:?}");
        let recorded = memory.conversations().export(&todos[0]).unwrap().messages;
        let roles: Vec<_> = recorded.iter().map(|message| message.role().as_str()).collect();
        assert_eq!(
            roles,
            ["system", "system", "developer", "user", "assistant", "tool", "assistant"],
            "{recorded:?}"
        );
        assert_eq!((recorded[4].tool_calls().len(), &*recorded[6].text()), (1, "It is port 七."));
        let exports = exports(&memory, &todos[0]);
        let sent: Vec<Value> =
            exports[0].iter().map(|one| serde_json::from_str(one).unwrap()).collect();
        assert_eq!((sent.len(), &sent[3], &sent[4]), (6, &json!(items[3..6]), &items[6]));
    }
}

/// GW3, GW6: sessions and the agents of a session are kept apart by what the client says of them; senders with
/// another key as well.
#[tokio::test]
async fn gw3_gw6_sessions_agents_and_keys_are_kept_apart() {
    let world = World::new(counting()).await;
    let asked = body(json!([{ "role": "user", "content": "hello" }]));
    for (session, agent, key) in [
        ("s1", "", "k1"),
        ("s1", "a1", "k1"),
        ("s1", "a2", "k1"),
        ("s2", "", "k1"),
        ("s1", "", "k2"),
    ] {
        for _retry in 0..2 {
            let mut request = world.messages(&asked).header("x-claude-code-session-id", session);
            request = request.header("authorization", key);
            if !agent.is_empty() {
                request = request.header("x-claude-code-agent-id", agent);
            }
            assert!(request.send().await.unwrap().bytes().await.is_ok());
        }
    }
    let user_id = json!({ "device_id": "d", "session_id": "s3" }).to_string();
    for metadata in
        [json!({ "user_id": user_id }), json!({ "user_id": "user_1_account__session_s4" })]
    {
        let mut asked = asked.clone();
        asked["metadata"] = metadata;
        assert!(world.messages(&asked).send().await.unwrap().bytes().await.is_ok());
    }
    let named = world.messages(&asked).header("x-foldback-todo", "my-todo").send().await;
    assert!(named.unwrap().bytes().await.is_ok());
    let (memory, seen) = world.end().await;
    let todos = todos(&memory);
    assert_eq!(todos.len(), 8, "{todos:?}");
    assert!(todos.iter().any(|todo| todo.as_str() == "my-todo"), "{todos:?}");
    assert_eq!(seen.last().unwrap().header("x-foldback-todo"), None);
    for todo in &todos {
        assert_eq!(exports(&memory, todo).len(), 1, "{todo}");
    }
}

/// GW3: a session that is named by a UUID continues under a key that was renewed, also where the body names it; a
/// name that two people may use does not, nor does a conversation without a name.
#[tokio::test]
async fn gw3_a_renewed_key_continues_the_session_that_only_one_can_have() {
    let (uuid, other) =
        ("7d3f2a91-c4d0-4b7e-9a15-0c2be86f41d3", "019ab3c4-5d6e-7f80-91a2-b3c4d5e6f708");
    let by_header = |session| (Some(session), Value::Null);
    let user = format!("user_1_account__session_{other}");
    for ((header, metadata), expected) in [
        (by_header(uuid), 1),
        ((None, json!({ "user_id": user })), 1),
        (by_header("ses_6d3ea5ed1ffeTPZyk3IXcHGVyJ"), 1),
        (by_header("main"), 2),
        ((None, Value::Null), 2),
    ] {
        let world = World::new(counting()).await;
        let mut messages = vec![json!({ "role": "user", "content": "Which port? 哪个端口?" })];
        for key in ["Bearer old", "Bearer new"] {
            let mut asked = body(json!(messages));
            if !metadata.is_null() {
                asked["metadata"] = metadata.clone();
            }
            let mut request = world.messages(&asked).header("authorization", key);
            if let Some(session) = header {
                request = request.header("x-claude-code-session-id", session);
            }
            assert!(request.send().await.unwrap().bytes().await.is_ok());
            messages.push(json!({ "role": "assistant", "content": "answer to 1" }));
            messages.push(json!({ "role": "user", "content": "And then?" }));
        }
        let (memory, _) = world.end().await;
        let todos = todos(&memory);
        assert_eq!(todos.len(), expected, "{header:?} {metadata}: {todos:?}");
        if expected == 1 {
            assert_eq!(exports(&memory, &todos[0]).len(), 1);
        }
    }
}

/// GW17: a todo that a client names is its own; the agents that it starts have others.
#[tokio::test]
async fn gw17_agents_of_a_named_conversation_have_todos_of_their_own() {
    let world = World::new(counting()).await;
    let asked = body(json!([{ "role": "user", "content": "hello" }]));
    for agent in [None, Some("a1"), Some("a2"), None] {
        let mut request = world.messages(&asked).header("x-foldback-todo", "quay-7");
        request = request.header("x-claude-code-session-id", "s1");
        if let Some(agent) = agent {
            request = request.header("x-claude-code-agent-id", agent);
        }
        assert!(request.send().await.unwrap().bytes().await.is_ok());
    }
    let (memory, _) = world.end().await;
    let todos = todos(&memory);
    assert_eq!(todos.len(), 3, "{todos:?}");
    let named: Vec<_> = todos.iter().filter(|todo| todo.as_str().starts_with("quay-7")).collect();
    assert_eq!(named.iter().map(|todo| todo.as_str()).collect::<Vec<_>>(), ["quay-7"], "{todos:?}");
}

/// GW3: conversations of clients that name no session, in parallel, with equal instructions, equal openings and equal
/// answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gw3_a_thousand_conversations_with_equal_openings_never_mix() {
    const CONVERSATIONS: usize = 1_000;
    let world = World::new(counting()).await;
    let converse = |n: usize| {
        let world = &world;
        async move {
            let mut messages = vec![
                json!({ "role": "system", "content": "Be brief." }),
                json!({ "role": "user", "content": "hello" }),
            ];
            for turn in 0..3 {
                let asked = json!({ "model": "m", "messages": messages });
                let answer: Value = serde_json::from_slice(
                    &world.chat(&asked).send().await.unwrap().bytes().await.unwrap(),
                )
                .unwrap();
                messages.push(answer["choices"][0]["message"].clone());
                let text = format!("conversation {n}, turn {turn}");
                messages.push(json!({ "role": "user", "content": text }));
            }
        }
    };
    let all = futures::stream::iter(0..CONVERSATIONS).map(converse).buffer_unordered(32);
    all.collect::<Vec<()>>().await;
    let (memory, _) = world.end().await;
    let todos = todos(&memory);
    let mut whole = 0;
    for todo in &todos {
        let text = memory.conversations().export(todo).unwrap().to_json_line();
        let mut numbers: Vec<usize> = text
            .split("conversation ")
            .skip(1)
            .map(|rest| rest.split(',').next().unwrap().parse().unwrap())
            .collect();
        let turns = numbers.len();
        numbers.dedup();
        assert!(numbers.len() <= 1, "{todo}: {text}");
        whole += usize::from(turns == 2);
    }
    assert_eq!(whole, CONVERSATIONS, "of {} todos", todos.len());
}

/// GW4: going back, another answer and a compaction are branches of one conversation; what was abandoned can
/// still be found.
#[tokio::test]
async fn gw4_branches_share_what_stood_before_them() {
    let world = World::new(counting()).await;
    let user = |text: &str| json!({ "role": "user", "content": text });
    let model = |n: usize| json!({ "role": "assistant", "content": format!("answer to {n}") });
    let histories = [
        vec![user("one")],
        vec![user("one"), model(1), user("two zebra")],
        // An edit of the second turn.
        vec![user("one"), model(1), user("two otter")],
        vec![user("one"), model(1), user("two otter"), model(3), user("three")],
        // Back to the first.
        vec![user("one"), model(1), user("two zebra"), model(3), user("three again")],
        // A compaction.
        vec![user("A summary of what was said."), model(1), user("four")],
    ];
    for history in &histories {
        let request = world.messages(&body(json!(history))).header("x-claude-code-session-id", "s");
        assert!(request.send().await.unwrap().bytes().await.is_ok());
    }
    let (memory, _) = world.end().await;
    let todos = todos(&memory);
    assert_eq!(todos.len(), 1, "{todos:?}");
    let exports: Vec<_> = exports(&memory, &todos[0]).iter().map(|branch| texts(branch)).collect();
    assert_eq!(exports.len(), 3);
    for history in &histories[3..] {
        let found = exports.iter().any(|export| export[..export.len() - 1] == history[..]);
        assert!(found, "{history:?} in {exports:#?}");
    }
    let recorded = memory.conversations().export(&todos[0]).unwrap().to_json_line();
    assert_eq!(recorded.matches("\"one\"").count(), 1, "{recorded}");
    let found = memory.recall(&todos[0], "search_block", r#"{"query":"zebra"}"#).unwrap();
    assert!(found.text.contains("two zebra"), "{}", found.text);
}

/// An answer whose length is declared is recorded as one whose length is not.
#[tokio::test]
async fn an_answer_of_declared_length_is_recorded() {
    let answer =
        json!({ "choices": [{ "message": { "role": "assistant", "content": "It is pier 七." } }] });
    let bytes = answer.to_string().into_bytes();
    let headers = vec![("content-length".to_owned(), bytes.len().to_string())];
    let raw = Raw { status: 200, headers, pieces: vec![bytes] };
    let world = World::new(move |_| Answer::Raw(raw.clone())).await;
    let asked = json!({ "model": "m", "messages": [{ "role": "user", "content": "Which pier?" }] });
    assert!(world.chat(&asked).send().await.unwrap().bytes().await.is_ok());
    let (memory, _) = world.end().await;
    let recorded = memory.conversations().export(&todos(&memory)[0]).unwrap().messages;
    assert_eq!((recorded.len(), &*recorded[1].text()), (2, "It is pier 七."));
}

/// GW3: conversations that begin with the same example answers, and a prompt cache key that all share.
#[tokio::test]
async fn gw3_examples_in_the_opening_mix_nothing() {
    let world = World::new(counting()).await;
    for n in 0..5 {
        let messages = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "for example" },
            { "role": "assistant", "content": "like this" },
            { "role": "user", "content": format!("question {n}") },
        ]);
        let asked = json!({ "model": "m", "prompt_cache_key": "app", "messages": messages });
        assert!(world.chat(&asked).send().await.unwrap().bytes().await.is_ok());
    }
    let (memory, _) = world.end().await;
    assert_eq!(todos(&memory).len(), 5);
}

/// GW3: two gateways on one store, with conversations that begin alike.
#[tokio::test]
async fn gw3_two_gateways_on_one_store_mix_nothing() {
    let first = World::new(counting()).await;
    let kept = first.memory.clone();
    let second = World::with(counting(), |config| {
        config.keeping = foldback_gateway::Keeping::On(kept);
    })
    .await;
    for n in 0..6 {
        for (world, name) in [(&first, "one"), (&second, "two")] {
            let mut messages = vec![json!({ "role": "user", "content": "hello" })];
            for turn in 0..2 {
                let asked = json!({ "model": "m", "messages": messages });
                let answer = world.chat(&asked).send().await.unwrap().bytes().await.unwrap();
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                messages.push(answer["choices"][0]["message"].clone());
                let text = format!("gateway {name} {n}, turn {turn}");
                messages.push(json!({ "role": "user", "content": text }));
            }
        }
    }
    drop(second.end().await);
    let (memory, _) = first.end().await;
    let mut whole = 0;
    for todo in todos(&memory) {
        let text = memory.conversations().export(&todo).unwrap().to_json_line();
        let mut names: Vec<_> =
            text.split("gateway ").skip(1).map(|rest| rest.split(',').next().unwrap()).collect();
        names.dedup();
        assert!(names.len() <= 1, "{todo}: {text}");
        whole += names.len();
    }
    assert_eq!(whole, 12);
}

/// A todo that holds a conversation from elsewhere is continued; a todo that the client names is one, whatever
/// others are called.
#[tokio::test]
async fn a_named_todo_goes_on() {
    let world = World::new(counting()).await;
    for name in ["run", "run-2"] {
        let todo = foldback_core::TodoId::new(name).unwrap();
        let mut session = world.memory.session(&todo).unwrap();
        session.record(foldback_core::Message::user("from elsewhere")).unwrap();
    }
    for text in ["one", "two"] {
        let asked = body(json!([{ "role": "user", "content": text }]));
        let request = world.messages(&asked).header("x-foldback-todo", "run");
        assert!(request.send().await.unwrap().bytes().await.is_ok());
    }
    let log = std::sync::Arc::clone(&world.log);
    let (memory, _) = world.end().await;
    assert_eq!(*log.lock(), Vec::<String>::new());
    let count = |name: &str| memory.len(&foldback_core::TodoId::new(name).unwrap()).unwrap();
    assert_eq!((count("run"), count("run-2"), todos(&memory).len()), (7, 1, 2));
}

/// The next gateway continues what one has recorded.
#[tokio::test]
async fn gw12_a_gateway_that_is_started_again_goes_on_where_it_was() {
    let memory = foldback::Memory::in_memory(foldback::Options::default()).unwrap();
    let user = |text: &str| json!({ "role": "user", "content": text });
    let mut messages = Vec::new();
    for turn in 0..4 {
        let kept = memory.clone();
        let world = World::with(counting(), |config| {
            config.keeping = foldback_gateway::Keeping::On(kept);
        })
        .await;
        messages.push(user(&format!("turn {turn}")));
        assert!(world.messages(&body(json!(messages))).send().await.unwrap().bytes().await.is_ok());
        messages.push(
            json!({ "role": "assistant", "content": format!("answer to {}", messages.len()) }),
        );
        drop(world.end().await);
    }
    let todos = todos(&memory);
    assert_eq!(todos.len(), 1, "{todos:?}");
    // The client has not sent the last answer yet.
    let (_, sent) = messages.split_last().unwrap();
    assert_eq!(texts(&exports(&memory, &todos[0])[0])[..sent.len()], *sent);
}

/// GW14: a conversation that keeps its recorder waiting does not delay the others.
#[tokio::test]
async fn gw14_one_conversation_does_not_wait_for_another() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let world = World::with(counting(), |config| {
        config.log = Arc::new(move |line| {
            if line.contains("a request is not recorded") {
                let _ = released.lock().recv();
            }
        });
    })
    .await;
    let stuck = world.messages(&body(json!("none"))).header("x-foldback-todo", "stuck");
    assert!(stuck.send().await.unwrap().bytes().await.is_ok());
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for name in names {
        let asked = body(json!([{ "role": "user", "content": name }]));
        let asked = world.messages(&asked).header("x-foldback-todo", name);
        assert!(asked.send().await.unwrap().bytes().await.is_ok());
    }
    let recorded = async {
        while todos(&world.memory).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), recorded).await.unwrap();
    drop(release);
    let (memory, _) = world.end().await;
    assert_eq!(todos(&memory).len(), names.len());
}
