//! GW18: answers of the memory's own tools that come back as the results of calls.

use crate::world::{World, body, exports, load_tool, todos};
use foldback::Memory;
use foldback_core::TodoId;
use foldback_testkit::upstream::{Answer, Said};
use serde_json::{Value, json};

/// A model that calls only the tools that it is asked to call.
async fn world() -> World {
    World::new(|seen| {
        let body = seen.json();
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned();
        let asked = last.unwrap_or_default().to_string();
        let asked = asked.rsplit_once("call ").map(|(_, rest)| rest);
        let mut words = asked.into_iter().flat_map(|rest| rest.split([' ', '.']));
        let (tool, id) = (words.next(), words.next());
        let said = Said::text("I see.");
        Answer::Said(match tool.zip(id) {
            Some((tool, id)) => said.call(id, tool, json!({ "query": "the zebra's port" })),
            None => said,
        })
    })
    .await
}

/// Sends the conversation with this content, and appends both it and the answer.
async fn ask(world: &World, messages: &mut Vec<Value>, content: Value) {
    messages.push(json!({ "role": "user", "content": content }));
    let mut body = body(json!(messages));
    let tool = |name: &str| json!({ "name": name, "input_schema": { "type": "object" } });
    body["tools"] = json!([tool("read"), tool("mcp__foldback__search_block"), load_tool()]);
    let answer = world.messages(&body).header("session-id", "s").send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["type"], "message", "{answer}");
    messages.push(json!({ "role": "assistant", "content": answer["content"] }));
}

/// The result of a call, with a user's text beside it.
fn result(call: &str, text: &str, more: &str) -> Value {
    let content = json!([{ "type": "text", "text": text }]);
    let result = json!({ "type": "tool_result", "tool_use_id": call, "content": content });
    json!([result, { "type": "text", "text": more }])
}

/// The content of a file: more than stays in a message.
fn data() -> String {
    (0..900).map(|n| format!("{n}: 斑马 zebra's port is {}\n", n * 7)).collect()
}

/// How large the stored parts of the todo are.
fn sizes(memory: &Memory, todo: &TodoId) -> Vec<u64> {
    let todo = memory.find(todo).unwrap();
    let stored = memory.payloads().metas(&todo, 0, 9).unwrap();
    stored.iter().map(|meta| meta.bytes).collect()
}

/// A conversation in which a file was read and one of our tools is called: the todo, what was said, and the answer.
async fn called(world: &World) -> (TodoId, Vec<Value>, String) {
    let mut messages = Vec::new();
    ask(world, &mut messages, json!("Please call read r1.")).await;
    ask(world, &mut messages, result("r1", &data(), "Now call mcp__foldback__load l1.")).await;
    let todo = loop {
        // It is recorded after the answer.
        match todos(&world.memory).pop() {
            Some(todo) if sizes(&world.memory, &todo).len() == 1 => break todo,
            _ => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    };
    let found = world.memory.find(&todo).unwrap();
    let stored = world.memory.payloads().metas(&found, 0, 1).unwrap().remove(0);
    let load = json!({ "ref": stored.reference().to_string() }).to_string();
    let answer = world.memory.call_tool(&todo, "load", &load).unwrap();
    assert!(answer.text.len() > 8_000, "{}", answer.text);
    world.todos.answered(&answer);
    // Some clients leave out the last line break.
    (todo, messages, answer.text.trim_end().to_owned())
}

/// Every branch comes back as it was sent, and nothing is damaged.
#[track_caller]
fn check(memory: &Memory, todo: &TodoId, branches: &[&[Value]]) {
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    let read = |json: &String| serde_json::from_str::<Value>(json).unwrap();
    let exported: Vec<Vec<Value>> =
        exports(memory, todo).iter().map(|branch| branch.iter().map(read).collect()).collect();
    assert_eq!(exported, branches);
}

/// GW18: an answer of our tools is not stored again, and comes back as it was sent; the same text from another tool,
/// and other text from ours, are ordinary results.
#[tokio::test]
async fn gw18_answers_of_own_tools_are_references() {
    let world = world().await;
    let (todo, mut messages, answer) = called(&world).await;
    ask(&world, &mut messages, result("l1", &answer, "Now call read r2.")).await;
    ask(&world, &mut messages, result("r2", &answer, "Now call mcp__foldback__load l2.")).await;
    let other = answer.replace("7: 斑马", "8: 斑马");
    ask(&world, &mut messages, result("l2", &other, "Thank you.")).await;
    let (memory, _) = world.end().await;
    let expected = [&data(), &answer, &other].map(|text| text.len() as u64);
    assert_eq!(sizes(&memory, &todo), expected);
    check(&memory, &todo, &[&messages]);
}

/// GW4, GW18: a compaction by the client sends the answer again, with its instructions beside it, perhaps to a
/// restarted gateway.
#[tokio::test]
async fn gw18_answers_of_own_tools_are_known_on_other_branches() {
    let mut world = world().await;
    let (todo, mut messages, answer) = called(&world).await;
    let mut compacted = messages.clone();
    ask(&world, &mut messages, result("l1", &answer, "Well?")).await;
    world.restart().await;
    ask(&world, &mut compacted, result("l1", &answer, "Sum up.")).await;
    let (memory, _) = world.end().await;
    assert_eq!(sizes(&memory, &todo), [data().len() as u64]);
    check(&memory, &todo, &[&messages, &compacted]);
}
