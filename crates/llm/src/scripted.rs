//! A model that answers from a script, for tests, examples and measurements.

mod answer;

pub use answer::Answer;

use crate::{
    Capabilities, ChatChunk, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError,
    ModelErrorKind, PrefixCache, RequestTokens, Usage,
};
use foldback_core::Estimate;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A model that gives a list of answers in order, or those of a function of the request. It keeps the
/// requests that it received, and takes as long as it is set to take: by tokio's clock, so that a test
/// with a paused clock does not wait.
///
/// A request whose choice of tools [does not fit](ChatRequest::check_tool_choice) is refused, as providers
/// refuse it.
///
/// The usage is counted with [`Estimate`], so it is the same on every run; a [`PrefixCache`], if the model
/// [has one](Self::with_cache), determines how much of the input is read from a cache and written there.
///
/// ```
/// use foldback_core::{Message, ToolCall};
/// use foldback_llm::{ChatModel, ChatRequest, ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), foldback_llm::ModelError> {
/// let model = ScriptedModel::new([
///     ToolCall::new("c1", "weather", r#"{"city": "杭州"}"#).into(),
///     "It rains.".into(),
/// ]);
/// let request = ChatRequest::new([Message::user("杭州天气?")]);
/// assert_eq!(model.complete(&request).await?.message.tool_calls()[0].name, "weather");
/// assert_eq!(model.complete(&request).await?.message.text(), "It rains.");
/// assert_eq!(model.calls(), 2);
/// assert!(model.complete(&request).await.is_err(), "the script is at its end");
/// # Ok(())
/// # }
/// ```
pub struct ScriptedModel {
    name: String,
    capabilities: Capabilities,
    script: Script,
    state: Mutex<State>,
}

enum Script {
    InOrder,
    Function(Box<dyn Fn(&ChatRequest) -> Answer + Send + Sync>),
}

#[derive(Default)]
struct State {
    /// The remaining answers of an ordered script.
    answers: VecDeque<Answer>,
    requests: Vec<ChatRequest>,
    usage: Usage,
    /// The provider's cache, and the time at which it was empty.
    cache: Option<(PrefixCache, Instant)>,
}

impl ScriptedModel {
    /// Creates a model with these answers.
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let state = State { answers: answers.into_iter().collect(), ..State::default() };
        Self::of(Script::InOrder, state)
    }

    /// Creates a model that answers every request by a function of it.
    #[must_use]
    pub fn answering(answer: impl Fn(&ChatRequest) -> Answer + Send + Sync + 'static) -> Self {
        Self::of(Script::Function(Box::new(answer)), State::default())
    }

    fn of(script: Script, state: State) -> Self {
        let name = "scripted".to_owned();
        Self { name, capabilities: Capabilities::default(), script, state: Mutex::new(state) }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Sets what the model offers.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// Puts the model behind a prefix cache.
    #[must_use]
    pub fn with_cache(self, cache: PrefixCache) -> Self {
        self.state().cache = Some((cache, Instant::now()));
        self
    }

    /// Returns how often it was asked.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.state().requests.len()
    }

    /// Returns the requests, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.state().requests.clone()
    }

    /// Returns how many answers of an ordered script are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.state().answers.len()
    }

    /// Returns the usage of all answers so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.state().usage
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so the state is whole even after a panic elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the request, and finds its answer.
    fn take(&self, request: &ChatRequest) -> Result<Played, ModelError> {
        let written = match &self.script {
            Script::Function(answer) => Some(answer(request)),
            Script::InOrder => None,
        };
        let mut state = self.state();
        state.requests.push(request.clone());
        request.check_tool_choice()?;
        let call = state.requests.len();
        let answer = written.or_else(|| state.answers.pop_front()).ok_or_else(|| {
            let message = format!("the script is at its end: there is no answer for call {call}");
            ModelError::new(ModelErrorKind::Configuration, message)
        })?;
        let tokens = RequestTokens::of(request, &Estimate);
        let usage = match &mut state.cache {
            Some((cache, begin)) => cache.request("", &tokens, begin.elapsed()).usage(0),
            None => Usage { input: tokens.ids.len() as u64, ..Usage::default() },
        };
        let delay = answer.delay();
        let (pieces, end) = answer.play(&self.name, usage);
        if let Ok(response) = &end {
            state.usage += response.usage;
        }
        Ok(Played { delay, pieces, end })
    }
}

/// An answer as it is sent.
struct Played {
    delay: Duration,
    pieces: Vec<answer::Piece>,
    end: Result<ChatResponse, ModelError>,
}

impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move {
            let played = self.take(request)?;
            let pieces: Duration = played.pieces.iter().map(|piece| piece.wait).sum();
            wait(played.delay + pieces).await;
            played.end
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move {
            let played = self.take(request)?;
            wait(played.delay).await;
            let end = match played.end {
                // Nothing was sent yet, so the request itself fails.
                Err(error) if played.pieces.is_empty() => return Err(error),
                end => end.map(|response| ChatChunk::Done(Box::new(response))),
            };
            let pieces = stream::iter(played.pieces).then(async |piece| {
                wait(piece.wait).await;
                Ok(piece.chunk)
            });
            Ok(pieces.chain(stream::iter([end])).boxed())
        }
        .boxed()
    }
}

/// Waits; needs no clock if there is nothing to wait for.
async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
