//! A model behind an API: OpenAI's chat-completions or Anthropic's messages.
//!
//! A request is written in the provider's words (`openai_request.rs`, `anthropic_request.rs`), goes out
//! through the door to its address (`door.rs`), and the answer is read, whole or frame by frame
//! (`openai_answer.rs`, `anthropic_answer.rs`). What messages carry stays as it is: arguments that are no
//! JSON, white space around texts, a piece of a call without an index.

use crate::anthropic_answer::AnthropicFrames;
use crate::check::check;
use crate::door::{Door, Frames};
use crate::draft::Draft;
use crate::failure::unreadable;
use crate::openai_answer::OpenAiFrames;
use crate::openai_request::ends_with_beginning;
use crate::workers::{Busy, Workers};
use crate::{
    ModelConfig, Provider, ToolCalls, anthropic_answer, anthropic_request, diversity, failure,
    hermes, openai_answer, openai_request, tool_choice,
};
use foldback_core::Message;
use foldback_llm::{
    Capabilities, ChatChunk, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError,
    ModelErrorKind, ToolNames,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::VecDeque;
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
/// let messages = vec![Message::user("What is a ski rental problem?").into()];
/// let answer = model.complete(&ChatRequest { messages, ..ChatRequest::default() }).await?;
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
        Capabilities {
            prefill: self.config.prefill,
            allowed_tools: self.config.allowed_tools || self.config.grammar,
            cache_marks: self.config.cache_marks,
        }
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
                return Err(unreadable(what, ""));
            }
            let reader = match self.config.provider {
                Provider::Anthropic => Reader::Anthropic(AnthropicFrames::new(draft)),
                Provider::OpenAi | Provider::OpenAiCompatible => {
                    Reader::OpenAi(OpenAiFrames::new(draft))
                }
            };
            let ready = VecDeque::new();
            let reading = Reading { frames, next: first, reader: Some(reader), ready, _busy: busy };
            let chunks = stream::unfold(reading, move |mut reading| async move {
                let chunk = reading.chunk().await?;
                Some((chunk.map_err(|error| self.shown(error)), reading))
            });
            Ok(chunks.boxed())
        }
        .boxed()
    }
}

/// Reads the frames of one API.
enum Reader {
    OpenAi(OpenAiFrames),
    Anthropic(AnthropicFrames),
}

impl Reader {
    fn has_ended(&self) -> bool {
        match self {
            Self::OpenAi(reader) => reader.ended,
            Self::Anthropic(reader) => reader.ended,
        }
    }
}

/// An answer that is being read.
struct Reading {
    frames: Frames,
    next: Option<String>,
    /// None when the end was told, or the stream has failed.
    reader: Option<Reader>,
    ready: VecDeque<ChatChunk>,
    /// The server is at it as long as this is read.
    _busy: Busy,
}

impl Reading {
    async fn chunk(&mut self) -> Option<Result<ChatChunk, ModelError>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            let reader = self.reader.as_mut()?;
            if reader.has_ended() {
                // What a server keeps open behind the end is not waited for.
                return self.end();
            }
            let frame = match self.next.take() {
                Some(frame) => Some(Ok(frame)),
                None => self.frames.next().await,
            };
            let read = match frame {
                Some(Ok(frame)) => match reader {
                    Reader::OpenAi(reader) => reader.read(&frame, &mut self.ready),
                    Reader::Anthropic(reader) => reader.read(&frame, &mut self.ready),
                },
                Some(Err(error)) => Err(error),
                None => return self.end(),
            };
            if let Err(error) = read {
                self.reader = None;
                self.ready.clear();
                return Some(Err(error));
            }
        }
    }

    /// What the end brings: what the reader held back, then the whole answer.
    fn end(&mut self) -> Option<Result<ChatChunk, ModelError>> {
        let response = match self.reader.take()? {
            Reader::OpenAi(reader) => reader.finish(&mut self.ready),
            Reader::Anthropic(reader) => reader.finish(&mut self.ready),
        };
        let done = match response {
            Ok(response) => ChatChunk::Done(Box::new(response)),
            Err(error) => {
                self.ready.clear();
                return Some(Err(error));
            }
        };
        self.ready.push_back(done);
        self.ready.pop_front().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use proptest::prelude::*;

    const OPENAI: [&str; 3] = [
        r#"{"choices":[{"delta":{"role":"assistant","content":"上","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"t","arguments":"{\"n\""}}]}}]}"#,
        r#"{"model":"m","choices":[{"delta":{"reasoning":"x","tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}},"error":null}"#,
    ];

    const ANTHROPIC: [&str; 6] = [
        r#"{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":4}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"t","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ];

    fn draft() -> Draft {
        Draft::new(&ChatRequest::default(), ToolNames::default(), "m")
    }

    /// Any JSON of some depth.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop_oneof![any::<u64>(), Just(u64::MAX)].prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z{}\"\\\\上🌧\u{300}]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("type|id|index|[a-z]{1,9}", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The value with the part at a place replaced, counted in the order of the text.
    fn replace(value: &mut Value, place: &mut usize, by: &Value) {
        if *place == 0 {
            *value = by.clone();
        }
        *place = place.wrapping_sub(1);
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| replace(item, place, by)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| replace(member, place, by));
            }
            _ => {}
        }
    }

    /// Reads frames with both readers; either ends in an answer or an error.
    fn read_all(frames: &[String]) {
        let mut ready = VecDeque::new();
        let (mut openai, mut anthropic) =
            (OpenAiFrames::new(draft()), AnthropicFrames::new(draft()));
        let openai_failed = frames.iter().any(|frame| openai.read(frame, &mut ready).is_err());
        let anthropic_failed =
            frames.iter().any(|frame| anthropic.read(frame, &mut ready).is_err());
        for response in [
            (!openai_failed).then(|| openai.finish(&mut VecDeque::new())),
            (!anthropic_failed).then(|| anthropic.finish(&mut VecDeque::new())),
        ] {
            if let Some(Ok(response)) = response {
                let ids: std::collections::BTreeSet<_> =
                    response.message.tool_calls().iter().map(|call| &call.id).collect();
                assert_eq!(ids.len(), response.message.tool_calls().len());
            }
        }
        for frame in frames {
            if let Some(answer) = json::parse(frame) {
                let _ = openai_answer::read(&answer, draft());
                let _ = anthropic_answer::read(&answer, draft());
            }
        }
    }

    proptest! {
        #[test]
        fn no_frame_makes_a_reader_panic(
            replacements in prop::collection::vec((0..9_usize, 0..30_usize, any_json()), 1..3),
            cut in 0..200_usize,
        ) {
            let mut frames: Vec<String> =
                OPENAI.iter().chain(&ANTHROPIC).map(|frame| (*frame).to_owned()).collect();
            let mut last = String::new();
            for (which, mut place, by) in replacements {
                let mut value = json::parse(&frames[which]).unwrap();
                replace(&mut value, &mut place, &by);
                frames[which] = value.to_string();
                last.clone_from(&frames[which]);
            }
            let of_openai: Vec<String> = frames.drain(..OPENAI.len()).collect();
            read_all(&of_openai);
            read_all(&frames);
            let cut: String = last.chars().take(cut).collect();
            read_all(&[cut]);
        }
    }

    #[test]
    fn the_frames_of_that_test_are_an_answer() {
        let mut ready = VecDeque::new();
        let mut openai = OpenAiFrames::new(draft());
        let mut anthropic = AnthropicFrames::new(draft());
        OPENAI.iter().for_each(|frame| openai.read(frame, &mut ready).unwrap());
        ANTHROPIC.iter().for_each(|frame| anthropic.read(frame, &mut ready).unwrap());
        for response in [openai.finish(&mut ready).unwrap(), anthropic.finish(&mut ready).unwrap()]
        {
            assert_eq!(response.message.tool_calls()[0].arguments, "{\"n\":1}");
        }
    }
}
