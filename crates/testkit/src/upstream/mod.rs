//! A scripted model provider on a local port: it speaks Anthropic's Messages and OpenAI's
//! chat-completions and Responses, records every request down to the bytes, and refuses what the real
//! ones refuse.

#![expect(clippy::expect_used, reason = "tests may fail loudly")]

mod anthropic;
mod openai;
mod responses;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use axum::serve::ListenerExt as _;
pub use foldback_core::CacheTerms;
use foldback_core::Timestamp;
pub use foldback_providers::{Billed, ProviderCache};
use futures::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The method: `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl Seen {
    /// A mark that makes the ids of its answer unique: clients join messages with the same id.
    fn mark(&self) -> usize {
        self.body.len()
    }

    /// Returns the body as JSON; null if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the first header with a name, as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}

/// The model's answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// Its thinking before it speaks, if its API shows that.
    pub thought: String,
    /// Its words.
    pub text: String,
    /// Its calls: id, tool, arguments; for a tool of the Responses API that takes a text, that text.
    pub calls: Vec<(String, String, Value)>,
}

impl Said {
    /// Returns an answer of words alone.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Returns the same after a thought.
    #[must_use]
    pub fn thinking(self, thought: &str) -> Self {
        Self { thought: thought.to_owned(), ..self }
    }

    /// Returns the same with a call.
    #[must_use]
    pub fn call(mut self, id: &str, tool: &str, arguments: Value) -> Self {
        self.calls.push((id.to_owned(), tool.to_owned(), arguments));
        self
    }
}

/// An answer down to the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// The status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body, piece by piece.
    pub pieces: Vec<Vec<u8>>,
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// An answer in the format of the requested API, streamed if the request asks for that.
    Said(Said),
    /// These bytes.
    Raw(Raw),
}

type Script = Box<dyn Fn(&Seen) -> Answer + Send + Sync>;

/// Determines which tokens of a request are read from the cache, written to it, and neither.
type Bill<'b> = &'b dyn Fn(&Value) -> (u64, u64, u64);

struct Shared {
    script: Script,
    seen: Mutex<Vec<Seen>>,
    cache: Mutex<ProviderCache>,
    /// The time in milliseconds.
    now: AtomicI64,
}

/// A running provider. It stops when it is dropped.
pub struct Upstream {
    /// Its address, without a path.
    pub url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Upstream {
    /// Starts answering by a script. Must be called within a runtime.
    pub async fn start(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::with_cache(script, CacheTerms::default()).await
    }

    /// Does the same with a cache on these terms.
    pub async fn with_cache(
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
        terms: CacheTerms,
    ) -> Self {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            seen: Mutex::default(),
            cache: Mutex::new(ProviderCache::new(terms)),
            now: AtomicI64::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let listener = listener.tap_io(|client| drop(client.set_nodelay(true)));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async {
            axum::serve(listener, router).await.expect("a server that goes on");
        });
        Self { url, shared, serving }
    }

    /// Lets this many seconds pass.
    pub fn wait(&self, seconds: u32) {
        self.shared.now.fetch_add(1_000 * i64::from(seconds), Ordering::Relaxed);
    }

    /// Returns what was billed so far.
    #[must_use]
    pub fn billed(&self) -> Billed {
        self.shared.cache.lock().billed()
    }

    /// Returns every request that arrived, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().clone()
    }
}

impl Upstream {
    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.shared.seen.lock().clear();
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let named = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    let seen = Seen {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers: head.headers.iter().map(named).collect(),
        body: body.to_vec(),
    };
    shared.seen.lock().push(seen.clone());
    let bill = |body: &Value| {
        let now = Timestamp(shared.now.load(Ordering::Relaxed));
        shared.cache.lock().take(body, now, &mut tokens)
    };
    let raw = match (shared.script)(&seen) {
        Answer::Raw(raw) => raw,
        Answer::Said(_) if seen.path.starts_with("/v1/messages/count_tokens") => {
            count(&seen.json())
        }
        Answer::Said(said) if seen.path.starts_with("/v1/messages") => {
            anthropic::raw(&seen, &said, &bill)
        }
        Answer::Said(said) if seen.path.starts_with("/v1/responses") => {
            responses::raw(&seen, &said, &bill)
        }
        Answer::Said(said) => openai::raw(&seen, &said, &bill),
    };
    let mut response =
        Response::builder().status(StatusCode::from_u16(raw.status).unwrap_or_default());
    for (name, value) in &raw.headers {
        response = response.header(name, value);
    }
    let pieces = raw.pieces.into_iter().map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
    response.body(Body::from_stream(stream::iter(pieces))).expect("headers of a script")
}

fn tokens(text: &str) -> u64 {
    text.len() as u64 / 4
}

/// Answers a request to count tokens, as Anthropic's API does.
fn count(body: &Value) -> Raw {
    if let Some(extra) =
        ["max_tokens", "stream", "metadata"].iter().find(|key| body.get(*key).is_some())
    {
        let message = format!("{extra}: Extra inputs are not permitted");
        let error = json!({ "type": "invalid_request_error", "message": message });
        return whole(400, &json!({ "type": "error", "error": error }));
    }
    let (read, written, plain) = ProviderCache::default().take(body, Timestamp(0), &mut tokens);
    whole(200, &json!({ "input_tokens": read + written + plain }))
}

/// Refuses tools with the same name, and a choice of tools if there are none.
fn check_tools(body: &Value, tools: &Value) -> Result<(), String> {
    let name = |tool: &Value| tool.pointer("/function/name").or(tool.get("name")).cloned();
    let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<_> = tools.iter().filter_map(name).map(|name| name.to_string()).collect();
    if names.is_empty() && body.get("tool_choice").is_some() {
        return Err("tool_choice may only be specified while providing tools".to_owned());
    }
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("tools: Tool names must be unique: {}", pair[0])),
        None => Ok(()),
    }
}

/// Returns a whole answer.
fn whole(status: u16, body: &Value) -> Raw {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Raw { status, headers, pieces: vec![body.to_string().into_bytes()] }
}

/// Returns a stream of events.
fn events(pieces: Vec<String>) -> Raw {
    let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    Raw { status: 200, headers, pieces: pieces.into_iter().map(String::into_bytes).collect() }
}
