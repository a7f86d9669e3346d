//! GW15: the ledger says what the provider billed, and what it would have billed for the whole.

use crate::world::World;
use foldback::MemoryTool;
use foldback_core::Prices;
use foldback_gateway::{Keeping, Ledger, Sums, Upstream as Address};
use foldback_testkit::upstream::{Answer, Billed, CacheTerms, Said, Seen, Upstream};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::Duration;

/// An agent that reads one file after the other.
struct Agent {
    path: &'static str,
    is_streamed: bool,
    /// Whether it has a tool that loads what was left out.
    loads: bool,
}

const PATHS: [&str; 3] = ["/v1/messages", "/v1/chat/completions", "/v1/responses"];

/// The model's text in a turn.
fn said(n: usize) -> (String, String, Value) {
    (format!("I read file {n}."), format!("c{n}"), json!({ "path": format!("src/f{n}.rs") }))
}

fn reading(seen: &Seen) -> Answer {
    let body = String::from_utf8(seen.body.clone()).unwrap();
    let turn = body.rsplit("turn-").next().and_then(|rest| rest.split('.').next());
    let (text, id, input) = said(turn.and_then(|n| n.parse().ok()).unwrap());
    Answer::Said(Said::text(&text).call(&id, "read", input))
}

/// The content of the file `n`.
fn file(n: usize) -> String {
    let line = |m: usize| format!("{n}.{m}: 端口 {} belongs to service s{}\n", n * 31 + m, m % 7);
    (0..80).map(line).collect::<String>() + &format!("turn-{}.", n + 1)
}

impl Agent {
    fn is_anthropic(&self) -> bool {
        self.path == PATHS[0]
    }

    fn tools(&self) -> Vec<Value> {
        let load = MemoryTool::all().into_iter().find(|tool| tool.name == "load").unwrap();
        let schema: Value = serde_json::from_str(&load.parameters).unwrap();
        let mut tools = vec![("read", "Reads a file.".to_owned(), json!({ "type": "object" }))];
        if self.loads {
            tools.push(("mcp__foldback__load", load.description.to_owned(), schema));
        }
        let tool = |(name, description, schema): (&str, String, Value)| match self.path {
            "/v1/messages" => {
                json!({ "name": name, "description": description, "input_schema": schema })
            }
            "/v1/responses" => {
                json!({ "type": "function", "name": name, "description": description, "parameters": schema })
            }
            _ => {
                json!({ "type": "function", "function": { "name": name, "description": description, "parameters": schema } })
            }
        };
        tools.into_iter().map(tool).collect()
    }

    /// The call and its result that a turn adds.
    fn turn(&self, n: usize) -> Vec<Value> {
        let (text, id, input) = said(n);
        match self.path {
            "/v1/messages" => vec![
                json!({ "role": "assistant", "content": [{ "type": "text", "text": text }, { "type": "tool_use", "id": id, "name": "read", "input": input }] }),
                json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": file(n) }] }),
            ],
            "/v1/responses" => vec![
                json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] }),
                json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": input.to_string() }),
                json!({ "type": "function_call_output", "call_id": id, "output": file(n) }),
            ],
            _ => vec![
                json!({ "role": "assistant", "content": text, "tool_calls": [{ "id": id, "type": "function", "function": { "name": "read", "arguments": input.to_string() } }] }),
                json!({ "role": "tool", "tool_call_id": id, "content": file(n) }),
            ],
        }
    }

    /// The request after this many turns.
    fn body(&self, turns: usize) -> Value {
        let rules = "You read files. ".repeat(300);
        let mut messages = vec![json!({ "role": "user", "content": "turn-0. Go on." })];
        messages.extend((0..turns).flat_map(|n| self.turn(n)));
        let mut body =
            json!({ "model": "gpt-5", "stream": self.is_streamed, "tools": self.tools() });
        if self.is_anthropic() {
            body["model"] = json!("claude-x");
            body["max_tokens"] = json!(100);
            body["system"] = json!(rules);
            let last = messages.last_mut().unwrap();
            if let Some(blocks) = last["content"].as_array_mut() {
                blocks[0]["cache_control"] = json!({ "type": "ephemeral" });
            }
        } else if self.path == PATHS[1] {
            messages.insert(0, json!({ "role": "system", "content": rules }));
            body["stream_options"] = json!({ "include_usage": true });
        } else {
            body["instructions"] = json!(rules);
        }
        let key = if self.path == PATHS[2] { "input" } else { "messages" };
        body[key] = json!(messages);
        body
    }

    async fn ask(&self, client: &reqwest::Client, url: &str, turns: usize) {
        self.send(client, url, &self.body(turns)).await;
    }

    async fn send(&self, client: &reqwest::Client, url: &str, body: &Value) {
        let request = client.post(format!("{url}{}", self.path)).body(body.to_string());
        let answer = request.header("anthropic-version", "2023-06-01").send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
    }

    /// Plays this many turns through the gateway and without it; `pauses` sets the seconds before each.
    async fn played(&self, turns: usize, pause: impl Fn(usize) -> u32) -> (Sums, Billed, Billed) {
        let write = if self.is_anthropic() { 1.25 } else { 1.0 };
        let life = Duration::from_secs(if self.is_anthropic() { 300 } else { 600 });
        let usual = CacheTerms::default();
        let terms = CacheTerms { prices: Prices { write, ..usual.prices }, life, ..usual };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(Ledger::FILE);
        let direct = Upstream::with_cache(reading, terms).await;
        let upstream = Upstream::with_cache(reading, terms).await;
        let world = World::before(upstream, |config| config.ledger = Some(path.clone())).await;
        for n in 0..turns {
            self.ask(&world.client, &direct.url, n).await;
            self.ask(&world.client, &world.url, n).await;
            for upstream in [&direct, &world.upstream] {
                upstream.wait(pause(n));
            }
            world.wait(pause(n));
        }
        let (billed, ledger) = (world.upstream.billed(), world.ledger.clone());
        drop(world.end().await);
        let mut sums = Sums::default();
        let entries: Vec<_> = Ledger::read(&path).unwrap().map(Result::unwrap).collect();
        entries.iter().for_each(|entry| sums.add(entry));
        assert_eq!(sums, ledger.sums());
        let first = entries.first().unwrap();
        assert!(
            entries.iter().all(|entry| entry.session == first.session && entry.class == "main")
        );
        (sums, billed, direct.billed())
    }
}

/// Asserts that the ledger's sums are the provider's.
#[track_caller]
fn assert_billed(sums: &Sums, billed: &Billed) {
    let tokens = sums.sent.tokens;
    assert_eq!((sums.requests, sums.estimated), (billed.requests, 0));
    assert_eq!(sums.output, 7 * billed.requests);
    assert_eq!(
        (tokens.read, tokens.total()),
        (billed.read, billed.read + billed.written + billed.plain)
    );
    assert!((sums.sent.cost / billed.cost - 1.0).abs() < 1e-9, "{sums:?} {billed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gw15_sums_are_what_the_provider_billed() {
    for path in PATHS {
        for is_streamed in [false, true] {
            let agent = Agent { path, is_streamed, loads: false };
            let (sums, billed, direct) = agent.played(12, |n| if n == 5 { 700 } else { 10 }).await;
            assert_billed(&sums, &billed);
            assert_eq!((sums.folded, billed), (0, direct));
            assert_eq!(sums.sent, sums.whole, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gw15_the_whole_is_what_it_costs_without_a_gateway() {
    for path in PATHS {
        for (is_streamed, cold) in [(false, 0), (true, 700)] {
            let agent = Agent { path, is_streamed, loads: true };
            let pause = |n| if n % 20 == 19 { cold } else { 10 };
            let (sums, billed, direct) = agent.played(70, pause).await;
            assert_billed(&sums, &billed);
            assert!(sums.folded > 10, "{sums:?}");
            let tokens = direct.read + direct.written + direct.plain;
            let (tokens, cost) =
                (sums.whole.tokens.total() as f64 / tokens as f64, sums.whole.cost / direct.cost);
            println!("{path}: tokens {tokens:.4}, cost {cost:.4}, {sums:?} {direct:?}");
            assert!(
                (tokens - 1.0).abs() < 0.02 && (cost - 1.0).abs() < 0.02,
                "{sums:?} {direct:?}"
            );
        }
    }
}

/// A provider that never reports a cached token is taken to cache nothing: the whole costs the plain price.
#[tokio::test(flavor = "multi_thread")]
async fn gw15_the_whole_is_plain_where_nothing_is_cached() {
    for path in &PATHS[1..] {
        let agent = Agent { path, is_streamed: false, loads: true };
        let terms = CacheTerms { least: u64::MAX, ..CacheTerms::default() };
        let (upstream, direct) = tokio::join!(
            Upstream::with_cache(reading, terms),
            Upstream::with_cache(reading, terms)
        );
        let world = World::before(upstream, |_| {}).await;
        for n in 0..40 {
            agent.ask(&world.client, &direct.url, n).await;
            agent.ask(&world.client, &world.url, n).await;
            world.wait(10);
        }
        let (direct, ledger) = (direct.billed(), world.ledger.clone());
        drop(world.end().await);
        let sums = ledger.sums();
        assert_eq!((direct.read, sums.sent.tokens.read), (0, 0), "{path}: {direct:?}");
        let ratio = sums.whole.cost / (direct.plain + direct.written) as f64;
        assert!((ratio - 1.0).abs() < 0.02 && sums.folded > 10, "{path}: {ratio}, {sums:?}");
        assert!(sums.cost() < 0.9 * sums.whole.cost, "{path}: {sums:?}");
    }
}

/// A restarted gateway does not count as new what its provider still holds.
#[tokio::test(flavor = "multi_thread")]
async fn gw15_the_whole_is_read_after_a_restart_too() {
    let agent = Agent { path: PATHS[0], is_streamed: false, loads: true };
    let upstream = Upstream::with_cache(reading, CacheTerms::default()).await;
    let direct = Upstream::with_cache(reading, CacheTerms::default()).await;
    let behind = Address::new(&upstream.url).unwrap();
    let (mut memory, mut whole) = (None::<foldback::Memory>, 0.0);
    for turns in [0..50, 50..55, 55..60] {
        let world = World::with(reading, |config| {
            config.anthropic = behind.clone();
            config.keeping = memory.clone().map_or_else(|| config.keeping.clone(), Keeping::On);
        });
        let world = world.await;
        for n in turns {
            agent.ask(&world.client, &direct.url, n).await;
            agent.ask(&world.client, &world.url, n).await;
        }
        let ledger = world.ledger.clone();
        let (first, _) = world.end().await;
        memory.get_or_insert(first);
        whole += ledger.sums().whole.cost;
    }
    let ratio = whole / direct.billed().cost;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    assert!(upstream.billed().cost < direct.billed().cost);
}

/// A branch is measured by what the provider would hold of it, not of the branch that was used last.
#[tokio::test(flavor = "multi_thread")]
async fn gw15_the_whole_of_each_branch_is_its_own() {
    let agent = Agent { path: PATHS[0], is_streamed: false, loads: true };
    let direct = Upstream::with_cache(reading, CacheTerms::default()).await;
    let world = World::new(reading).await;
    for n in 0..60 {
        let mut bodies = vec![agent.body(n)];
        if n % 5 == 4 {
            let mut fork = agent.body(n - 3);
            let last = fork["messages"].as_array_mut().unwrap().last_mut().unwrap();
            last["content"][0]["content"] = json!(file(n - 4).replace("belongs", "belonged"));
            bodies.push(fork);
        }
        for body in &bodies {
            agent.send(&world.client, &direct.url, body).await;
            agent.send(&world.client, &world.url, body).await;
        }
    }
    let (billed, ledger) = (world.upstream.billed(), world.ledger.clone());
    drop(world.end().await);
    let sums = ledger.sums();
    assert_billed(&sums, &billed);
    assert!(sums.folded > 10, "{sums:?}");
    let ratio = sums.whole.cost / direct.billed().cost;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

/// What was left out is counted by the provider, too, if that is enabled.
#[tokio::test(flavor = "multi_thread")]
async fn gw15_a_sample_is_counted_whole_by_the_provider() {
    let agent = Agent { path: PATHS[0], is_streamed: true, loads: true };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Ledger::FILE);
    let world = World::with(reading, |config| {
        (config.check_every, config.ledger) = (4, Some(path.clone()));
    });
    let world = world.await;
    for n in 0..60 {
        agent.ask(&world.client, &world.url, n).await;
    }
    let mut sums = world.ledger.sums();
    // Counts arrive later.
    for _ in 0..500 {
        if sums.requests == 60 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        sums = world.ledger.sums();
    }
    let checked = sums.checked;
    assert!(checked.requests > 2 && checked.requests == sums.folded / 4, "{sums:?}");
    let ratio = checked.whole as f64 / checked.counted as f64;
    assert!((ratio - 1.0).abs() < 0.02, "{checked:?}");
    let (_, seen) = world.end().await;
    let counts = seen.iter().filter(|seen| seen.path == "/v1/messages/count_tokens");
    // The gateway reads no packed answer.
    let unpacked = counts.filter(|seen| seen.header("accept-encoding") == Some("identity"));
    assert_eq!(unpacked.count() as u64, checked.requests);
    let mut read = Sums::default();
    Ledger::read(&path).unwrap().for_each(|entry| read.add(&entry.unwrap()));
    assert_eq!((read.requests, read.checked), (60, checked));
}

/// What Prometheus reads once this many requests are counted: the recorder counts later.
async fn metrics(world: &World, requests: u64) -> String {
    let url = format!("{}/foldback/metrics", world.url);
    let mut metrics = String::new();
    for _ in 0..500 {
        metrics = world.client.get(&url).send().await.unwrap().text().await.unwrap();
        if metrics.contains(&format!("foldback_requests_total {requests}\n")) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    metrics
}

/// A provider that reports no tokens, one that refuses, and what Prometheus reads.
#[tokio::test(flavor = "multi_thread")]
async fn gw15_estimates_and_refusals_are_counted_apart() {
    let world = World::new(reading).await;
    let agent = Agent { path: PATHS[1], is_streamed: true, loads: false };
    let mut body = agent.body(1);
    body["stream_options"] = Value::Null;
    let bytes = body.to_string().len() as u64;
    drop(world.chat(&body).send().await.unwrap().bytes().await.unwrap());
    body["messages"][1]["role"] = json!("tool");
    assert_eq!(world.chat(&body).send().await.unwrap().status(), 400);
    agent.ask(&world.client, &world.url, 1).await;
    let metrics = metrics(&world, 2).await;
    let (sums, billed) = (world.ledger.sums(), world.upstream.billed());
    assert_eq!((sums.requests, sums.estimated, world.ledger.refusals()), (2, 1, 1));
    assert!(sums.sent.tokens.total() >= bytes / 4 + billed.plain / 2, "{sums:?}");
    for line in [
        "# TYPE foldback_requests_total counter",
        "foldback_requests_total 2",
        "foldback_estimated_requests_total 1",
        "foldback_refusals_total 1",
        "foldback_tokens_total{kind=\"output\"} 7",
        &format!("foldback_tokens_total{{kind=\"plain\"}} {}", sums.sent.tokens.plain),
    ] {
        assert!(metrics.lines().any(|own| own == line), "{line} in {metrics}");
    }
}

/// GW21: what OpenTelemetry's conventions say of a client of models: how long it took, and how many tokens, by the
/// provider's count. A request that was refused is no operation.
#[tokio::test(flavor = "multi_thread")]
async fn gw21_operations_are_counted_by_the_conventions() {
    let world = World::new(reading).await;
    for (path, n) in [(PATHS[0], 1), (PATHS[1], 1), (PATHS[1], 2)] {
        let agent = Agent { path, is_streamed: true, loads: false };
        agent.ask(&world.client, &world.url, n).await;
    }
    let mut refused = Agent { path: PATHS[1], is_streamed: true, loads: false }.body(1);
    refused["model"] = json!("other");
    refused["messages"][1]["role"] = json!("tool");
    assert_eq!(world.chat(&refused).send().await.unwrap().status(), 400);
    let metrics = metrics(&world, 3).await;
    let value = |name: &str, labels: &[&str]| {
        let line = metrics
            .lines()
            .find(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)));
        let line = line.unwrap_or_else(|| panic!("{name} {labels:?} in {metrics}"));
        line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
    };
    let (duration, usage) =
        ("gen_ai_client_operation_duration_seconds", "gen_ai_client_token_usage");
    for (provider, count) in [("anthropic", 1.0), ("openai", 2.0)] {
        let provider = format!("gen_ai_provider_name=\"{provider}\"");
        assert_eq!(value(&format!("{duration}_count"), &[&provider]), count);
        assert!(value(&format!("{duration}_sum"), &[&provider]) > 0.0);
        let last = ["le=\"+Inf\"", &provider];
        assert_eq!(value(&format!("{duration}_bucket"), &last), count);
    }
    let billed = world.upstream.billed();
    let sum = |kind: &str| -> f64 {
        let kind = format!("gen_ai_token_type=\"{kind}\"");
        let of = |provider: &str| value(&format!("{usage}_sum"), &[&kind, provider]);
        of("\"anthropic\"") + of("\"openai\"")
    };
    assert_eq!(sum("input"), (billed.read + billed.written + billed.plain) as f64);
    assert!(sum("output") > 0.0);
    assert!(!metrics.contains("gen_ai_request_model=\"other\""), "{metrics}");
}

/// An unfinished line of another process hides no other, the file is its owner's, and a file that cannot be written
/// to stops no request.
#[tokio::test(flavor = "multi_thread")]
async fn gw15_a_torn_line_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Ledger::FILE);
    let agent = Agent { path: PATHS[0], is_streamed: false, loads: false };
    for n in 0..3 {
        let world = World::with(reading, |config| config.ledger = Some(path.clone())).await;
        agent.ask(&world.client, &world.url, n).await;
        drop(world.end().await);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"at\":17638560").unwrap();
    }
    assert_eq!(Ledger::read(&path).unwrap().map(Result::unwrap).count(), 3);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let missing = folder.path().join("missing").join(Ledger::FILE);
    let world = World::with(reading, |config| config.ledger = Some(missing)).await;
    agent.ask(&world.client, &world.url, 0).await;
    agent.ask(&world.client, &world.url, 1).await;
    let (log, ledger) = (world.log.clone(), world.ledger.clone());
    drop(world.end().await);
    assert_eq!((ledger.sums().requests, log.lock().len()), (2, 1), "{log:?}");
}
