//! A gateway, its provider, and a store.

use foldback::kv::Kv;
use foldback::{Memory, MemoryTool, Options};
use foldback_core::Timestamp;
use foldback_gateway::{
    Branches, Gateway, GatewayConfig, Keeping, Ledger, RecallBy, Recorder, SessionTodos,
    Upstream as Address,
};
use foldback_testkit::upstream::{Answer, CacheTerms, Said, Seen, Upstream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct World {
    pub(crate) upstream: Upstream,
    pub(crate) url: String,
    pub(crate) memory: Memory,
    pub(crate) client: reqwest::Client,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    pub(crate) ledger: Ledger,
    /// What a server of tools beside the gateway knows and reports.
    pub(crate) todos: Arc<SessionTodos>,
    /// The time in milliseconds.
    now: Arc<AtomicI64>,
    config: GatewayConfig,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

/// A model that counts its answers.
pub(crate) fn counting() -> impl Fn(&Seen) -> Answer + Send + Sync {
    |seen| {
        let count = seen.json()["messages"].as_array().map_or(0, Vec::len);
        Answer::Said(Said::text(&format!("answer to {count}")))
    }
}

pub(crate) fn client() -> reqwest::Client {
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy().build().unwrap()
}

impl World {
    pub(crate) async fn new(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(script, |_| {}).await
    }

    pub(crate) async fn with(
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        Self::before(Upstream::with_cache(script, CacheTerms::default()).await, change).await
    }

    /// In front of this provider.
    pub(crate) async fn before(
        upstream: Upstream,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let now = Arc::new(AtomicI64::new(1_763_856_000_000));
        let memory = Memory::in_memory(options_at(&now)).unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut config = GatewayConfig::new().unwrap();
        config.anthropic = Address::new(&upstream.url).unwrap();
        config.openai = Address::new(&format!("{}/v1", upstream.url)).unwrap();
        config.keeping = Keeping::On(memory.clone());
        config.recall = RecallBy::Mcp;
        let lines = Arc::clone(&log);
        config.log = Arc::new(move |line| lines.lock().push(line.to_owned()));
        change(&mut config);
        let (url, recorder, stop, served) = served(config.clone()).await;
        let (client, ledger, todos) =
            (client(), recorder.ledger().clone(), recorder.session_todos());
        Self { upstream, url, memory, client, log, ledger, todos, now, config, stop, served }
    }

    /// Ends the gateway, and starts it again on the same store.
    pub(crate) async fn restart(&mut self) {
        let (url, recorder, stop, served) = served(self.config.clone()).await;
        (self.ledger, self.todos) = (recorder.ledger().clone(), recorder.session_todos());
        drop(std::mem::replace(&mut self.stop, stop));
        self.client = client();
        std::mem::replace(&mut self.served, served).await.unwrap();
        self.url = url;
    }

    /// As [`restart`](Self::restart), on another view of the store.
    pub(crate) async fn restart_on(&mut self, kv: Arc<dyn Kv>) {
        self.memory = Memory::open_on(kv, None, options_at(&self.now)).unwrap();
        self.config.keeping = Keeping::On(self.memory.clone());
        self.restart().await;
    }

    /// Sends a body to an API, and returns its answer.
    pub(crate) async fn ask(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.asked(path, body).await;
        let sent = self.upstream.seen().pop().unwrap();
        assert_eq!(status, 200, "{answer}\n{}", String::from_utf8_lossy(&sent.body));
        answer
    }

    /// As [`ask`](Self::ask), with the status of the answer.
    pub(crate) async fn asked(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.client.post(format!("{}/v1/{path}", self.url));
        let request = request.header("anthropic-version", "1").header("session-id", "s");
        let answer = request.body(body.to_string()).send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap())
    }

    /// Lets this many seconds pass.
    pub(crate) fn wait(&self, seconds: u32) {
        self.now.fetch_add(1_000 * i64::from(seconds), Ordering::Relaxed);
    }

    /// Sends a body, as a client of Anthropic's does.
    pub(crate) fn messages(&self, body: &Value) -> reqwest::RequestBuilder {
        self.client
            .post(format!("{}/v1/messages", self.url))
            .header("anthropic-version", "2023-06-01")
            .header("x-api-key", "sk-ant-canary")
            .header("user-agent", "claude-cli/2.1 (external)")
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// Sends a body, as a client of OpenAI's does.
    pub(crate) fn chat(&self, body: &Value) -> reqwest::RequestBuilder {
        self.client
            .post(format!("{}/v1/chat/completions", self.url))
            .header("authorization", "Bearer sk-canary")
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// Ends the gateway, which records everything before that.
    pub(crate) async fn end(self) -> (Memory, Vec<Seen>) {
        drop((self.client, self.stop));
        self.served.await.unwrap();
        (self.memory, self.upstream.seen())
    }
}

fn options_at(now: &Arc<AtomicI64>) -> Options {
    let clock = Arc::clone(now);
    let options = Options::default().with_view(Keeping::view());
    options.with_clock(move || Timestamp(clock.load(Ordering::Relaxed)))
}

/// Serves a gateway: its address, its recorder, what ends it, and what waits for that.
async fn served(config: GatewayConfig) -> (String, Recorder, oneshot::Sender<()>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let gateway = Gateway::new(config).unwrap();
    let recorder = gateway.recorder().clone();
    let served = tokio::spawn(async {
        let stopped = async { drop(stopped.await) };
        gateway.serve(listener, stopped).await.unwrap();
    });
    (url, recorder, stop, served)
}

/// The memory's `load`, as a client of its server declares it.
pub(crate) fn load_tool() -> Value {
    let load = MemoryTool::all().into_iter().find(|tool| tool.name == "load").unwrap();
    let schema: Value = serde_json::from_str(&load.parameters).unwrap();
    json!({ "name": "mcp__foldback__load", "description": load.description, "input_schema": schema })
}

/// A body of Anthropic's API around these messages.
pub(crate) fn body(messages: Value) -> Value {
    json!({ "model": "claude-x", "max_tokens": 100, "system": "Be brief.", "messages": messages })
}

/// The names of all todos, sorted.
pub(crate) fn todos(memory: &Memory) -> Vec<foldback_core::TodoId> {
    let mut todos = memory.todos(None, 10_000).unwrap();
    todos.sort();
    todos
}

/// Every branch of a todo, as the messages that the client sent.
pub(crate) fn exports(memory: &Memory, todo: &foldback_core::TodoId) -> Vec<Vec<String>> {
    let sent = memory.sent(todo, 0, usize::MAX).unwrap();
    let branches = Branches::of(&sent);
    let text = |n: &u32| sent[*n as usize].json.clone();
    branches.tips().into_iter().map(|tip| branches.branch(tip).iter().map(text).collect()).collect()
}
