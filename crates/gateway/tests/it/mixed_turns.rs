//! GW9, GW10, GW11: a model calls tools that the client does not know, beside the client's own.

use crate::played_client::{Client, Speaks};
use crate::world::World;
use foldback::{Close, Memory};
use foldback_core::Timestamp;
use foldback_core::{Message, TodoId};
use foldback_gateway::{Keeping, RecallBy};
use foldback_testkit::effort;
use foldback_testkit::upstream::{Answer, ProviderCache, Raw, Said, Seen};
use serde_json::{Value, json};
use std::io::Write as _;

/// What is recorded before, and closed.
const SECRET: &str = "The pilot boards at pier 八, at 06:12.";

/// A model that does what the last text says after `plan:`, round by round: `O` calls ours, `T` the client's.
fn planned(seen: &Seen) -> Answer {
    let body = seen.json();
    let list = if body["input"].is_array() { &body["input"] } else { &body["messages"] };
    let list = list.as_array().cloned().unwrap_or_default();
    // What was looked up may quote an earlier plan.
    let is_typed = |one: &Value| one["role"] == "user" && !one.to_string().contains("tool_result");
    let is_plan = |one: &Value| is_typed(one) && one.to_string().contains("plan:");
    let at = list.iter().rposition(is_plan).unwrap_or_default();
    let text = list.get(at).map(ToString::to_string).unwrap_or_default();
    let plan = text.split("plan:").last().unwrap_or_default();
    let plan = plan.split(['"', ';']).next().unwrap_or_default();
    let round = list.iter().skip(at).filter(|one| one["role"] == "assistant");
    let round = round.count();
    let mut said = Said::text(&format!("round {round} of {at}.")).thinking("hm 七");
    for (n, who) in plan.split('/').nth(round).unwrap_or_default().chars().enumerate() {
        let id = format!("{who}{at}_{round}_{n}");
        said = match who {
            'O' if has_tool(&body, "foldback_load") => {
                said.call(&id, "foldback_load", json!({ "ref": "pier 八" }))
            }
            'O' => said,
            _ => said.call(&id, "read", json!({ "path": "a.txt" })),
        };
    }
    Answer::Said(said)
}

fn has_tool(body: &Value, name: &str) -> bool {
    body["tools"].to_string().contains(&format!("\"{name}\""))
}

/// A todo in which something is closed.
fn known(memory: &Memory, todo: &str) {
    let mut session = memory.session(&TodoId::new(todo).unwrap()).unwrap();
    session.record(Message::user("When does the pilot board?")).unwrap();
    session.record(Message::assistant(SECRET)).unwrap();
    session.close(Close::End).unwrap();
}

async fn world(memory: Option<Memory>, script: fn(&Seen) -> Answer) -> World {
    World::with(script, |config| {
        config.recall = RecallBy::Always;
        config.keeping = memory.map_or_else(|| config.keeping.clone(), Keeping::On);
    })
    .await
}

/// Every order and number of calls up to four, or up to three by default.
fn orders() -> Vec<String> {
    let mut orders = vec![String::new()];
    let mut from = 0;
    let most = if effort(4) == 4 { 4 } else { 3 };
    for _ in 0..most {
        let until = orders.len();
        for n in from..until {
            for who in ["O", "T"] {
                orders.push(format!("{}{who}", orders[n]));
            }
        }
        from = until;
    }
    orders.split_off(1)
}

/// What a provider sees of one conversation grows only at its end.
fn assert_prefixes(speaks: Speaks, seen: &[Seen], what: &str) {
    let key = if speaks == Speaks::Responses { "input" } else { "messages" };
    let plain = |one: &Value| {
        let mut one = one.clone();
        if let Some(text) = one["content"].as_str().map(str::to_owned) {
            one["content"] = json!([{ "type": "text", "text": text }]);
        }
        for block in one["content"].as_array_mut().into_iter().flatten() {
            block.as_object_mut().unwrap().shift_remove("cache_control");
        }
        one.to_string()
    };
    let list =
        |seen: &Seen| seen.json()[key].as_array().unwrap().iter().map(plain).collect::<Vec<_>>();
    for pair in seen.windows(2) {
        let (before, after) = (list(&pair[0]), list(&pair[1]));
        assert_eq!(after[..before.len().min(after.len())], before, "{what}");
    }
}

async fn every_order(speaks: Speaks) {
    let mut whole = Vec::new();
    for stream in [false, true] {
        let mut here = world(None, planned).await;
        let memory = here.memory.clone();
        for (n, order) in orders().into_iter().enumerate() {
            let todo = format!("t{n}");
            let what = format!("{order}, {speaks:?}, streamed: {stream}");
            known(&memory, &todo);
            let mut client = Client::new(speaks, stream, &todo);
            client.say(&format!("plan:{order}/O/T{order}"));
            let mut seen = Vec::new();
            let mut goes_on = true;
            while goes_on {
                goes_on = client.step(&here).await;
                seen.extend(here.upstream.seen());
                here.upstream.forget();
                if n % 5 == 0 {
                    // A restarted gateway continues.
                    drop(here.end().await);
                    here = world(Some(memory.clone()), planned).await;
                }
            }
            client.turn(&here, "plan:").await;
            client.turn(&here, &format!("plan:T/{order}")).await;
            seen.extend(here.upstream.seen());
            here.upstream.forget();
            assert_prefixes(speaks, &seen, &what);
            let bodies = seen.iter().map(Seen::json);
            for body in bodies.filter(|_| speaks == Speaks::Messages) {
                // The client's cache mark is where it was: once, at the end of what it sends.
                let end = body["messages"].as_array().unwrap().last().unwrap();
                let block = end["content"].as_array().unwrap().last().unwrap();
                let is_clients = end.to_string().contains("read 港");
                assert!(!is_clients || block["cache_control"].is_object(), "{what}: {body}");
                assert_eq!(body.to_string().matches("cache_control").count(), 1, "{what}: {body}");
            }
            // Streamed or not, the client gets the same.
            match stream {
                false => whole.push(client.said()),
                true => assert_eq!(client.said(), whole[n], "{what}"),
            }
            let last = seen.last().unwrap().json().to_string();
            assert!(!client.history().contains("foldback"), "{what}: {}", client.history());
            assert!(last.contains("06:12"), "{what}: {last}");
            let calls = last.matches("\"foldback_load\"").count();
            let ours = order.matches('O').count() * 3 + 1;
            // One is the declaration.
            assert_eq!(calls, ours + 1, "{what}: {last}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gw10_every_order_of_calls_over_messages() {
    every_order(Speaks::Messages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gw10_every_order_of_calls_over_chat_completions() {
    every_order(Speaks::Chat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gw10_every_order_of_calls_over_responses() {
    every_order(Speaks::Responses).await;
}

/// GW9: a model that never stops looking things up is stopped, and answers.
#[tokio::test(flavor = "multi_thread")]
async fn gw9_a_turn_has_so_many_rounds() {
    fn endless(seen: &Seen) -> Answer {
        let body = seen.json();
        let is_none = body["tool_choice"] == "none" || body["tool_choice"]["type"] == "none";
        let count = seen.body.len();
        match is_none {
            true => Answer::Said(Said::text("Enough.")),
            false => Answer::Said(Said::default().call(
                &format!("c{count}"),
                "foldback_load",
                json!({ "ref": "pier 八" }),
            )),
        }
    }
    for speaks in Speaks::ALL {
        for stream in [false, true] {
            let world = world(None, endless).await;
            known(&world.memory, "t");
            let mut client = Client::new(speaks, stream, "t");
            client.turn(&world, "Well?").await;
            let seen = world.upstream.seen();
            assert_eq!(seen.len(), 9, "{speaks:?}");
            assert!(seen[8].json().to_string().contains("last look-ups"), "{speaks:?}");
            assert!(client.history().contains("Enough."), "{}", client.history());
        }
    }
}

/// GW11, GW15: the client sees how full its context is, and the output of all rounds; the ledger has each round.
#[tokio::test(flavor = "multi_thread")]
async fn gw11_usage_is_the_last_input_and_all_output() {
    for speaks in Speaks::ALL {
        for stream in [false, true] {
            let world = world(None, planned).await;
            known(&world.memory, "t");
            let mut client = Client::new(speaks, stream, "t");
            client.turn(&world, "plan:O/OO").await;
            let seen = world.upstream.seen();
            let input = |seen: &Seen| {
                let count = &mut |text: &str| text.len() as u64 / 4;
                let (read, written, plain) =
                    ProviderCache::default().take(&seen.json(), Timestamp(0), count);
                read + written + plain
            };
            assert_eq!(client.usage, (input(&seen[2]), 21), "{speaks:?}, streamed: {stream}");
            let (billed, ledger) = (world.upstream.billed(), world.ledger.clone());
            drop(world.end().await);
            let sums = ledger.sums();
            let recalls = sums.recalls;
            assert_eq!((sums.requests, recalls.requests), (1, 2), "{speaks:?}, streamed: {stream}");
            assert_eq!((sums.output, recalls.output), (7, 14), "{speaks:?}, streamed: {stream}");
            assert_eq!(sums.sent.tokens.total(), input(&seen[0]), "{speaks:?}, streamed: {stream}");
            let of_recalls = input(&seen[1]) + input(&seen[2]);
            assert_eq!(recalls.tokens.total(), of_recalls, "{speaks:?}, streamed: {stream}");
            assert!((sums.cost() - billed.cost).abs() < 0.5, "{sums:?} {billed:?}");
        }
    }
}

/// GW9: an error of the provider in a later round is an event of the protocol; the first one passes as it is.
#[tokio::test(flavor = "multi_thread")]
async fn gw9_an_error_behind_the_first_round_is_an_event() {
    fn failing(seen: &Seen) -> Answer {
        if !seen.json().to_string().contains("06:12") {
            return planned(seen);
        }
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "too much 港" } });
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Answer::Raw(Raw { status: 529, headers, pieces: vec![error.to_string().into_bytes()] })
    }
    for speaks in Speaks::ALL {
        for stream in [false, true] {
            let world = world(None, failing).await;
            known(&world.memory, "t");
            let client = Client::new(speaks, stream, "t");
            let (status, text) = client.ask(&world, "plan:O").await;
            assert_eq!(status, if stream { 200 } else { 529 }, "{speaks:?}: {text}");
            assert!(text.contains("too much 港") && text.contains("overloaded_error"), "{text}");
            let kind = match speaks {
                Speaks::Messages => "event: error\n",
                Speaks::Chat => "data: {\"error\":",
                Speaks::Responses => "event: response.failed\n",
            };
            assert_eq!(text.contains(kind), stream, "{text}");
            let (status, text) = client.ask(&world, "06:12").await;
            assert_eq!((status, text.starts_with('{')), (529, true), "{text}");
        }
    }
}

/// GW9: a later round that fails without an error of the API is reported with its status, noted and counted.
#[tokio::test(flavor = "multi_thread")]
async fn gw9_a_failure_without_words_has_its_status() {
    fn failing(seen: &Seen) -> Answer {
        if !seen.json().to_string().contains("06:12") {
            return planned(seen);
        }
        let status = if seen.json().to_string().contains("often") { 429 } else { 500 };
        let pieces = vec![b"<html>port closed</html>".to_vec()];
        Answer::Raw(Raw { status, headers: Vec::new(), pieces })
    }
    for speaks in Speaks::ALL {
        for (word, status, kind) in [("often", 429, "rate_limit"), ("once", 500, "_error")] {
            let world = world(None, failing).await;
            known(&world.memory, "t");
            let client = Client::new(speaks, true, "t");
            let (_, text) = client.ask(&world, &format!("{word} plan:O")).await;
            let said = format!("the provider answered a look-up with status {status}");
            assert!(text.contains(&said) && text.contains(kind), "{speaks:?}: {text}");
            assert!(!text.contains("port closed"), "{text}");
            assert_eq!(*world.log.lock(), [said]);
            assert_eq!(world.ledger.refusals(), 1);
        }
    }
}

/// An answer of chat-completions that was packed though nobody asked for that, in small pieces.
fn packed(seen: &Seen) -> Answer {
    let body = seen.json();
    let is_last = body.to_string().contains("06:12");
    let call = json!({ "index": 0, "id": "a", "type": "function", "function": {
        "name": "foldback_load", "arguments": "{\"ref\":\"pier 八\"}" } });
    let message = match is_last {
        false => json!({ "role": "assistant", "content": "让我看。", "tool_calls": [call] }),
        true => json!({ "role": "assistant", "content": "Pier 八." }),
    };
    let end = if is_last { "stop" } else { "tool_calls" };
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16 });
    let (kind, text) = match body["stream"] == true {
        false => {
            let choice = json!({ "index": 0, "message": message, "finish_reason": end });
            (
                "application/json",
                json!({ "id": "x", "choices": [choice], "usage": usage }).to_string(),
            )
        }
        true => {
            let choice = json!({ "index": 0, "delta": message, "finish_reason": end });
            let chunk = json!({ "id": "x", "created": 1, "choices": [choice] });
            let last = json!({ "id": "x", "choices": [], "usage": usage });
            ("text/event-stream", format!("data: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n"))
        }
    };
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let (encoding, bytes) = match (is_last, body.to_string().contains("odd")) {
        (_, true) => ("x-odd", text.into_bytes()),
        (true, _) => ("zstd", zstd::bulk::compress(text.as_bytes(), 3).unwrap()),
        (false, _) => ("gzip", gzip.finish().unwrap()),
    };
    let headers = [("content-type", kind), ("content-encoding", encoding)];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Answer::Raw(Raw { status: 200, headers, pieces: bytes.chunks(7).map(<[u8]>::to_vec).collect() })
}

/// GW9: a call of our tools is answered and hidden also in an answer that a provider packs all the same.
#[tokio::test(flavor = "multi_thread")]
async fn gw9_a_packed_answer_hides_as_much() {
    for stream in [false, true] {
        let world = world(None, packed).await;
        known(&world.memory, "t");
        let mut client = Client::new(Speaks::Chat, stream, "t");
        let (status, text) = client.ask(&world, "odd").await;
        assert_eq!((status, text.contains("foldback_load")), (502, false), "{text}");
        client.turn(&world, "Well?").await;
        let history = client.history();
        assert!(!history.contains("foldback") && history.contains("让我看。"), "{history}");
        assert!(history.contains("Pier 八."), "{history}");
    }
}

/// A model that thinks in numbered fragments, and whose calls all have the index 0.
fn in_fragments(seen: &Seen) -> Answer {
    let body = seen.json();
    let said = body["messages"].as_array().into_iter().flatten();
    let round = said.filter(|one| one["role"] == "assistant").count();
    let thought = |more: Value| json!({ "reasoning_details": [more] });
    let text = |text: &str| thought(json!({ "type": "reasoning.text", "text": text, "index": 0 }));
    let seal =
        |seal: String| thought(json!({ "type": "reasoning.text", "signature": seal, "index": 0 }));
    let call = |id: &str, name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
    };
    let load = |id: &str| call(id, "foldback_load", json!({ "ref": "pier 八" }));
    let read = |id: &str| call(id, "read", json!({ "path": "港.txt" }));
    let mut deltas = vec![json!({ "role": "assistant" })];
    if round < 2 {
        deltas.extend([text("让我看"), text("看港口"), seal(format!("seal {round}"))]);
    }
    deltas.extend(match round {
        0 => vec![load("a"), load("b")],
        1 => vec![read("c"), load("d"), read("e")],
        _ => vec![json!({ "content": "Pier 八." })],
    });
    let choice =
        |delta: &Value, end: Value| json!([{ "index": 0, "delta": delta, "finish_reason": end }]);
    let chunk = |choices: Value| {
        format!("data: {}\n\n", json!({ "id": "x", "created": 1, "choices": choices }))
    };
    let mut text: String = deltas.iter().map(|delta| chunk(choice(delta, Value::Null))).collect();
    let end = if round < 2 { "tool_calls" } else { "stop" };
    text += &chunk(choice(&json!({}), json!(end)));
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16 });
    text += &format!("data: {}\n\n", json!({ "id": "x", "choices": [], "usage": usage }));
    text += "data: [DONE]\n\n";
    let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    Answer::Raw(Raw { status: 200, headers, pieces: vec![text.into_bytes()] })
}

/// GW9, GW10: thinking in fragments is sent back whole, and parallel calls of one index are several.
#[tokio::test(flavor = "multi_thread")]
async fn gw9_fragments_and_calls_of_one_index_are_played() {
    let world = world(None, in_fragments).await;
    known(&world.memory, "t");
    let mut client = Client::new(Speaks::Chat, true, "t");
    client.turn(&world, "Well?").await;
    assert!(!client.history().contains("foldback"), "{}", client.history());
    assert!(client.history().contains("Pier 八."), "{}", client.history());
    let seen = world.upstream.seen();
    assert_eq!(seen.len(), 3);
    let last = seen[2].json();
    let said: Vec<_> = last["messages"].as_array().unwrap().iter().skip(1).collect();
    let ids = |one: &Value| {
        let calls = one["tool_calls"].as_array().into_iter().flatten();
        calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let told = |one: &&Value| match one["role"].as_str() {
        Some("tool") => one["tool_call_id"].as_str().unwrap().to_owned(),
        _ => ids(one),
    };
    let told: Vec<_> = said.iter().map(told).collect();
    assert_eq!(told, ["a b", "a", "b", "c d e", "c", "d", "e"], "{last}");
    for (n, place) in [(0, 0), (1, 3)] {
        let whole = json!([{ "type": "reasoning.text", "text": "让我看看港口", "index": 0, "signature": format!("seal {n}") }]);
        assert_eq!(said[place]["reasoning_details"], whole, "{last}");
    }
}

/// GW10: if the client has changed an answer, nothing is put back.
#[tokio::test(flavor = "multi_thread")]
async fn gw10_what_a_client_changes_is_left_alone() {
    for speaks in [Speaks::Messages, Speaks::Chat] {
        let world = world(None, planned).await;
        known(&world.memory, "t");
        let mut client = Client::new(speaks, true, "t");
        client.turn(&world, "plan:O/OT").await;
        client.change("round", "Round");
        client.forget_thoughts();
        client.turn(&world, "plan:").await;
        let last = world.upstream.seen().pop().unwrap().json();
        assert!(!last["messages"].to_string().contains("foldback_load"), "{last}");
    }
}

/// GW10: a client that breaks off keeps a part of the answer, and its thinking stays valid: it follows what the client
/// has not seen.
#[tokio::test(flavor = "multi_thread")]
async fn gw10_a_turn_may_break_off() {
    for (speaks, parts, ours) in [
        (Speaks::Messages, 2, 1),
        (Speaks::Messages, 3, 1),
        (Speaks::Messages, 5, 2),
        (Speaks::Responses, 2, 1),
        (Speaks::Responses, 4, 2),
        (Speaks::Responses, 6, 2),
    ] {
        let world = world(None, planned).await;
        known(&world.memory, "t");
        let mut client = Client::new(speaks, true, "t");
        client.turn(&world, "plan:").await;
        client.turn(&world, "plan:O/O").await;
        client.keep(parts);
        client.change("round 2", "Rou");
        world.upstream.forget();
        client.turn(&world, "plan:T").await;
        let seen = world.upstream.seen();
        assert_prefixes(speaks, &seen, "a turn breaks off");
        let last = seen.last().unwrap().json().to_string();
        assert_eq!(
            last.matches("\"foldback_load\"").count(),
            ours + 1,
            "{speaks:?} {parts}: {last}"
        );
    }
}

/// Requests without tools and conversations without a past are sent unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn gw1_nothing_is_declared_where_nothing_can_be_looked_up() {
    let world = world(None, planned).await;
    known(&world.memory, "old");
    let mut fresh = Client::new(Speaks::Messages, false, "new");
    let mut bare = Client::new(Speaks::Messages, false, "old");
    bare.tools.clear();
    for client in [&mut fresh, &mut bare] {
        client.turn(&world, "plan:").await;
        client.turn(&world, "plan:").await;
    }
    let seen = world.upstream.seen();
    assert!(seen.len() >= 4, "{}", seen.len());
    for seen in seen {
        assert!(!seen.json().to_string().contains("foldback"), "{}", seen.json());
    }
}
