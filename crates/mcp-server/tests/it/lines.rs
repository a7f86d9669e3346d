//! Lines that are no single readable message, and calls that follow one another without waiting.

use crate::wire::{Wire, id, server, store};
use foldback_mcp_server::Scope;
use serde_json::{Value, json};

/// A client of a server that records into an empty todo.
async fn notebook() -> (foldback::Memory, Wire) {
    let memory = store(&[]);
    let wire = Wire::start(server(&memory, Scope::todo(id("trip")).recording())).await;
    (memory, wire)
}

/// RC1: a request that cannot be read is answered, under its id where that can be read, and the server continues.
#[tokio::test]
async fn rc1_what_cannot_be_read_is_answered() {
    let (_, mut wire) = notebook().await;
    let long = format!(
        r#"{{"method":"tools/call","params":{{"name":"record","arguments":{{"text":"{}"}}}},"jsonrpc":"2.0","id":"long"}}"#,
        "杭".repeat(6 << 20)
    );
    for (line, code, answered) in [
        (&b"not json"[..], -32700, Value::Null),
        (b"\xff\xfe", -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}", -32700, json!(7)),
        (br#"{"id":8,"method":"tools/call","params":{"name":"#, -32700, json!(8)),
        (br#"{"jsonrpc":"2.0","id":9}"#, -32600, json!(9)),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, Value::Null),
        (b"[]", -32600, Value::Null),
        (long.as_bytes(), -32600, json!("long")),
    ] {
        wire.write(line).await;
        // Blank lines, notifications and responses are not answered.
        wire.write(b"\r\n \n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\",\"params\":1}\n").await;
        wire.write(b"{\"jsonrpc\":\"2.0\",\"id\":0.5,\"result\":{}}\n").await;
        let answer = wire.next().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &answered), "{answer}");
    }
    assert!(wire.request("tools/list", json!({})).await["result"].is_object());
}

/// RC1: half an emoji, as JavaScript writes a text that was cut inside one, becomes U+FFFD.
#[tokio::test]
async fn rc1_half_a_character_does_not_lose_the_call() {
    let (memory, mut wire) = notebook().await;
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"record","arguments":{"text":"渡轮 \ud83d \ud83d\ude00"}}}"#;
    wire.write(format!("\u{feff}{call}\n").as_bytes()).await;
    let answer = wire.next().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(5), &json!(false)),
        "{answer}"
    );
    assert_eq!(memory.messages(&id("trip"), 0..1).unwrap()[0].text(), "渡轮 \u{fffd} 😀");
}

/// RC1: each message of a batch is answered on a line of its own.
#[tokio::test]
async fn rc1_a_batch_is_answered_message_by_message() {
    let (_, mut wire) = notebook().await;
    let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let batch = json!([
        ping(json!("a")),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"id": "b"},
        ping(json!("c")),
    ]);
    wire.send(&batch).await;
    let mut told = Vec::new();
    for _ in 0..3 {
        let answer = wire.next().await;
        told.push((answer["id"].as_str().unwrap().to_owned(), answer["error"]["code"].as_i64()));
    }
    told.sort();
    let expected = [("a", None), ("b", Some(-32600)), ("c", None)];
    assert_eq!(told, expected.map(|(id, code)| (id.to_owned(), code)));
}

/// RC2: notes that are sent without waiting for answers are stored in the order in which they were sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rc2_notes_are_stored_in_the_order_of_their_calls() {
    let (memory, mut wire) = notebook().await;
    let notes: Vec<String> = (0..100).map(|n| format!("第 {n} 条")).collect();
    for (n, note) in notes.iter().enumerate() {
        let arguments = json!({"text": note});
        // Some clients send the arguments as a text.
        let arguments = if n % 3 == 0 { json!(arguments.to_string()) } else { arguments };
        let params = json!({"name": "record", "arguments": arguments});
        wire.send(
            &json!({"jsonrpc": "2.0", "id": 1000 + n, "method": "tools/call", "params": params}),
        )
        .await;
    }
    for _ in &notes {
        let answer = wire.next().await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let kept = memory.messages(&id("trip"), 0..100).unwrap();
    let kept: Vec<_> = kept.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(kept, notes);
}
