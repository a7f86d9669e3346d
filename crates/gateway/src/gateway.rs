//! The server that clients call.

use crate::config::Reach;
use crate::forward::forward;
use crate::guard::{Guard, TOKEN};
use crate::identity::TODO;
use crate::in_progress::InProgress;
use crate::metrics::metrics;
use crate::refusal::{Refused, refusal};
use crate::tenants::Rooms;
use crate::{Api, Finisher, GatewayConfig, GatewayError, Keeping, Ledger, Recorder, Traffic};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use axum::serve::ListenerExt as _;
use std::future::{Future, IntoFuture as _};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How long a provider may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(30);

/// A gateway between clients and their providers. It holds no key: each client sends its own.
pub struct Gateway {
    pub(crate) config: GatewayConfig,
    pub(crate) recorder: Recorder,
    /// `None` if no exchanges are to be kept.
    pub(crate) traffic: Option<Traffic>,
    /// From how many requests something was left out.
    pub(crate) folded: AtomicU64,
    pub(crate) begun: Instant,
    /// Those of the tenants count in the gateway that has the listener.
    pub(crate) in_progress: InProgress,
    /// `None` if it has no tenants.
    pub(crate) rooms: Option<Arc<Rooms>>,
    /// For remote providers, through the proxy that the environment names.
    far: reqwest::Client,
    /// For servers on this machine.
    near: reqwest::Client,
}

/// A gateway and its access control.
struct Door {
    gateway: Arc<Gateway>,
    guard: Guard,
}

impl Gateway {
    /// Creates a gateway that waits for a listener.
    ///
    /// # Errors
    /// When no HTTP client can be created on this machine.
    pub fn new(config: GatewayConfig) -> Result<Self, GatewayError> {
        // One cryptography provider for the process; if another is already installed, it is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT)
                .tcp_nodelay(true)
                // Following a redirect is up to the client.
                .redirect(reqwest::redirect::Policy::none())
        };
        let built = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| GatewayError::Client(error.to_string()))
        };
        let recorder = match &config.keeping {
            Keeping::Off => Recorder::off(&config.log),
            Keeping::On(memory) => {
                let ledger = Ledger::new(config.ledger.clone(), &config.log);
                let reach = Reach { by: config.recall, mark: config.load_mark.clone() };
                Recorder::start(memory.clone(), config.folder.clone(), reach, ledger, &config.log)?
            }
            Keeping::Impossible(why) => Recorder::impossible(why, &config.log),
        };
        let dir = config.traffic.as_deref();
        let traffic = dir.map(|dir| Traffic::new(dir, *recorder.secret(), &config.log));
        let (far, near) = (built(builder())?, built(builder().no_proxy())?);
        let folded = AtomicU64::new(0);
        let rooms = config.tenants.clone().map(|tenants| Arc::new(Rooms::new(tenants)));
        let (begun, in_progress) = (Instant::now(), InProgress::default());
        Ok(Self { far, near, recorder, traffic, folded, begun, in_progress, rooms, config })
    }

    /// Returns the recorder of its conversations.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns what records the rest when it ends, if [`serve`](Self::serve) may not do so.
    #[must_use]
    pub fn finisher(&self) -> Finisher {
        Finisher::of(self)
    }

    /// Answers clients until `stop` completes; then it waits for answers in progress, but not for a client that has
    /// not sent its request, and records what was said to its end.
    ///
    /// # Errors
    /// When the address can be reached from other machines and no token is set, or the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), GatewayError> {
        let address = listener.local_addr()?;
        self.config.check_address(address)?;
        let (finisher, in_progress) = (self.finisher(), self.in_progress.clone());
        let guard = Guard::new(address, self.config.token.as_deref());
        let door = Arc::new(Door { gateway: Arc::new(self), guard });
        let router = Router::new().fallback(answer).with_state(door);
        // A piece of an answer is sent before the previous one is acknowledged.
        let listener = listener.tap_io(|client| drop(client.set_nodelay(true)));
        let (ending, ended) = oneshot::channel();
        let stop = async {
            stop.await;
            let _ = ending.send(());
        };
        let over = async {
            let _ = ended.await;
            in_progress.over().await;
        };
        tokio::select! {
            served = axum::serve(listener, router).with_graceful_shutdown(stop).into_future() => served?,
            () = over => {}
        }
        finisher.finish().await;
        Ok(())
    }

    /// Returns the HTTP client for an upstream.
    pub(crate) fn http(&self, upstream: &crate::Upstream) -> &reqwest::Client {
        if upstream.is_loopback() { &self.near } else { &self.far }
    }
}

impl Door {
    /// Returns the gateway that a request is for, by its token.
    async fn gateway(&self, headers: &HeaderMap) -> Result<Arc<Gateway>, Refused> {
        match (self.guard.has_token(headers), &self.gateway.rooms) {
            (Some(true), _) | (None, None) => Ok(self.gateway.clone()),
            (_, Some(rooms)) => rooms.of(headers).await,
            (Some(false), None) => {
                let why = format!("the gateway's token was expected in the header {TOKEN}");
                Err((StatusCode::FORBIDDEN, why))
            }
        }
    }
}

async fn answer(State(door): State<Arc<Door>>, mut request: Request) -> Response<Body> {
    let mark = door.gateway.in_progress.begin();
    let (uri, headers) = (request.uri(), request.headers());
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    // A supervisor's probe sends no token, and finds out nothing but this.
    match uri.path() {
        LIVE if is_read => return probed(true),
        READY if is_read => {
            return probed(!matches!(door.gateway.config.keeping, Keeping::Impossible(_)));
        }
        _ => {}
    }
    let api = Api::of(request.method(), uri.path(), headers);
    if let Some(why) = door.guard.refuses(uri, headers) {
        return refusal(api, StatusCode::FORBIDDEN, &why);
    }
    let gateway = match door.gateway(headers).await {
        Ok(gateway) => gateway,
        Err((status, why)) => return refusal(api, status, &why),
    };
    if uri.path().starts_with(OWN) {
        return own(&gateway, api, uri, is_read).await;
    }
    // Clients that prefer a WebSocket fall back to requests if there is none.
    let upgrade = headers.get(header::UPGRADE).map(|to| to.as_bytes().to_ascii_lowercase());
    if upgrade.as_deref() == Some(b"websocket") {
        let why = "WebSocket is not supported; send the request over HTTP";
        let mut answer = refusal(api, StatusCode::UPGRADE_REQUIRED, why);
        answer.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
        return answer;
    }
    let todo = gateway.config.todo.as_ref();
    if let Some(todo) = todo.and_then(|todo| HeaderValue::from_str(todo.as_str()).ok()) {
        request.headers_mut().entry(TODO).or_insert(todo);
    }
    forward(&gateway, api, request, mark).await
}

/// Answers a request for the gateway itself.
async fn own(gateway: &Gateway, api: Api, uri: &Uri, is_read: bool) -> Response<Body> {
    match uri.path() {
        HEALTH if is_read => {
            let writes = uri.query().is_some_and(|query| query == "write");
            health(gateway, writes).await
        }
        METRICS if is_read => metrics(gateway.recorder.ledger()),
        HEALTH | METRICS | LIVE | READY => {
            let mut answer = refusal(api, StatusCode::METHOD_NOT_ALLOWED, "GET was expected");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            answer
        }
        _ => {
            let why = format!("there are {HEALTH}, {METRICS}, {LIVE} and {READY}, and no other");
            refusal(api, StatusCode::NOT_FOUND, &why)
        }
    }
}

/// The prefix of the paths that are the gateway's own.
const OWN: &str = "/foldback/";

/// The path at which a gateway identifies itself.
pub(crate) const HEALTH: &str = "/foldback/health";

/// The path of its metrics.
const METRICS: &str = "/foldback/metrics";

/// The path at which it answers as long as it runs.
const LIVE: &str = "/foldback/live";

/// The path at which it answers 200 once it has opened its store, or if it needs none.
pub(crate) const READY: &str = "/foldback/ready";

/// How long a health check waits for the store. Those who ask wait ten seconds for the answer.
const WRITING: Duration = Duration::from_secs(7);

/// Returns the answer to a probe.
fn probed(is_well: bool) -> Response<Body> {
    let (status, word) = match is_well {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the store is not open yet\n"),
    };
    let mut response = Response::new(Body::from(word));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// Returns what the gateway reports of itself, and with `writes` whether its store accepts writes.
async fn health(gateway: &Gateway, writes: bool) -> Response<Body> {
    let mut trouble = gateway.recorder.trouble();
    let mut writable = None;
    if let (Keeping::On(memory), true) = (&gateway.config.keeping, writes) {
        let memory = memory.clone();
        let tried = tokio::task::spawn_blocking(move || memory.maintenance().try_to_write());
        let failed = match tokio::time::timeout(WRITING, tried).await {
            Ok(Ok(tried)) => tried.err().map(|error| error.to_string()),
            Ok(Err(error)) => Some(error.to_string()),
            // A store on a server is tried for longer while the server is away.
            Err(_) => Some(format!("the store did not answer for {} seconds", WRITING.as_secs())),
        };
        writable = Some(failed.is_none());
        trouble = failed.or(trouble);
    }
    let body = serde_json::json!({
        "gateway": "foldback",
        "version": env!("CARGO_PKG_VERSION"),
        "store": match &gateway.config.keeping {
            Keeping::On(memory) => Some(Keeping::store_name(memory)),
            _ => None,
        },
        "anthropic": gateway.config.anthropic.to_string(),
        "openai": gateway.config.openai.to_string(),
        "recording": !matches!(gateway.config.keeping, Keeping::Off) && trouble.is_none(),
        "writable": writable,
        "trouble": trouble,
    });
    let mut response = Response::new(Body::from(body.to_string()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
