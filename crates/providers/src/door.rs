//! Requests over HTTP, and their raw answers.

use crate::config::public_url;
use crate::failure::{self, NoAnswer, no_text, too_long, unreadable};
use crate::json;
use crate::openai_answer::is_error;
use crate::sse::Events;
use crate::{ModelConfig, Provider, Timeouts};
use foldback_llm::legal_name;
use foldback_llm::{ChatRequest, ModelError, ModelErrorKind};
use jiff::fmt::rfc2822;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The longest name of a session in a header.
const LONGEST_SESSION: usize = 128;

/// The version of Anthropic's API that is used.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The limit on the bytes of a whole answer, and of one event of a streamed one. The longest answers
/// that models give, 128,000 tokens, are below 1 MiB of text: this leaves room for escapes, log
/// probabilities and images, and keeps a server that never ends from exhausting the memory.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// The limit on the bytes of an error body. Providers need a few hundred; the HTML page of a gateway has
/// a few thousand.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// How long to wait for an error body. It usually comes with the status, which says enough without it.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(5);

/// The connection to one provider.
#[derive(Clone)]
pub(crate) struct Door {
    client: reqwest::Client,
    url: Url,
    /// The headers of every request, among them the key.
    headers: HeaderMap,
    session_header: Option<HeaderName>,
    timeouts: Timeouts,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Door({})", self.url)
    }
}

impl Door {
    /// Prepares the connection to a model at an address.
    pub(crate) fn new(config: &ModelConfig, address: &str) -> Result<Self, ModelError> {
        let headers = headers(config)?;
        let session_header = config.session_header.as_deref().map(|header| {
            HeaderName::from_bytes(header.as_bytes()).map_err(|_| {
                wrong(format!("{header:?} is not a valid header name (session_header)"))
            })
        });
        let session_header = session_header.transpose()?;
        let url = url(config.provider, address)?;
        Ok(Self {
            client: client(&url, config.timeouts)?,
            url,
            headers,
            session_header,
            timeouts: config.timeouts,
        })
    }

    /// Returns what the server reports at a path beside that of its API, if it does.
    pub(crate) async fn look(&self, path: Beside<'_>, patience: Duration) -> Option<Value> {
        let mut url = self.url.clone();
        let root = url.path().strip_suffix("/chat/completions").unwrap_or_default();
        let path = match path {
            Beside::Api(path) => format!("{root}/{path}"),
            Beside::Root(path) => format!("{}/{path}", root.trim_end_matches("/v1")),
        };
        url.set_path(&path);
        let looking = async {
            let response = self.client.get(url).headers(self.headers.clone()).send().await.ok()?;
            if !response.status().is_success() {
                return None;
            }
            json::parse(&whole(response).await.ok()?)
        };
        timeout(patience, looking).await.ok().flatten()
    }

    /// Sends a request and returns the body of the answer, whatever its content type.
    pub(crate) async fn post(
        &self,
        request: &ChatRequest,
        body: Map<String, Value>,
    ) -> Result<Value, NoAnswer> {
        let sent = Instant::now();
        let response = self.send(request, body).await?;
        let left = self.timeouts.answer.saturating_sub(sent.elapsed());
        let Ok(answer) = timeout(left, whole(response)).await else {
            return Err(too_slow("no answer came", self.timeouts.answer).into());
        };
        let answer = answer?;
        json::parse(&answer).ok_or_else(|| unreadable("the answer is not JSON", &answer).into())
    }

    /// Sends a request whose answer comes frame by frame.
    pub(crate) async fn stream(
        &self,
        request: &ChatRequest,
        body: Map<String, Value>,
    ) -> Result<Frames, NoAnswer> {
        let sent = Instant::now();
        Ok(Frames {
            response: self.send(request, body).await?,
            beginning: Some(Vec::new()),
            events: Events::new(LONGEST_ANSWER),
            ready: VecDeque::new(),
            timeouts: self.timeouts,
            sent: Some(sent),
            failed: None,
            ended: false,
        })
    }

    /// Sends a request, and waits until a successful answer begins.
    async fn send(
        &self,
        request: &ChatRequest,
        body: Map<String, Value>,
    ) -> Result<Response, NoAnswer> {
        let mut headers = self.headers.clone();
        if let (Some(name), Some(session)) = (&self.session_header, &request.session) {
            let session = HeaderValue::from_str(&legal_name(session, LONGEST_SESSION));
            let session = session.map_err(|error| {
                wrong(format!("the name of the session is not a valid header value: {error}"))
            })?;
            headers.insert(name, session);
        }
        let body = Value::Object(body).to_string();
        let sent = self.client.post(self.url.clone()).headers(headers).body(body).send();
        let Ok(response) = timeout(self.timeouts.answer, sent).await else {
            return Err(too_slow("no answer came", self.timeouts.answer).into());
        };
        let response = response.map_err(NoAnswer::of_transport)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let wait = retry_after(response.headers());
        let words = words(response, REFUSAL_PATIENCE.min(self.timeouts.silence)).await;
        Err(failure::of_status(status.as_u16(), &words, wait).into())
    }
}

/// A path of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Beside<'p> {
    /// Relative to the paths of the API.
    Api(&'p str),
    /// At the root of the server.
    Root(&'p str),
}

/// Reads a whole answer.
async fn whole(mut response: Response) -> Result<String, ModelError> {
    let mut answer = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(failure::of_transport)? {
        let received = answer.len() + bytes.len();
        if received > LONGEST_ANSWER {
            return Err(too_long("the answer", received, LONGEST_ANSWER));
        }
        answer.extend_from_slice(&bytes);
    }
    String::from_utf8(answer).map_err(|error| no_text(error.utf8_error()))
}

/// Returns the body of an error, or its beginning: the status says what is wrong, although the body
/// may be long, break off or not come at all.
async fn words(mut response: Response, patience: Duration) -> String {
    let mut words = Vec::new();
    let reading = async {
        while words.len() < LONGEST_REFUSAL
            && let Ok(Some(bytes)) = response.chunk().await
        {
            keep_beginning(&mut words, &bytes);
        }
    };
    // What came before the time was over is reported.
    let _ = timeout(patience, reading).await;
    String::from_utf8_lossy(&words).into_owned()
}

/// Appends bytes, up to the limit on an error body.
fn keep_beginning(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = LONGEST_REFUSAL.saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// The frames of an answer, in order.
pub(crate) struct Frames {
    response: Response,
    /// The bytes before the first frame; `None` as soon as there is a frame.
    beginning: Option<Vec<u8>>,
    events: Events,
    /// The frames that were received and not yet returned.
    ready: VecDeque<String>,
    timeouts: Timeouts,
    /// When the request was sent, until the first frame is asked for.
    sent: Option<Instant>,
    /// The error that ended the stream, to be returned after the frames before it.
    failed: Option<ModelError>,
    ended: bool,
}

impl Frames {
    /// Returns the next frame: the data of a server-sent event.
    ///
    /// Keep-alives prevent the silence timeout, but no frame may take longer than a whole answer; the
    /// first one is counted from when the request was sent.
    pub(crate) async fn next(&mut self) -> Option<Result<String, ModelError>> {
        let Timeouts { answer, silence, .. } = self.timeouts;
        let (since, patience, longest, what) = match self.sent.take() {
            Some(sent) => (sent, answer, answer, "no answer came"),
            None => (Instant::now(), silence, silence.max(answer), "no more of the answer came"),
        };
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(Ok(frame));
            }
            if self.ended {
                return self.failed.take().map(Err);
            }
            let left = longest.saturating_sub(since.elapsed());
            let received = timeout(patience.min(left), self.receive()).await;
            let waited = if patience <= left { patience } else { longest };
            if let Err(error) = received.unwrap_or_else(|_| Err(too_slow(what, waited))) {
                self.ended = true;
                self.failed = Some(error);
            }
        }
    }

    /// Returns a whole answer that came without frames: some servers ignore the request to stream.
    ///
    /// # Errors
    /// When it is an error.
    pub(crate) fn whole(&self) -> Result<Option<Value>, ModelError> {
        let told = self.beginning.as_deref().and_then(|told| std::str::from_utf8(told).ok());
        match told.and_then(json::parse).filter(Value::is_object) {
            Some(told) if is_error(&told) => Err(failure::of_body(&told)),
            told => Ok(told),
        }
    }

    /// Waits until an event or a keep-alive arrives, or the answer ends.
    async fn receive(&mut self) -> Result<(), ModelError> {
        loop {
            let bytes = self.response.chunk().await.map_err(failure::of_transport)?;
            if let (Some(beginning), Some(bytes)) = (&mut self.beginning, &bytes) {
                // Anything longer is not a whole answer, whatever events follow.
                if beginning.len() + bytes.len() <= LONGEST_ANSWER {
                    beginning.extend_from_slice(bytes);
                }
            }
            let mut said = Vec::new();
            let read = match &bytes {
                Some(bytes) => self.events.read(bytes, &mut said),
                None => self.events.finish(&mut said),
            };
            self.ended = bytes.is_none();
            let was_silent = said.is_empty();
            self.ready.extend(said.into_iter().filter(|data| !is_sign_of_life(data)));
            if !self.ready.is_empty() {
                self.beginning = None;
            }
            read?;
            if self.ended || !was_silent {
                return Ok(());
            }
        }
    }
}

/// Returns whether an event is only a keep-alive: a comment, or Anthropic's ping.
fn is_sign_of_life(data: &str) -> bool {
    let is_short = data.len() <= 64;
    data.is_empty() || is_short && json::parse(data).is_some_and(|data| data["type"] == "ping")
}

/// Returns how long the provider asks to wait: seconds, or milliseconds as OpenAI has it, or a date,
/// which is compared with that of the answer.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let told = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| {
        let value = told(name)?.parse::<f64>().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    let date = |name: &str| Some(rfc2822::parse(told(name)?).ok()?.timestamp());
    if let Some(millis) = number("retry-after-ms") {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    if let Some(seconds) = number("retry-after") {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let wait = date("retry-after")?.duration_since(date("date")?);
    Some(Duration::try_from(wait).unwrap_or_default())
}

/// Returns the headers of every request to a provider.
fn headers(config: &ModelConfig) -> Result<HeaderMap, ModelError> {
    let is_anthropic = config.provider == Provider::Anthropic;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if is_anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if let Some(key) = &config.api_key {
        let unusable = || wrong("the key is empty or has characters that no header accepts");
        if !key.is_usable() {
            return Err(unusable());
        }
        let (name, value) = if is_anthropic {
            (HeaderName::from_static("x-api-key"), HeaderValue::from_str(key.expose()))
        } else {
            (AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", key.expose())))
        };
        let mut value = value.map_err(|_| unusable())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Builds the URL of requests from an address as people write it: with or without the end of the path.
fn url(provider: Provider, address: &str) -> Result<Url, ModelError> {
    let wrong_url = |what: &str| wrong(format!("the base URL {:?} {what}", public_url(address)));
    let mut url = Url::parse(address.trim())
        .map_err(|error| wrong_url(&format!("is not an address: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "the base URL must have no user and no password: give the key separately",
        ));
    }
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong_url("is not an address that begins with http:// or https://"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong_url("must have no query and no fragment"));
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let path = path.strip_suffix("/messages").unwrap_or(path);
    let end = match provider {
        // Anthropic's own clients take the address without its version.
        Provider::Anthropic if !path.ends_with("/v1") => "/v1/messages",
        Provider::Anthropic => "/messages",
        Provider::OpenAi | Provider::OpenAiCompatible => "/chat/completions",
    };
    let path = format!("{path}{end}");
    url.set_path(&path);
    Ok(url)
}

fn client(url: &Url, timeouts: Timeouts) -> Result<reqwest::Client, ModelError> {
    // One cryptography provider for the process; if another is already installed, it is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .connect_timeout(timeouts.connect)
        .tcp_nodelay(true)
        // A key is sent only to the address that was given.
        .redirect(reqwest::redirect::Policy::none());
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here =
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let builder = if is_here { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| wrong(format!("cannot create an HTTP client: {error}")))
}

fn too_slow(what: &str, patience: Duration) -> ModelError {
    ModelError::new(
        ModelErrorKind::Timeout,
        format!("{what} within {} seconds", patience.as_secs_f64()),
    )
}

fn wrong(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Configuration, message)
}
