//! A model behind an API: OpenAI's chat-completions or Anthropic's messages.
//!
//! A request is written in the provider's words (`openai_request.rs`, `anthropic_request.rs`), goes out
//! through the door to its address (`door.rs`), and the answer is read, whole or frame by frame
//! (`openai_answer.rs`, `anthropic_answer.rs`). What messages carry stays as it is: arguments that are no
//! JSON, white space around texts, a piece of a call without an index.

mod reading;

use crate::check::check;
use crate::door::Door;
use crate::draft::Draft;
use crate::failure::unreadable;
use crate::openai_request::ends_with_beginning;
use crate::workers::{Busy, Workers};
use crate::{
    ModelConfig, Provider, ToolCalls, anthropic_answer, anthropic_request, diversity, failure,
    hermes, openai_answer, openai_request, tool_choice,
};
use foldback_core::Message;
use foldback_llm::{
    Capabilities, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError, ModelErrorKind,
    ToolNames,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use reading::{Reader, Reading};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A model that is asked over HTTP.
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
}

impl fmt::Debug for RemoteModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteModel").field("config", &self.config).finish_non_exhaustive()
    }
}

impl RemoteModel {
    /// A model as the settings say. Nothing is sent yet.
    ///
    /// # Errors
    /// When a base URL is no `http` or `https` address, the key cannot stand in a header, there is no
    /// TLS, or settings do not fit each other.
    pub fn new(config: ModelConfig) -> Result<Self, ModelError> {
        config.check()?;
        let addresses = std::iter::once(&config.base_url).chain(&config.workers);
        let doors = addresses.map(|at| Ok((at.clone(), Door::new(&config, at)?)));
        let workers = Arc::new(Workers::new(doors.collect::<Result<_, ModelError>>()?));
        Ok(Self { config, workers })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The request as it goes out, its body, and the answer that is to be put together.
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
        if config.tool_calls == ToolCalls::Hermes {
            let plain = hermes::plain(&sent, config.grammar, config.prefill)?;
            beginning = (!request.tools.is_empty()).then_some(plain.beginning);
            (sent, grammar) = (Cow::Owned(plain.request), plain.grammar);
        } else if let Some(preference) = tool_choice::preference(request)
            && !ends_with_beginning(request)
        {
            sent.to_mut().messages.push(Arc::new(Message::system(&preference)));
        }
        let names = ToolNames::of_request(&sent);
        let mut body = match config.provider {
            Provider::Anthropic => anthropic_request::body(&sent, config, &names, streamed),
            Provider::OpenAi | Provider::OpenAiCompatible => {
                openai_request::body(&sent, config, &names, streamed)
            }
        }?;
        if let Some(grammar) = grammar {
            // As vLLM has it, and as llama.cpp: each passes over what it does not know.
            body.insert("structured_outputs".to_owned(), json!({ "grammar": grammar }));
            body.insert("grammar".to_owned(), Value::String(grammar));
        }
        let draft = Draft::new(request, names, &config.name);
        let draft = match beginning {
            Some(beginning) => draft.with_calls_in_text(&beginning),
            None => draft,
        };
        Ok(Prepared { request: sent, body, draft })
    }

    /// The way to the server for a request.
    fn way(&self, request: &ChatRequest) -> Result<(&Door, Busy), ModelError> {
        self.workers.choose(request.session.as_deref()).ok_or_else(|| {
            ModelError::new(ModelErrorKind::Configuration, "the model is served nowhere")
        })
    }

    /// Every error of an answer goes through here.
    fn shown(&self, error: ModelError) -> ModelError {
        failure::shown(error, self.config.api_key.as_ref())
    }

    /// The same where it is the server's that was to answer.
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
            let Prepared { request, body, draft } = self.prepare(request, false)?;
            let (door, busy) = self.way(&request)?;
            let answer = door.post(&request, body).await;
            let answer = answer.map_err(|error| self.failed(&busy, error))?;
            let response = match self.config.provider {
                Provider::Anthropic => anthropic_answer::read(&answer, draft),
                Provider::OpenAi | Provider::OpenAiCompatible => {
                    openai_answer::read(&answer, draft)
                }
            };
            response.map_err(|error| self.shown(error))
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move {
            let Prepared { request, body, draft } = self.prepare(request, true)?;
            let (door, busy) = self.way(&request)?;
            let frames = door.stream(&request, body).await;
            let mut frames = frames.map_err(|error| self.failed(&busy, error))?;
            // What goes wrong before the first frame is an error of this call.
            let first = frames.next().await.transpose();
            let first = first.map_err(|error| self.failed(&busy, error))?;
            if first.is_none() {
                let what = "the answer has no server-sent events, which a streamed one comes in";
                let error = frames.refusal().unwrap_or_else(|| unreadable(what, ""));
                return Err(self.shown(error));
            }
            let reader = Reader::new(self.config.provider, draft);
            let reading = Reading::new(frames, first, reader, busy);
            let chunks = stream::unfold(reading, move |mut reading| async move {
                let chunk = reading.chunk().await?;
                Some((chunk.map_err(|error| self.shown(error)), reading))
            });
            Ok(chunks.boxed())
        }
        .boxed()
    }
}
