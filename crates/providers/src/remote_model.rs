//! A model behind an API: OpenAI's chat-completions or Anthropic's Messages.
//!
//! A request is written in the provider's format (`openai_request.rs`, `anthropic_request.rs`) and sent
//! to its address (`door.rs`), and the answer is read, whole or frame by frame (`openai_answer.rs`,
//! `anthropic_answer.rs`). The content of messages is unchanged: arguments that are not JSON, white space
//! around texts, a piece of a call without an index.

mod answering;
mod reading;
mod streaming;

use crate::check::check;
use crate::door::Door;
use crate::draft::Draft;
use crate::failure::{NoAnswer, is_of_streaming, unreadable};
use crate::openai_request::ends_with_beginning;
use crate::said_otherwise::said_otherwise;
use crate::workers::{Busy, Workers};
use crate::{
    ModelConfig, Provider, ToolCalls, anthropic_answer, anthropic_request, diversity, failure,
    hermes, openai_answer, openai_request, tool_choice,
};
use foldback_core::Message;
use foldback_llm::{
    Capabilities, ChatChunk, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError,
    ModelErrorKind, ToolChoice, ToolNames,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use reading::{Reader, Reading};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use streaming::Streaming;

/// A model that is called over HTTP.
///
/// ```no_run
/// # async fn ask() -> Result<(), foldback_llm::ModelError> {
/// use foldback_core::Message;
/// use foldback_llm::{ChatModel, ChatRequest, Retrying};
/// use foldback_providers::{ModelConfig, ModelSources, RemoteModel};
///
/// let config = ModelConfig::load(&ModelSources::of_process(Default::default(), None))?;
/// let model = Retrying::new(RemoteModel::new(config.clone())?, config.retry);
/// let answer = model.complete(&ChatRequest::new([Message::user("What is a ski rental problem?")])).await?;
/// println!("{} ({} tokens)", answer.message.text(), answer.usage.output);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RemoteModel {
    config: ModelConfig,
    workers: Arc<Workers>,
    streaming: Arc<Streaming>,
}

impl fmt::Debug for RemoteModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteModel").field("config", &self.config).finish_non_exhaustive()
    }
}

impl RemoteModel {
    /// Creates a model from its settings. Nothing is sent yet.
    ///
    /// # Errors
    /// When a base URL is not an `http` or `https` address, the key cannot be sent in a header, TLS is
    /// not available, or settings contradict each other.
    pub fn new(config: ModelConfig) -> Result<Self, ModelError> {
        config.check()?;
        let addresses = std::iter::once(&config.base_url).chain(&config.workers);
        let doors = addresses.map(|at| Ok((at.clone(), Door::new(&config, at)?)));
        let workers = Arc::new(Workers::new(doors.collect::<Result<_, ModelError>>()?));
        Ok(Self { config, workers, streaming: Arc::default() })
    }

    /// Returns the settings.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Prepares the request as it is sent, its body, and the answer that is to be assembled.
    fn prepare<'r>(
        &self,
        request: &'r ChatRequest,
        streamed: bool,
    ) -> Result<Prepared<'r>, ModelError> {
        check(request)?;
        let config = &self.config;
        let mut sent = Cow::Borrowed(request);
        if let Some(seed) = config.diversity {
            sent.to_mut().messages = diversity::varied(seed, &request.messages);
        }
        let (mut beginning, mut grammar) = (None, None);
        if config.tool_calls() == ToolCalls::Hermes {
            let plain = hermes::plain(&sent, config.grammar, config.prefill)?;
            beginning = (!request.tools.is_empty()).then_some(plain.beginning);
            (sent, grammar) = (Cow::Owned(plain.request), plain.grammar);
        } else if !ends_with_beginning(request) {
            let is_said = !config.required_calls && request.tool_choice.must_call();
            let words = match is_said {
                true => tool_choice::in_words(request),
                false => tool_choice::preference(request),
            };
            if let Some(words) = words {
                sent.to_mut().messages.push(Arc::new(Message::system(&words)));
            }
            if is_said {
                sent.to_mut().tool_choice = ToolChoice::Auto;
            }
        }
        let sent = match config.provider {
            Provider::OpenAiCompatible => said_otherwise(sent, config.chat_template()),
            Provider::OpenAi | Provider::Anthropic => sent,
        };
        let names = ToolNames::of_request(&sent);
        let mut body = match config.provider {
            Provider::Anthropic => anthropic_request::body(&sent, config, &names, streamed),
            Provider::OpenAi | Provider::OpenAiCompatible => {
                openai_request::body(&sent, config, &names, streamed)
            }
        }?;
        if let Some(grammar) = grammar {
            // For vLLM and for llama.cpp: each ignores the key of the other.
            body.insert("structured_outputs".to_owned(), json!({ "grammar": grammar }));
            body.insert("grammar".to_owned(), Value::String(grammar));
        }
        let draft = Draft::new(request, names, &config.name);
        let draft = match beginning {
            Some(beginning) => draft.with_calls_in_text(&beginning),
            None if config.provider == Provider::OpenAiCompatible => {
                draft.with_plain_schemas(&request.tools)
            }
            None => draft,
        };
        Ok(Prepared { request: sent, body, draft })
    }

    /// Chooses the server for a request.
    fn way(&self, request: &ChatRequest) -> Result<(&Door, Busy), ModelError> {
        self.workers.choose(request.session.as_deref()).ok_or_else(|| {
            ModelError::new(ModelErrorKind::Configuration, "the model has no address")
        })
    }

    /// Requests a whole answer.
    async fn whole(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.whole_behind(request, false).await
    }

    /// Requests a whole answer, possibly after a stream (`behind_stream`): some servers close a connection
    /// after a stream that ended properly, so that the next request on it is lost, and is sent once more.
    async fn whole_behind(
        &self,
        request: &ChatRequest,
        behind_stream: bool,
    ) -> Result<ChatResponse, ModelError> {
        let Prepared { request, body, draft } = self.prepare(request, false)?;
        let (door, busy) = self.way(&request)?;
        let again = behind_stream.then(|| body.clone());
        let mut answer = door.post(&request, body).await;
        if let (Err(NoAnswer::Lost(_)), Some(body)) = (&answer, again) {
            answer = door.post(&request, body).await;
        }
        let answer = answer.map_err(|error| self.failed(&busy, error.into()))?;
        self.read(&answer, draft)
    }

    /// Requests an answer piece by piece, without retries, and returns the number of its pieces: 0 if it came whole.
    pub(crate) async fn pieces(
        &self,
        request: &ChatRequest,
    ) -> Result<(usize, ChatResponse), ModelError> {
        match self.open(request).await? {
            Opened::Whole(response) => Ok((0, *response)),
            Opened::Broken(busy, error) => Err(self.failed(&busy, error)),
            Opened::Pieces(reading) => {
                let (pieces, answer) = self.read_on(*reading).await;
                answer.map(|response| (pieces, response))
            }
        }
    }

    /// Reads a whole answer.
    fn read(&self, answer: &Value, draft: Draft) -> Result<ChatResponse, ModelError> {
        let response = match self.config.provider {
            Provider::Anthropic => anthropic_answer::read(answer, draft),
            Provider::OpenAi | Provider::OpenAiCompatible => openai_answer::read(answer, draft),
        };
        response.map_err(|error| self.shown(error))
    }

    /// Requests an answer piece by piece. One that comes whole anyway is accepted.
    async fn open(&self, request: &ChatRequest) -> Result<Opened, ModelError> {
        let Prepared { request, body, draft } = self.prepare(request, true)?;
        let (door, busy) = self.way(&request)?;
        let mut frames = match door.stream(&request, body).await {
            Ok(frames) => frames,
            Err(NoAnswer::Lost(error)) => return Ok(Opened::Broken(busy, error)),
            Err(NoAnswer::Failed(error)) => return Err(self.failed(&busy, error)),
        };
        // An error before the first frame is an error of this call.
        let first = match frames.next().await.transpose() {
            // The status was a success, but the connection broke off.
            Err(error) if error.kind == ModelErrorKind::Unavailable => {
                return Ok(Opened::Broken(busy, error));
            }
            first => first.map_err(|error| self.failed(&busy, error))?,
        };
        if first.is_none() {
            let whole = frames.whole().map_err(|error| self.failed(&busy, error))?;
            let Some(answer) = whole else {
                let what = "the streamed answer has no server-sent events";
                return Ok(Opened::Broken(busy, unreadable(what, "")));
            };
            return Ok(Opened::Whole(Box::new(self.read(&answer, draft)?)));
        }
        let reader = Reader::new(self.config.provider, draft);
        Ok(Opened::Pieces(Box::new(Reading::new(frames, first, reader, busy))))
    }

    /// Requests an answer piece by piece; a server that refuses to stream is asked for the whole from then on.
    async fn open_or_whole(&self, request: &ChatRequest) -> Result<Opened, ModelError> {
        match self.open(request).await {
            Err(error) if is_of_streaming(&error) => {
                let whole = self.whole(request).await?;
                self.streaming.refused();
                Ok(Opened::Whole(Box::new(whole)))
            }
            opened => opened,
        }
    }

    /// Reads an answer to its end, and counts its pieces.
    async fn read_on(&self, mut reading: Reading) -> (usize, Result<ChatResponse, ModelError>) {
        let mut pieces = 0;
        let end = loop {
            match reading.chunk().await {
                Some(Ok(ChatChunk::Done(response))) => break Ok(*response),
                Some(Ok(_)) => pieces += 1,
                Some(Err(error)) => break Err(self.failed(reading.busy(), error)),
                None => break Err(broke_off()),
            }
        };
        (pieces, end)
    }

    /// Every error of an answer passes through here.
    fn shown(&self, error: ModelError) -> ModelError {
        failure::shown(error, self.config.api_key.as_ref())
    }

    /// As [`shown`](Self::shown), and records a failure of the server that was to answer.
    fn failed(&self, busy: &Busy, error: ModelError) -> ModelError {
        self.workers.failed(busy, &error);
        self.shown(error)
    }
}

/// A request that is ready to be sent.
struct Prepared<'r> {
    request: Cow<'r, ChatRequest>,
    body: Map<String, Value>,
    draft: Draft,
}

/// The outcome of requesting an answer piece by piece.
enum Opened {
    Pieces(Box<Reading>),
    Whole(Box<ChatResponse>),
    /// The connection was lost before the first piece, or what came is not an answer.
    Broken(Busy, ModelError),
}

fn broke_off() -> ModelError {
    unreadable("the answer broke off before its end", "")
}

impl ChatModel for RemoteModel {
    fn name(&self) -> &str {
        &self.config.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
            .with_prefill(self.config.prefill)
            .with_allowed_tools(self.config.allowed_tools || self.config.grammar)
            .with_cache_marks(self.config.cache_marks)
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move {
            let mut chunks = self.stream(request).await?;
            while let Some(chunk) = chunks.next().await {
                if let ChatChunk::Done(response) = chunk? {
                    return Ok(*response);
                }
            }
            Err(broke_off())
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        self.answer(request).boxed()
    }
}
