//! The time that the gateway adds to requests, compared with other proxies.
//!
//! `cargo bench -p foldback-gateway --bench added_time [MESSAGES [KILOBYTES [REQUESTS]]] [NAME...]`; 1,000 messages of
//! 800 KB and 300 requests by default. A name selects a part (`long`, `streams`, `small`) or a way to the provider
//! (`direct`, `passing`, `mcp`, `stream`, a rival), and leaves out the others. `FOLDBACK_RIVALS` names proxies that the
//! same client is tested with: lines of `name: command`, where the command starts one on the port `$PORT` in front of
//! the provider `$UPSTREAM`.
//!
//! - A long conversation: from the client's first byte to the first at the provider, from the provider's answer to the
//!   first byte back, and until the answer's end. Each request says more than the one before.
//! - Many concurrent streams: until the first byte, and until all of them have ended.
//! - Many small requests: the memory held after the first thousand, and at the end.

#![expect(clippy::unwrap_used, reason = "a benchmark may fail loudly")]

mod provider;
mod proxies;

use foldback::MemoryTool;
use futures::future::join_all;
use provider::{ANSWER, Seen, provider};
use proxies::{Proxy, be_gateway};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The command's allocator; the memory held is one of the figures.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many concurrent streams.
const STREAMS: usize = 200;

/// How many small requests, in conversations of how many.
const SMALL: (usize, usize) = (30_000, 10);

/// How often a client sends a request in a long conversation, at most: a model needs longer for its answer.
const PAUSE: Duration = Duration::from_millis(100);

/// The model's text, and what it is shown then.
fn turn(n: usize, size: usize) -> [Value; 2] {
    let text = format!("Line {n} of the log says 端口 {n}. ").repeat(size / 32 + 1);
    let answer = json!([{ "type": "text", "text": ANSWER }]);
    [json!({ "role": "assistant", "content": answer }), json!({ "role": "user", "content": text })]
}

/// A request, as a client with the memory's tools sends it.
fn request(model: &str, said: &[Value]) -> Value {
    let load = MemoryTool::all().into_iter().find(|tool| tool.name == "load").unwrap();
    let load = json!({ "name": "mcp__foldback__load", "description": load.description, "input_schema": { "type": "object" } });
    let read = json!({ "name": "read", "description": "Reads a file.", "input_schema": { "type": "object" } });
    json!({ "model": model, "max_tokens": 9, "stream": true, "tools": [read, load], "messages": said })
}

struct Client {
    http: reqwest::Client,
    seen: mpsc::UnboundedReceiver<Seen>,
}

/// Sends a request of the conversation `todo`. Returns when the answer's first byte arrived, and when its last.
async fn asked(http: &reqwest::Client, url: &str, todo: &str, body: String) -> (Instant, Instant) {
    let request =
        http.post(format!("{url}/v1/messages")).header("content-type", "application/json");
    let request = request.header("x-api-key", "sk-ant-1").header("anthropic-version", "2023-06-01");
    let mut answer = request.header("x-foldback-todo", todo).body(body).send().await.unwrap();
    assert!(answer.status().is_success(), "{}: {}", answer.status(), answer.text().await.unwrap());
    answer.chunk().await.unwrap();
    let first = Instant::now();
    while answer.chunk().await.unwrap().is_some() {}
    (first, Instant::now())
}

fn told(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("  {what:<28} median {:>8.2} ms   p99 {:>8.2} ms", at(50), at(99));
}

impl Client {
    /// A long conversation that continues.
    async fn long(&mut self, proxy: &Proxy, (messages, bytes, requests): (usize, usize, usize)) {
        let mut said = vec![json!({ "role": "user", "content": "Read the logs." })];
        said.extend((0..messages / 2).flat_map(|n| turn(n, 2 * bytes / messages)));
        let (mut there, mut back, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..=requests {
            let body = request("claude-sonnet-4-5", &said).to_string();
            while self.seen.try_recv().is_ok() {}
            let begun = Instant::now();
            let (first, end) = asked(&self.http, &proxy.url, "long", body).await;
            let seen = self.seen.recv().await.unwrap();
            // The first records everything that was said before.
            if n > 0 {
                there.push(seen.arrived - begun);
                back.push(first - seen.answered);
                whole.push(end - begun);
            }
            said.extend(turn(messages + n, 2 * bytes / messages));
            tokio::time::sleep(PAUSE.saturating_sub(begun.elapsed())).await;
        }
        told("to the provider", there);
        told("the first byte back", back);
        told("to the answer's end", whole);
    }

    /// Many concurrent streams, each of a conversation of its own.
    async fn streams(&self, proxy: &Proxy) {
        let begun = Instant::now();
        let asked = (0..STREAMS).map(|n| {
            let said = [json!({ "role": "user", "content": format!("Stream {n}") })];
            let body = request("claude-slow", &said).to_string();
            async move { asked(&self.http, &proxy.url, &format!("stream-{n}"), body).await }
        });
        let ended = join_all(asked).await;
        told(
            &format!("{STREAMS} streams, the first byte"),
            ended.iter().map(|(first, _)| *first - begun).collect(),
        );
        let last = ended.iter().map(|(_, end)| *end - begun).max().unwrap_or_default();
        println!("  {:<28} {:>15.2} ms", "  all of them", last.as_secs_f64() * 1e3);
    }

    /// Many small requests, one after the other.
    async fn small(&self, proxy: &Proxy) {
        let (requests, turns) = SMALL;
        let (mut memory, mut times) = (Vec::new(), Vec::with_capacity(requests));
        let mut said = Vec::new();
        for n in 0..requests {
            if n % turns == 0 {
                said = vec![json!({ "role": "user", "content": format!("Task {n}") })];
            }
            let body = request("claude-sonnet-4-5", &said).to_string();
            let begun = Instant::now();
            let (_, end) =
                asked(&self.http, &proxy.url, &format!("small-{}", n / turns), body).await;
            times.push(end - begun);
            said.extend(turn(n, 256));
            if n == requests / 10 || (n + 1) % (requests / 4) == 0 {
                let megabytes = proxy.megabytes().unwrap_or_default();
                memory.push(format!("{megabytes:.0} MB after {}", n + 1));
            }
        }
        told(&format!("{requests} small requests"), times);
        println!("  memory: {}", memory.join(", "));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    drop(rustls::crypto::ring::default_provider().install_default());
    if let [_, flag, name, upstream] = arguments.as_slice()
        && flag == "--gateway"
    {
        return runtime.block_on(be_gateway(name, upstream));
    }
    let numbers: Vec<usize> = arguments.iter().filter_map(|one| one.parse().ok()).collect();
    let number = |n: usize, usual: usize| numbers.get(n).copied().unwrap_or(usual);
    let mut words: Vec<_> = arguments.iter().skip(1).filter(|one| !one.starts_with('-')).collect();
    words.retain(|one| one.parse::<usize>().is_err());
    let parts = ["long", "streams", "small"];
    let (parts, names): (Vec<_>, Vec<_>) =
        words.iter().map(|word| word.as_str()).partition(|word| parts.contains(word));
    let wants = |named: &[&str], name: &str| named.is_empty() || named.contains(&name);
    let size = (number(0, 1_000), number(1, 800) << 10, number(2, 300));
    runtime.block_on(async {
        let (sender, seen) = mpsc::unbounded_channel();
        let upstream = provider(sender).await;
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().unwrap();
        let mut client = Client { http, seen };
        let rivals = std::env::var("FOLDBACK_RIVALS").unwrap_or_default();
        let rivals = rivals.lines().filter_map(|line| line.split_once(':'));
        let own = ["direct", "passing", "mcp", "stream"].map(|name| (name, ""));
        for (name, command) in own.into_iter().chain(rivals) {
            let name = name.trim();
            if !wants(&names, name) {
                continue;
            }
            let Some(proxy) = Proxy::start(name, command, &upstream) else { continue };
            println!("{name}");
            if wants(&parts, "long") {
                client.long(&proxy, size).await;
            }
            if wants(&parts, "streams") {
                client.streams(&proxy).await;
            }
            if wants(&parts, "small") {
                client.small(&proxy).await;
            }
        }
    });
}
