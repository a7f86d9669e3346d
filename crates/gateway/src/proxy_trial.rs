//! Another proxy, tested with recorded exchanges.

use crate::checkup::client;
use crate::{Api, GatewayError, Taped, Tokens};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

/// How long a proxy may take for a request.
const PATIENCE: Duration = Duration::from_secs(300);

/// Puts another proxy between a client and a provider that both replay recorded exchanges, and shows what would
/// have reached the provider through it.
pub struct ProxyTrial {
    url: String,
    /// Requests pass one after the other, so that it is known which exchange each belongs to.
    stage: Mutex<Stage>,
}

struct Stage {
    runtime: Runtime,
    http: reqwest::Client,
    reached: mpsc::UnboundedReceiver<Reached>,
}

/// A request that has reached the provider, and the channel for its answer.
struct Reached {
    body: String,
    answer: oneshot::Sender<Response<Body>>,
}

impl ProxyTrial {
    /// Creates a trial of the proxy at `url`, which must use `provider` as its provider; this listens there.
    ///
    /// # Errors
    /// When it cannot listen there, or no HTTP client can be created.
    pub fn new(url: &str, provider: SocketAddr) -> Result<Self, GatewayError> {
        let http = client().map_err(GatewayError::Client)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (arrive, reached) = mpsc::unbounded_channel();
        let listener = runtime.block_on(TcpListener::bind(provider))?;
        let take = move |request: Request| take(request, arrive.clone());
        runtime.spawn(async { axum::serve(listener, Router::new().fallback(take)).await });
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, stage: Mutex::new(Stage { runtime, http, reached }) })
    }

    /// Sends an exchange's request through the proxy. The provider gives the recorded answer. `bill` returns what each
    /// body that reaches it is billed, which an answer of the Messages API includes if it is not streamed.
    ///
    /// # Errors
    /// When the proxy does not answer, or refuses.
    pub fn pass(
        &self,
        exchange: &Taped<'_>,
        mut bill: impl FnMut(&str) -> Tokens,
    ) -> Result<(), GatewayError> {
        let failed = |what: String| GatewayError::Proxy { url: self.url.clone(), what };
        let mut stage = self.stage.lock();
        let Stage { runtime, http, reached } = &mut *stage;
        let mut request = http.post(format!("{}{}", self.url, exchange.path));
        request = request.headers(exchange.header_map());
        request = match exchange.api.is_anthropic() {
            true => request.header("x-api-key", "none").header("anthropic-version", "2023-06-01"),
            false => request.bearer_auth("none"),
        };
        let request = request.header(CONTENT_TYPE, "application/json").timeout(PATIENCE);
        let request = request.body(exchange.request.clone().into_owned());
        let ask = async {
            let answer = request.send().await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.text().await?))
        };
        let (status, answer) = runtime.block_on(async {
            let mut ask = std::pin::pin!(ask);
            loop {
                tokio::select! {
                    Some(Reached { body, answer }) = reached.recv() => {
                        // A proxy that has gone does not wait for it.
                        drop(answer.send(answered(exchange, bill(&body))));
                    }
                    answer = &mut ask => break answer.map_err(|error| failed(format!("does not answer: {error}"))),
                }
            }
        })?;
        match status.is_success() {
            true => Ok(()),
            false => {
                let said: String = answer.chars().take(200).collect();
                Err(failed(format!("answers {status}: {said}")))
            }
        }
    }
}

/// Takes a request to the provider. Only conversations are answered.
async fn take(request: Request, arrive: mpsc::UnboundedSender<Reached>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let api = Api::of(&head.method, head.uri.path(), &head.headers);
    if head.method == Method::POST
        && api.has_conversation()
        && let Ok(body) = axum::body::to_bytes(body, usize::MAX).await
        && let Ok(body) = String::from_utf8(body.into())
    {
        let (answer, answered) = oneshot::channel();
        if arrive.send(Reached { body, answer }).is_ok()
            && let Ok(answer) = answered.await
        {
            return answer;
        }
    }
    let mut refusal = Response::new(Body::from("{}"));
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    refusal
}

/// Returns the provider's answer.
fn answered(exchange: &Taped<'_>, billed: Tokens) -> Response<Body> {
    let (kind, body) = match serde_json::from_str::<Value>(&exchange.answer) {
        Ok(mut answer) => {
            if exchange.api == Api::Messages && answer.is_object() {
                answer["usage"] = json!({
                    "input_tokens": billed.plain,
                    "cache_read_input_tokens": billed.read,
                    "cache_creation_input_tokens": billed.written,
                    "output_tokens": 1,
                });
            }
            ("application/json", answer.to_string())
        }
        Err(_) => ("text/event-stream", exchange.answer.clone().into_owned()),
    };
    let mut response = Response::new(Body::from(Bytes::from(body)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
