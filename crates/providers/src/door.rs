//! The way out: requests through genai, and their answers raw.

use crate::config::public_url;
use crate::failure::{self, unreadable};
use crate::json;
use crate::{ApiKey, ModelConfig, Provider, Timeouts};
use foldback_llm::legal_name;
use foldback_llm::{ChatRequest, ModelError, ModelErrorKind};
use futures::{StreamExt, future};
use genai::adapter::AdapterKind;
use genai::chat::{ChatFrameSink, ChatOptions, FrameCtx, RawFrameRef, ReasoningEffort};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget, webc};
use jiff::fmt::rfc2822;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The longest name of a session in a header.
const LONGEST_SESSION: usize = 128;

/// The version of Anthropic's API that is spoken here.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The way to one provider.
#[derive(Clone)]
pub(crate) struct Door {
    client: genai::Client,
    target: ServiceTarget,
    name: String,
    key: Option<ApiKey>,
    timeouts: Timeouts,
    session_header: Option<String>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Door({})", self.target.endpoint.base_url())
    }
}

impl Door {
    /// The way to a model that is served at an address.
    pub(crate) fn new(config: &ModelConfig, address: &str) -> Result<Self, ModelError> {
        if config.api_key.as_ref().is_some_and(|key| !key.is_usable()) {
            return Err(wrong("the key is empty or has characters that no header takes"));
        }
        if let Some(header) = &config.session_header
            && reqwest::header::HeaderName::from_bytes(header.as_bytes()).is_err()
        {
            return Err(wrong(format!("{header:?} is no name of a header (session_header)")));
        }
        let base = base_url(config.provider, address)?;
        let kind = match config.provider {
            Provider::Anthropic => AdapterKind::Anthropic,
            Provider::OpenAi | Provider::OpenAiCompatible => AdapterKind::OpenAI,
        };
        let auth = match &config.api_key {
            Some(key) => AuthData::from_single(key.expose()),
            None => AuthData::None,
        };
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(base.as_str()),
            auth,
            model: ModelIden::new(kind, name_for_genai(config)),
        };
        let client = genai::Client::builder().with_reqwest(client(&base, config.timeouts)?).build();
        let client = client.map_err(|error| wrong(format!("there is no HTTP client: {error}")))?;
        Ok(Self {
            client,
            target,
            name: config.name.clone(),
            key: config.api_key.clone(),
            timeouts: config.timeouts,
            session_header: config.session_header.clone(),
        })
    }

    /// Sends a request and gives back the body of the answer.
    pub(crate) async fn post(
        &self,
        request: &ChatRequest,
        body: Map<String, Value>,
    ) -> Result<Value, ModelError> {
        let options = self.options(request, body).with_capture_raw_body(true);
        let answer = self.client.exec_chat(
            self.target(request),
            genai::chat::ChatRequest::default(),
            Some(&options),
        );
        let Ok(answer) = timeout(self.timeouts.answer, answer).await else {
            return Err(too_slow("no answer came", self.timeouts.answer));
        };
        match answer {
            Ok(answer) => answer
                .captured_raw_body
                .ok_or_else(|| unreadable("the answer was not handed out", "")),
            Err(error) => read_anyway(error),
        }
    }

    /// Sends a request whose answer comes frame by frame.
    pub(crate) async fn stream(
        &self,
        request: &ChatRequest,
        body: Map<String, Value>,
    ) -> Result<Frames, ModelError> {
        let queue = Queue::default();
        let options =
            self.options(request, body).with_capture_usage(true).with_raw_frame_sink(queue.clone());
        let model = self.target(request);
        let empty = genai::chat::ChatRequest::default();
        let opened = self.client.exec_chat_stream(model, empty, Some(&options)).await;
        let opened = opened.map_err(of_genai)?;
        Ok(Frames {
            events: opened.stream,
            queue,
            timeouts: self.timeouts,
            begun: false,
            failed: None,
            ended: false,
        })
    }

    /// How an answer is drawn, and the members of the body that genai does not write.
    fn options(&self, request: &ChatRequest, mut body: Map<String, Value>) -> ChatOptions {
        body.insert("model".to_owned(), Value::from(self.name.as_str()));
        let sampling = &request.sampling;
        let mut options = ChatOptions {
            temperature: sampling.temperature,
            max_tokens: sampling.max_tokens,
            stop_sequences: sampling.stop.clone(),
            seed: sampling.seed,
            extra_body: Some(Value::Object(body)),
            ..ChatOptions::default()
        };
        options.extra_headers = self.session_header(request).map(Headers::from);
        options
    }

    /// Where to send a request, and who asks.
    fn target(&self, request: &ChatRequest) -> ServiceTarget {
        let mut target = self.target.clone();
        if self.key.is_none() {
            // genai wants a key, unless it is given the whole address and all headers.
            let base = target.endpoint.base_url();
            let mut headers: Vec<(String, String)> =
                self.session_header(request).into_iter().collect();
            let url = if target.model.adapter_kind == AdapterKind::Anthropic {
                headers.push(("anthropic-version".to_owned(), ANTHROPIC_VERSION.to_owned()));
                format!("{base}messages")
            } else {
                format!("{base}chat/completions")
            };
            target.auth = AuthData::RequestOverride { url, headers: Headers::from(headers) };
        }
        target
    }

    fn session_header(&self, request: &ChatRequest) -> Option<(String, String)> {
        let session = legal_name(request.session.as_ref()?, LONGEST_SESSION);
        Some((self.session_header.clone()?, session))
    }
}

/// The frames of an answer, in order.
pub(crate) struct Frames {
    events: genai::chat::ChatStream,
    queue: Queue,
    timeouts: Timeouts,
    /// Whether there was a frame.
    begun: bool,
    /// What ended the stream, to be told behind the frames before it.
    failed: Option<ModelError>,
    ended: bool,
}

impl Frames {
    /// The next frame: the data of a server-sent event.
    ///
    /// Signs of life put off that the answer counts as silent, yet no frame is waited for longer than
    /// for a whole answer.
    pub(crate) async fn next(&mut self) -> Option<Result<String, ModelError>> {
        let Timeouts { answer, silence, .. } = self.timeouts;
        let asked = Instant::now();
        loop {
            if let Some(frame) = self.queue.pop() {
                self.begun = true;
                return Some(Ok(frame));
            }
            if self.ended {
                return self.failed.take().map(Err);
            }
            let (patience, longest, what) = if self.begun {
                (silence, silence.max(answer), "no more of the answer came")
            } else {
                (answer, answer, "no answer came")
            };
            let left = longest.saturating_sub(asked.elapsed());
            match timeout(patience.min(left), self.received()).await {
                // The frames are judged by who reads them, not by genai.
                Ok(Received::Frames | Received::Event(Some(Ok(_)))) => {}
                Ok(Received::Event(Some(Err(error)))) if is_about_a_frame(&error) => {}
                Ok(Received::Event(Some(Err(error)))) => self.end(Some(of_genai(error))),
                Ok(Received::Event(None)) => self.end(None),
                Err(_) => {
                    let waited = if patience <= left { patience } else { longest };
                    self.end(Some(too_slow(what, waited)));
                }
            }
        }
    }

    /// Waits until something was received. genai passes over frames that say nothing to it, but shows
    /// them to the queue while it is polled.
    async fn received(&mut self) -> Received {
        let Self { events, queue, .. } = self;
        future::poll_fn(|context| match events.poll_next_unpin(context) {
            Poll::Ready(event) => Poll::Ready(Received::Event(event)),
            Poll::Pending if queue.take_news() => Poll::Ready(Received::Frames),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    fn end(&mut self, failed: Option<ModelError>) {
        self.ended = true;
        self.failed = failed;
    }
}

/// What came of waiting.
enum Received {
    /// Frames or signs of life, which genai had nothing to say about.
    Frames,
    /// What genai made of them.
    Event(Option<genai::Result<genai::chat::ChatStreamEvent>>),
}

/// What was received and not read yet.
#[derive(Clone, Default)]
struct Queue(Arc<Mutex<Pending>>);

#[derive(Default)]
struct Pending {
    frames: VecDeque<String>,
    /// Whether anything was received since that was asked last.
    news: bool,
}

impl Queue {
    fn pop(&self) -> Option<String> {
        self.lock().frames.pop_front()
    }

    fn take_news(&self) -> bool {
        std::mem::take(&mut self.lock().news)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for Queue {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut pending = self.lock();
        pending.news = true;
        if !is_sign_of_life(&frame) {
            pending.frames.push_back(frame.data.to_owned());
        }
    }
}

/// Whether a frame only says that the provider is at it: a comment, or Anthropic's ping.
fn is_sign_of_life(frame: &RawFrameRef<'_>) -> bool {
    let is_short = frame.data.len() <= 64;
    frame.data.is_empty()
        || is_short && json::parse(frame.data).is_some_and(|data| data["type"] == "ping")
}

/// Whether an error only says that genai could not read a frame, or that one told an error.
fn is_about_a_frame(error: &genai::Error) -> bool {
    matches!(
        error,
        genai::Error::StreamParse { .. }
            | genai::Error::ChatResponse { .. }
            | genai::Error::JsonValueExt(_)
            | genai::Error::SerdeJson(_)
    )
}

/// The body of an answer that genai could not read, where it is one.
fn read_anyway(error: genai::Error) -> Result<Value, ModelError> {
    match error {
        genai::Error::ChatResponseGeneration { response_body, .. } => Ok(*response_body),
        genai::Error::WebModelCall {
            webc_error:
                webc::Error::ResponseFailedNotJson { body, .. }
                | webc::Error::ResponseFailedInvalidJson { body, .. },
            ..
        } => json::parse(&body).ok_or_else(|| unreadable("the answer is no JSON", &body)),
        error => Err(of_genai(error)),
    }
}

/// What went wrong.
fn of_genai(error: genai::Error) -> ModelError {
    let of_status = |status: StatusCode, body: String, headers: &HeaderMap| {
        failure::of_status(status.as_u16(), &body, retry_after(headers))
    };
    match error {
        genai::Error::WebModelCall { webc_error, .. } => match webc_error {
            webc::Error::ResponseFailedStatus { status, body, headers } => {
                of_status(status, body, &headers)
            }
            webc::Error::Reqwest(error) => failure::of_transport(error),
            error => unreadable("the answer cannot be read", &error.to_string()),
        },
        genai::Error::HttpError { status, body, headers, .. } => of_status(status, body, &headers),
        genai::Error::WebStream { error, .. } => match error.downcast::<genai::Error>() {
            Ok(error) => of_genai(*error),
            Err(error) => match error.downcast::<reqwest::Error>() {
                Ok(error) => failure::of_transport(*error),
                Err(error) => unreadable("the answer cannot be read", &error.to_string()),
            },
        },
        error => {
            ModelError::new(ModelErrorKind::Request, format!("the request cannot be sent: {error}"))
        }
    }
}

/// How long the provider asks to wait: seconds, or milliseconds as OpenAI has it, or a date, which is
/// compared with that of the answer.
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

/// The name by which genai chooses what a model wants: the words for the greatest number of tokens,
/// and that number where none is given. The true name is written into the body.
///
/// An ending such as `-high` or `-max` it takes for an effort of reasoning; one more hyphen hides it.
/// What OpenAI's models want is no guide to the servers of others.
fn name_for_genai(config: &ModelConfig) -> String {
    let (effort, _) = ReasoningEffort::from_model_name(&config.name);
    match config.provider {
        Provider::OpenAiCompatible => "model".to_owned(),
        _ if effort.is_some() => format!("{}-", config.name),
        _ => config.name.clone(),
    }
}

/// The address as genai wants it: with a slash at its end, so that more can follow.
fn base_url(provider: Provider, address: &str) -> Result<Url, ModelError> {
    let wrong_url = |what: &str| wrong(format!("the base URL {:?} {what}", public_url(address)));
    let mut url = Url::parse(address.trim())
        .map_err(|error| wrong_url(&format!("is no address: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("the base URL has no user and no password: the key is given apart"));
    }
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong_url("is no address that begins with http:// or https://"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong_url("has no query and no fragment"));
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let path = path.strip_suffix("/messages").unwrap_or(path);
    // Anthropic's own clients are given the address without its version.
    let is_bare = provider == Provider::Anthropic && !path.ends_with("/v1");
    let path = format!("{path}{}/", if is_bare { "/v1" } else { "" });
    url.set_path(&path);
    Ok(url)
}

fn client(base: &Url, timeouts: Timeouts) -> Result<reqwest::Client, ModelError> {
    // One provider of cryptography for the process; another that is there already is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .connect_timeout(timeouts.connect)
        .tcp_nodelay(true)
        // A key is sent to the address that was given, and to no other.
        .redirect(reqwest::redirect::Policy::none());
    let host = base.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here =
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let builder = if is_here { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| wrong(format!("there is no HTTP client: {error}")))
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
