//! What the gateway adds to a request of a long conversation: between the client's last byte and the first byte at the
//! provider, and from there to the first byte back.
//!
//! `cargo bench -p foldback-gateway --bench added_time [MESSAGES [KILOBYTES [REQUESTS]]]`; 1,000 messages of 800 KB and
//! 300 requests by default.

#![expect(clippy::unwrap_used, reason = "a benchmark may fail loudly")]

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use foldback::{Memory, MemoryTool, Options};
use foldback_gateway::{Gateway, GatewayConfig, Keeping, RecallBy, Upstream};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Answers at once, and says when a request began to arrive.
async fn provider(arrived: mpsc::UnboundedSender<Instant>) -> String {
    let answer = move |request: Request| {
        let arrived = arrived.clone();
        async move {
            arrived.send(Instant::now()).unwrap();
            axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
            let body = json!({ "id": "m", "type": "message", "role": "assistant", "content": [{ "type": "text", "text": "Good." }], "usage": { "input_tokens": 1, "output_tokens": 1 } });
            Response::builder()
                .header("content-type", "application/json")
                .body(Body::from(body.to_string()))
                .unwrap()
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() });
    url
}

async fn gateway(url: &str, recall: RecallBy) -> String {
    let memory = Memory::in_memory(Options::default().with_view(Keeping::view())).unwrap();
    let mut config = GatewayConfig::new().unwrap();
    config.anthropic = Upstream::new(url).unwrap();
    config.keeping = Keeping::On(memory);
    config.recall = recall;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let gateway = Gateway::new(config).unwrap();
    tokio::spawn(gateway.serve(listener, std::future::pending()));
    url
}

fn turn(n: usize, size: usize) -> [Value; 2] {
    let text = format!("Line {n} of the log says 端口 {n}. ").repeat(size / 32 + 1);
    let result = json!({ "type": "tool_result", "tool_use_id": format!("c{n}"), "content": text });
    let call = json!({ "type": "tool_use", "id": format!("c{n}"), "name": "read", "input": { "path": format!("f{n}") } });
    [
        json!({ "role": "assistant", "content": [call] }),
        json!({ "role": "user", "content": [result] }),
    ]
}

/// The time to the provider and the whole time, of each request.
async fn asked(
    client: &reqwest::Client,
    url: &str,
    arrivals: &mut mpsc::UnboundedReceiver<Instant>,
    (messages, bytes, requests): (usize, usize, usize),
) -> (Vec<Duration>, Vec<Duration>) {
    let load = MemoryTool::all().into_iter().find(|tool| tool.name == "load").unwrap();
    let tools = json!([{ "name": "mcp__foldback__load", "description": load.description, "input_schema": {} }]);
    let mut said = vec![json!({ "role": "user", "content": "Read the logs." })];
    said.extend((0..messages / 2).flat_map(|n| turn(n, 2 * bytes / messages)));
    let (mut there, mut whole) = (Vec::new(), Vec::new());
    for n in 0..=requests {
        let body =
            json!({ "model": "claude-x", "max_tokens": 9, "tools": tools, "messages": said })
                .to_string();
        let request = client.post(format!("{url}/v1/messages")).header("x-api-key", "k");
        let request = request.header("x-foldback-todo", "bench").body(body).build().unwrap();
        let begun = Instant::now();
        client.execute(request).await.unwrap().bytes().await.unwrap();
        let (arrived, end) = (arrivals.recv().await.unwrap(), Instant::now());
        // The first records all that was said before.
        if n > 0 {
            there.push(arrived - begun);
            whole.push(end - begun);
        }
        said.extend(turn(messages + n, 2 * bytes / messages));
    }
    (there, whole)
}

fn told(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("{name:<34} median {:>7.2} ms   p99 {:>7.2} ms", at(50), at(99));
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|one| one.parse().ok()).collect();
    let number = |n: usize, usual: usize| numbers.get(n).copied().unwrap_or(usual);
    let size = (number(0, 1_000), number(1, 800) << 10, number(2, 300));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        drop(rustls::crypto::ring::default_provider().install_default());
        let (arrived, mut arrivals) = mpsc::unbounded_channel();
        let direct = provider(arrived).await;
        let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().unwrap();
        let passing = gateway(&direct, RecallBy::Off).await;
        let folding = gateway(&direct, RecallBy::Mcp).await;
        for (name, url) in [("direct", &direct), ("passing", &passing), ("folding", &folding)] {
            let (there, whole) = asked(&client, url, &mut arrivals, size).await;
            told(&format!("{name}, to the provider"), there);
            told(&format!("{name}, to the answer's end"), whole);
        }
    });
}
