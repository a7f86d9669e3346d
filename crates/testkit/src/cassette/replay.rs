//! Answers as recorded.

use super::difference::difference;
use super::exchange::{Exchange, request_json};
use super::secrets::Secrets;
use super::{Cassette, CassetteError};
use foldback_llm::{
    Capabilities, ChatChunk, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError,
    ModelErrorKind,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use serde_json::value::RawValue;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A model that answers from a cassette: call by call, and only if the request is the recorded one. Any
/// other request is refused, and the error names the first difference.
///
/// If calls run in parallel, their order may change from run to run; [`any_order`](Self::any_order)
/// searches for the request among all that have not been replayed yet.
pub struct Replay {
    model: String,
    capabilities: Capabilities,
    secrets: Secrets,
    any_order: bool,
    state: Mutex<State>,
}

struct State {
    /// Each exchange, and whether it was replayed.
    exchanges: Vec<(Exchange, bool)>,
    calls: usize,
    /// The first request that was refused.
    refused: Option<String>,
}

impl Replay {
    /// Returns a replay of a cassette.
    #[must_use]
    pub fn new(cassette: Cassette) -> Self {
        let exchanges = cassette.exchanges.into_iter().map(|exchange| (exchange, false)).collect();
        let state = State { exchanges, calls: 0, refused: None };
        Self {
            model: cassette.model,
            capabilities: Capabilities::default(),
            secrets: Secrets::default(),
            any_order: false,
            state: Mutex::new(state),
        }
    }

    /// Returns the same for calls in any order.
    #[must_use]
    pub fn any_order(self) -> Self {
        Self { any_order: true, ..self }
    }

    /// Returns the same with the capabilities of the recorded model.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// Returns the same with a text that the recording never kept.
    #[must_use]
    pub fn without(mut self, secret: &str) -> Self {
        self.secrets.add(secret);
        self
    }

    /// Checks that everything was replayed and nothing else was requested: the end of a test.
    ///
    /// # Errors
    /// When a request was refused, or exchanges are left.
    pub fn finish(&self) -> Result<(), CassetteError> {
        let state = self.state();
        if let Some(refused) = &state.refused {
            return Err(CassetteError::Request(refused.clone()));
        }
        let left = state.exchanges.iter().filter(|(_, played)| !played).count();
        match state.exchanges.iter().position(|(_, played)| !played) {
            None => Ok(()),
            Some(at) => Err(CassetteError::Left { left, all: state.exchanges.len(), next: at + 1 }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete in itself, whatever panicked elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the exchange of a request.
    fn play(&self, request: &ChatRequest) -> Result<Exchange, ModelError> {
        let asked = request_json(request)
            .and_then(|json| RawValue::from_string(self.secrets.hide_json(json.get()).into()));
        let refused = |message| ModelError::new(ModelErrorKind::Request, message);
        let asked = asked.map_err(|error| refused(format!("the request is not JSON: {error}")))?;
        let mut state = self.state();
        state.calls += 1;
        match state.find(&asked, self.any_order) {
            Ok(exchange) => Ok(exchange),
            Err(message) => {
                state.refused.get_or_insert_with(|| message.clone());
                Err(refused(message))
            }
        }
    }
}

impl State {
    fn find(&mut self, asked: &RawValue, any_order: bool) -> Result<Exchange, String> {
        let (call, all) = (self.calls, self.exchanges.len());
        let mut open = self.exchanges.iter_mut().filter(|(_, played)| !played);
        let Some(next) = open.next() else {
            return Err(format!("the cassette holds {all} exchanges, and this is call {call}"));
        };
        let Some(first) = difference(&next.0.request, asked) else {
            next.1 = true;
            return Ok(next.0.clone());
        };
        let others = if any_order { usize::MAX } else { 0 };
        for other in open.take(others) {
            if difference(&other.0.request, asked).is_none() {
                other.1 = true;
                return Ok(other.0.clone());
            }
        }
        Err(format!("call {call} is not the one that was recorded: {first}"))
    }
}

impl ChatModel for Replay {
    fn name(&self) -> &str {
        &self.model
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move { self.play(request)?.end() }.boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move {
            let exchange = self.play(request)?;
            let end = match exchange.end() {
                Err(error) if exchange.chunks.is_empty() => return Err(error),
                // It was recorded whole.
                Ok(response) if exchange.chunks.is_empty() => {
                    let chunks = response.into_chunks();
                    return Ok(stream::iter(chunks.into_iter().map(Ok)).boxed());
                }
                end => end.map(|response| ChatChunk::Done(Box::new(response))),
            };
            let chunks = exchange.chunks.into_iter().map(|chunk| Ok(ChatChunk::from(chunk)));
            Ok(stream::iter(chunks.chain([end])).boxed())
        }
        .boxed()
    }
}
