//! GW1, GW2, GW12: what is passed on, and how.

use crate::world::{World, body, client, counting};
use foldback_gateway::Keeping;
use foldback_testkit::upstream::{Answer, Raw};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

fn raw(status: u16, headers: &[(&str, &str)], pieces: &[&[u8]]) -> Raw {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Raw { status, headers: headers.collect(), pieces: pieces.iter().map(|p| p.to_vec()).collect() }
}

/// GW1: the provider gets the client's bytes, and the client the provider's.
#[tokio::test]
async fn gw1_nothing_of_a_request_or_an_answer_changes() {
    let answer = raw(
        418,
        &[
            ("x-request-id", "r1"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("retry-after", "3"),
        ],
        &[b"{\"odd\" : \"", "茶\\u00e9".as_bytes(), b"\" }\r\n"],
    );
    let expected = answer.clone();
    let world = World::new(move |_| Answer::Raw(answer.clone())).await;
    for (method, path, bytes) in [
        (
            "POST",
            "/v1/messages?beta=true&x=%2F%20",
            "{ \"messages\":[ ],\"unknown\" : 1.50 }".as_bytes(),
        ),
        ("POST", "/v1/chat/completions", "not json 港口".as_bytes()),
        ("POST", "/v1/responses", b"\x00\xff\xfe"),
        ("POST", "/v1/messages/count_tokens", b"{}"),
        ("PUT", "/v1/files/a%20b?x", b"abc"),
        ("DELETE", "/v1/files/f1", b""),
        ("GET", "/v1/models?limit=1000", b""),
        ("PATCH", "/anything/else", b"x"),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = world
            .client
            .request(method.clone(), format!("{}{path}", world.url))
            .header("accept", "application/json")
            .header("anthropic-beta", "a-2025,b-2026")
            .header("x-unknown", "one")
            .header("x-unknown", "two")
            .header("connection", "x-mine")
            .header("x-mine", "stays here");
        if !bytes.is_empty() {
            request = request.body(bytes.to_vec());
        }
        let got = request.send().await.unwrap();
        assert_eq!(got.status(), 418, "{path}");
        for (name, value) in &expected.headers {
            let all: Vec<_> =
                got.headers().get_all(name).iter().map(|v| v.to_str().unwrap()).collect();
            assert!(all.contains(&value.as_str()), "{path}: {name}: {all:?}");
        }
        assert_eq!(got.bytes().await.unwrap(), expected.pieces.concat(), "{path}");
        let seen = world.upstream.seen().pop().unwrap();
        assert_eq!((seen.method.as_str(), seen.path.as_str()), (method.as_str(), path));
        assert_eq!(seen.body, bytes, "{path}");
        let names: Vec<_> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
        let unknown: Vec<_> = seen.headers.iter().filter(|(n, _)| n == "x-unknown").collect();
        assert_eq!(unknown.len(), 2, "{path}: {names:?}");
        assert_eq!(seen.header("anthropic-beta"), Some("a-2025,b-2026"));
        assert!(!names.contains(&"x-mine"), "{path}: {names:?}");
        let expected_host = world.upstream.url.trim_start_matches("http://");
        assert_eq!(seen.header("host"), Some(expected_host), "{path}");
    }
}

/// GW1: a stream reaches the client piece by piece, before it has ended.
#[tokio::test]
async fn gw1_a_stream_is_passed_on_as_it_comes() {
    let world = World::new(counting()).await;
    let mut asked = body(json!([{ "role": "user", "content": "hi" }]));
    asked["stream"] = json!(true);
    let direct = client()
        .post(format!("{}/v1/messages", world.upstream.url))
        .header("anthropic-version", "2023-06-01")
        .body(asked.to_string())
        .send();
    let direct = direct.await.unwrap().bytes().await.unwrap();
    let through = world.messages(&asked).send().await.unwrap();
    assert_eq!(through.headers()["content-type"], "text/event-stream");
    assert_eq!(through.bytes().await.unwrap(), direct);
}

/// GW2: clients that ask for a WebSocket fall back to requests.
#[tokio::test]
async fn gw2_a_websocket_is_answered_426() {
    let world = World::new(counting()).await;
    let request = world.client.get(format!("{}/v1/responses", world.url));
    let request = request.header("connection", "upgrade").header("upgrade", "websocket");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 426);
    assert_eq!(world.upstream.seen(), []);
}

/// GW2: compressed bodies pass unchanged, and are read for the record.
#[tokio::test]
async fn gw2_packed_bodies_pass_and_are_read() {
    let world = World::with(
        |_| {
            Answer::Raw(raw(
                200,
                &[],
                &[br#"{"choices":[{"message":{"role":"assistant","content":"yes"}}]}"#],
            ))
        },
        |_| {},
    )
    .await;
    for (n, encoding) in ["zstd", "gzip"].into_iter().enumerate() {
        let text = json!({ "model": "m", "messages": [{ "role": "user", "content": format!("packed {n} 七") }] });
        let text = text.to_string();
        let packed = match encoding {
            "zstd" => zstd::encode_all(text.as_bytes(), 3).unwrap(),
            _ => {
                use std::io::Write as _;
                let mut gzip =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gzip.write_all(text.as_bytes()).unwrap();
                gzip.finish().unwrap()
            }
        };
        let request = world.client.post(format!("{}/v1/chat/completions", world.url));
        let answer = request.header("content-encoding", encoding).body(packed.clone()).send().await;
        assert_eq!(answer.unwrap().status(), 200);
        let seen = world.upstream.seen().pop().unwrap();
        assert_eq!(
            (seen.body, seen.headers.iter().any(|(n, _)| n == "content-encoding")),
            (packed, true)
        );
    }
    let (memory, _) = world.end().await;
    assert_eq!(crate::world::todos(&memory).len(), 2);
}

/// GW12: a store that cannot be written stops no request, and this is reported; if only recorded requests may
/// pass, none does.
#[tokio::test]
async fn gw12_a_store_in_trouble_stops_nobody() {
    for fail_closed in [false, true] {
        let world = World::with(counting(), |config| {
            config.keeping = Keeping::Impossible("the disk is full".to_owned());
            config.fail_closed = fail_closed;
        })
        .await;
        let asked = body(json!([{ "role": "user", "content": "hi" }]));
        let answer = world.messages(&asked).send().await.unwrap();
        if fail_closed {
            assert_eq!(answer.status(), 503);
            let text = answer.text().await.unwrap();
            assert!(
                text.contains("the disk is full") && text.contains("\"type\":\"error\""),
                "{text}"
            );
            assert_eq!(world.upstream.seen(), []);
        } else {
            assert_eq!(answer.status(), 200);
            let notice = answer.headers()["x-foldback-notice"].to_str().unwrap();
            assert_eq!(notice, "not recorded: the disk is full");
            assert_eq!(*world.log.lock(), ["not recorded: the disk is full"]);
        }
    }
}

/// GW12: a provider that cannot be reached is an error in the format and with the status of the API.
#[tokio::test]
async fn gw12_a_provider_that_is_gone_is_an_error_of_the_api() {
    let world = World::with(counting(), |config| {
        config.openai = foldback_gateway::Upstream::new("http://127.0.0.1:9/v1").unwrap();
    })
    .await;
    let answer = world.chat(&json!({ "messages": [] })).send().await.unwrap();
    assert_eq!(answer.status(), 502);
    let text = answer.text().await.unwrap();
    assert!(text.contains("127.0.0.1:9") && text.contains("\"error\""), "{text}");
    assert!(!text.contains("sk-canary"), "{text}");
    assert!(text.contains("cannot be reached: "), "{text}");
    let causes: Vec<_> = text.split(": ").collect();
    assert!(causes.windows(2).all(|pair| pair[0] != pair[1]), "{text}");
}

/// GW12: a provider that was reached, and closes the connection, is not said to be out of reach.
#[tokio::test]
async fn gw12_a_provider_that_hangs_up_was_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let _ = client.read(&mut [0; 4 << 10]).await;
        }
    });
    let world = World::with(counting(), |config| {
        config.openai = foldback_gateway::Upstream::new(&address).unwrap();
    })
    .await;
    let answer = world.chat(&json!({ "messages": [] })).send().await.unwrap();
    assert_eq!(answer.status(), 502);
    let text = answer.text().await.unwrap();
    assert!(text.contains(" did not answer: ") && !text.contains("be reached"), "{text}");
}

/// GW12: a body that is not a request of the API passes, and this is reported.
#[tokio::test]
async fn gw12_an_unknown_shape_passes_and_is_said() {
    let ok = raw(200, &[], &[b"{}"]);
    let world = World::new(move |_| Answer::Raw(ok.clone())).await;
    for text in ["{\"messages\": 7}", "[]", "{\"messages\": [{\"role\": 5}]}"] {
        let request = world.client.post(format!("{}/v1/messages", world.url));
        assert_eq!(request.body(text).send().await.unwrap().status(), 200, "{text}");
    }
    let log = std::sync::Arc::clone(&world.log);
    drop(world.end().await);
    assert!(!log.lock().is_empty());
}

/// GW12: one message whose content is null does not keep the others from being recorded.
#[tokio::test]
async fn gw12_a_message_without_content_is_recorded_with_the_others() {
    let world = World::new(counting()).await;
    let messages = json!([
        { "role": "user", "content": "哪个端口？" },
        { "role": "assistant", "content": null },
        { "role": "user", "content": "请再看一次。" },
    ]);
    let body = json!({ "model": "claude-x", "max_tokens": 9, "messages": messages });
    assert_eq!(world.messages(&body).send().await.unwrap().status(), 200);
    assert_eq!(world.upstream.seen().pop().unwrap().json(), body);
    let (memory, _) = world.end().await;
    let todos = memory.todos(None, 9).unwrap();
    assert_eq!((todos.len(), memory.len(&todos[0]).unwrap()), (1, 4));
}
