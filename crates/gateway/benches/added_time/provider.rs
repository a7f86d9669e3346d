//! A scripted provider on this machine.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::Response;
use axum::serve::ListenerExt as _;
use futures::stream;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What it answers.
pub(crate) const ANSWER: &str = "Good. What does the next log say?";

/// How many bytes the pieces of an answer have, and how far apart they are sent if it is slow.
const PIECES: (usize, Duration) = (3, Duration::from_millis(50));

/// When a request began to arrive, and when its answer began to leave.
pub(crate) struct Seen {
    pub(crate) arrived: Instant,
    pub(crate) answered: Instant,
}

/// A provider's URL. It streams its answers to requests that ask for it, slowly if the model's name says so.
pub(crate) async fn provider(seen: mpsc::UnboundedSender<Seen>) -> String {
    let answer = move |request: Request| {
        let seen = seen.clone();
        async move {
            let arrived = Instant::now();
            let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
            let holds = |what: &str| body.windows(what.len()).any(|part| part == what.as_bytes());
            let pause = if holds("claude-slow") { PIECES.1 } else { Duration::ZERO };
            let is_stream = holds("\"stream\":true") || holds("\"stream\": true");
            // Answers outside the measurements are not checked.
            drop(seen.send(Seen { arrived, answered: Instant::now() }));
            match is_stream {
                true => streamed(pause),
                false => whole(),
            }
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let listener = listener.tap_io(|client| client.set_nodelay(true).unwrap());
    tokio::spawn(async { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() });
    url
}

fn message(content: &Value, stop: Option<&str>) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content,
        "stop_reason": stop, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 },
    })
}

fn whole() -> Response<Body> {
    let body = message(&json!([{ "type": "text", "text": ANSWER }]), Some("end_turn"));
    let response = Response::builder().header("content-type", "application/json");
    response.body(Body::from(body.to_string())).unwrap()
}

fn streamed(pause: Duration) -> Response<Body> {
    let mut events = vec![
        json!({ "type": "message_start", "message": message(&json!([]), None) }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
    ];
    let piece = |text: &[u8]| {
        let delta = json!({ "type": "text_delta", "text": String::from_utf8_lossy(text) });
        json!({ "type": "content_block_delta", "index": 0, "delta": delta })
    };
    events.extend(ANSWER.as_bytes().chunks(PIECES.0).map(piece));
    events.extend([
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ]);
    let pieces = events.into_iter().map(|event| {
        let kind = event["type"].as_str().unwrap_or_default();
        Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
    });
    let paced = stream::unfold((pieces, true), move |(mut pieces, is_first)| async move {
        if !is_first && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Some((Ok::<_, std::io::Error>(pieces.next()?), (pieces, false)))
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from_stream(paced)).unwrap()
}
