//! A self-test of a gateway, with a provider of its own.

use crate::checkup::{Check, client};
use crate::forward::SENT;
use crate::identity::TODO;
use crate::{Gateway, GatewayConfig, GatewayError, Keeping, Ledger, RecallBy, Upstream};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response};
use foldback::{Memory, MemoryTool};
use foldback_core::TodoId;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// After this many turns something must have been left out.
const TURNS: usize = 60;

/// The path that is requested.
const PATH: &str = "/v1/messages?beta=true";

/// The todo of the long conversation.
const LONG: &str = "self-test";

/// A request as the provider got it.
struct Seen {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

type Provider = Arc<Mutex<Vec<Seen>>>;

/// Tests a gateway over an empty store that was opened for [`Keeping::view`]: whether bytes and headers pass, a long
/// conversation is folded, what left is loaded again, and the ledger's sums are the provider's.
///
/// # Errors
/// When no gateway can be started. A failed check is not an error.
pub async fn self_test(memory: Memory) -> Result<Vec<Check>, GatewayError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let behind = format!("http://{}", listener.local_addr()?);
    let provider = Provider::default();
    let router = Router::new().fallback(provide).with_state(Arc::clone(&provider));
    let providing = tokio::spawn(async { axum::serve(listener, router).await });
    let mut config = GatewayConfig::new()?;
    config.anthropic = Upstream::new(&behind)?;
    config.recall = RecallBy::Mcp;
    config.keeping = Keeping::On(memory.clone());
    let gateway = Gateway::new(config)?;
    let recorder = gateway.recorder().clone();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}{PATH}", listener.local_addr()?);
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(gateway.serve(listener, async { drop(stopped.await) }));
    let client = client().map_err(GatewayError::Client)?;
    let test = Test { client, url, provider };
    let mut checks = test.passes().await;
    let folded = test.folds().await;
    drop((test.client, stop));
    // What was said is recorded before it ends.
    let ended = served.await;
    providing.abort();
    ended.map_err(|error| GatewayError::Client(error.to_string()))??;
    let recall = folded.as_ref().ok().map(|(_, body)| recalled(&memory, body));
    let trouble = recorder.trouble().map(|trouble| format!(": {trouble}")).unwrap_or_default();
    let fold = folded.map(|(what, _)| what).map_err(|why| why + &trouble);
    checks.push(Check::new("fold", fold));
    checks.extend(recall.map(|recall| Check::new("recall", recall)));
    checks.push(Check::new("ledger", summed(recorder.ledger(), &test.provider.lock())));
    Ok(checks)
}

struct Test {
    client: reqwest::Client,
    url: String,
    provider: Provider,
}

impl Test {
    /// Requests an answer. Returns its bytes, and whether something was left out.
    async fn ask(&self, todo: &str, body: String) -> Result<(Bytes, bool), String> {
        let request = self.client.post(&self.url).body(body).header(TODO, todo);
        let request = request.header("anthropic-version", "2023-06-01").header("x-self-test", "七");
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let is_folded = answer.headers().contains_key(SENT);
        let bytes = answer.bytes().await.map_err(|error| error.to_string())?;
        Ok((bytes, is_folded))
    }

    /// Tests whether bytes and headers pass unchanged.
    async fn passes(&self) -> Vec<Check> {
        // Spaces, escapes, the order of keys and unknown keys belong to the client.
        let body = "{ \"messages\" : [{\"role\":\"user\",\"content\":\"\\u4e03 七 \\/\"}],\n\"max_tokens\":1e2,\"x\":[null],\"model\":\"claude-x\"}";
        let answer = self.ask("self-test-bytes", body.to_owned()).await.map(|(answer, _)| answer);
        let all = self.provider.lock();
        let seen = all.last();
        let arrived = seen.is_some_and(|seen| seen.body == body.as_bytes() && seen.path == PATH);
        let bytes = match answer {
            Ok(answer) if arrived && answer == answer_to(&Bytes::from(body)) => {
                Ok("a request and its answer passed byte for byte".to_owned())
            }
            Ok(_) => Err("a request or its answer was changed on its way".to_owned()),
            Err(error) => Err(format!("a request failed: {error}")),
        };
        let header = |name: &str| seen.and_then(|seen| seen.headers.get(name));
        let is_kept = header("x-self-test").map(HeaderValue::as_bytes) == Some("七".as_bytes());
        let headers = match is_kept && header(TODO).is_none() {
            true => Ok("headers passed, except for the gateway's own".to_owned()),
            false => Err("a header was lost, or one of the gateway's own passed".to_owned()),
        };
        vec![Check::new("bytes", bytes), Check::new("headers", headers)]
    }

    /// Continues a conversation until something is left out of it. Returns what the provider received then.
    async fn folds(&self) -> Result<(String, String), String> {
        let load = MemoryTool::all().into_iter().find(|tool| tool.name == "load");
        let load = load.ok_or("the memory has no tool that loads")?;
        let tools = json!([{ "name": load.name, "description": load.description, "input_schema": { "type": "object" }, "cache_control": { "type": "ephemeral" } }]);
        let mut messages = vec![json!({ "role": "user", "content": "Read the files." })];
        for n in 0..TURNS {
            let (id, path) = (format!("call-{n}"), format!("src/f{n}.rs"));
            let call =
                json!({ "type": "tool_use", "id": id, "name": "read", "input": { "path": path } });
            let result = json!({ "type": "tool_result", "tool_use_id": id, "content": file(n) });
            messages.push(json!({ "role": "assistant", "content": [call] }));
            messages.push(json!({ "role": "user", "content": [result] }));
            let whole = json!({ "model": "claude-x", "max_tokens": 9, "tools": tools, "messages": messages });
            let whole = whole.to_string();
            if !self.ask(LONG, whole.clone()).await?.1 {
                continue;
            }
            let seen = self.provider.lock();
            let sent = seen.last().map_or(&[][..], |seen| &seen.body);
            let sent = String::from_utf8_lossy(sent).into_owned();
            return match sent.contains(&json!(file(0)).to_string()) {
                true => Err("what should have been left out was sent".to_owned()),
                false => Ok((format!("{} of {} bytes were sent", sent.len(), whole.len()), sent)),
            };
        }
        Err(format!("nothing was left out of a conversation of {TURNS} turns"))
    }
}

/// Loads what was left out by a reference that the request holds.
fn recalled(memory: &Memory, body: &str) -> Result<String, String> {
    let todo = TodoId::from_foreign(LONG);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '/');
    let parts = body.split("store://").skip(1);
    let named: BTreeSet<_> = parts.filter_map(|part| part.split(|c| !is_part(c)).next()).collect();
    for part in &named {
        let arguments = json!({ "ref": format!("store://{part}") }).to_string();
        let answer = memory.call_tool(&todo, "load", &arguments);
        let answer = answer.map_err(|error| error.to_string())?;
        if file(0).lines().all(|line| answer.text.contains(line)) {
            return Ok(format!("store://{part} brought back what was left out"));
        }
    }
    Err(format!("none of {} references brought back what was left out", named.len()))
}

/// Tests whether the ledger holds what the provider billed.
fn summed(ledger: &Ledger, seen: &[Seen]) -> Result<String, String> {
    let (sums, billed) = (ledger.sums(), seen.iter().map(|seen| tokens(&seen.body)).sum::<u64>());
    let (sent, requests) = (sums.sent.tokens.total(), seen.len() as u64);
    let is_same = (sums.requests, sent) == (requests, billed);
    let what = format!("the ledger holds {sent} tokens, and the provider billed {billed}");
    if is_same { Ok(what) } else { Err(what) }
}

/// Returns what a provider with four bytes for a token bills.
fn tokens(body: &Bytes) -> u64 {
    body.len() as u64 / 4
}

fn answer_to(body: &Bytes) -> Bytes {
    let usage = json!({ "input_tokens": tokens(body), "output_tokens": 1 });
    let content = json!([{ "type": "text", "text": "Go on. \u{2713}" }]);
    json!({ "type": "message", "role": "assistant", "content": content, "usage": usage })
        .to_string()
        .into()
}

fn file(n: usize) -> String {
    (0..80).map(|m| format!("{n}.{m}: 端口 {} belongs to s{}\n", n * 31 + m, m % 7)).collect()
}

async fn provide(State(provider): State<Provider>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let path = head.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let answer = Response::new(Body::from(answer_to(&body)));
    provider.lock().push(Seen { path, headers: head.headers, body });
    answer
}
