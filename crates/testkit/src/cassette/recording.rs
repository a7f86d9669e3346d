//! Records requests and answers.

use super::exchange::{Chunk, Exchange, request_json};
use super::secrets::Secrets;
use super::{Cassette, CassetteError};
use foldback_llm::{
    Capabilities, ChatChunk, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError,
    ModelErrorKind,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A model whose every exchange is kept.
///
/// ```
/// use foldback_core::Message;
/// use foldback_llm::{ChatModel, ChatRequest, ScriptedModel};
/// use foldback_testkit::cassette::{Recording, Replay};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let request = ChatRequest::new([Message::user("你好")]);
/// let recording = Recording::new(ScriptedModel::new(["hello".into()]));
/// recording.complete(&request).await?;
///
/// let replay = Replay::new(recording.cassette()?);
/// assert_eq!(replay.complete(&request).await?.message.text(), "hello");
/// replay.finish()?;
/// # Ok(())
/// # }
/// ```
pub struct Recording<M> {
    model: M,
    secrets: Secrets,
    exchanges: Mutex<Vec<Exchange>>,
}

impl<M: ChatModel> Recording<M> {
    /// Returns a recording of a model.
    #[must_use]
    pub fn new(model: M) -> Self {
        Self { model, secrets: Secrets::default(), exchanges: Mutex::new(Vec::new()) }
    }

    /// Returns the same recording, which never keeps this text, such as a key that a provider might
    /// repeat in an error or a tool in a result: neither as it is, nor escaped in JSON or in a string
    /// of JSON, nor split across the pieces of a stream.
    #[must_use]
    pub fn without(mut self, secret: &str) -> Self {
        self.secrets.add(secret);
        self
    }

    /// Returns what was kept so far.
    ///
    /// # Errors
    /// When a message cannot be written as JSON without the secrets.
    pub fn cassette(&self) -> Result<Cassette, CassetteError> {
        let exchanges = self.exchanges().clone();
        let exchanges = exchanges.into_iter().zip(2..).map(|(exchange, line)| {
            exchange.without(&self.secrets).map_err(|error| CassetteError::Line {
                line,
                expected: "an exchange",
                reason: error.to_string(),
            })
        });
        let model = self.secrets.hide(self.model.name()).into_owned();
        Ok(Cassette { model, exchanges: exchanges.collect::<Result<_, _>>()? })
    }

    fn exchanges(&self) -> MutexGuard<'_, Vec<Exchange>> {
        // Each change is complete in itself, whatever panicked elsewhere.
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an exchange, and returns its index.
    fn begin(&self, request: &ChatRequest) -> Result<usize, ModelError> {
        let request = request_json(request).map_err(|error| {
            let message = format!("the request cannot be recorded: {error}");
            ModelError::new(ModelErrorKind::Request, message)
        })?;
        let mut exchanges = self.exchanges();
        exchanges.push(Exchange::begun(request));
        Ok(exchanges.len() - 1)
    }

    fn note(&self, place: usize, change: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.exchanges().get_mut(place) {
            change(exchange);
        }
    }

    fn note_chunk(&self, place: usize, chunk: &Result<ChatChunk, ModelError>) {
        self.note(place, |exchange| match chunk {
            Ok(ChatChunk::Done(response)) => exchange.end_with(Ok(response)),
            // What has come so far is void.
            Ok(ChatChunk::Again) => exchange.chunks.clear(),
            Ok(chunk) => exchange.chunks.extend(Chunk::of(chunk)),
            Err(error) => exchange.end_with(Err(error)),
        });
    }
}

impl<M: ChatModel> ChatModel for Recording<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move {
            let place = self.begin(request)?;
            let result = self.model.complete(request).await;
            self.note(place, |exchange| exchange.end_with(result.as_ref()));
            result
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move {
            let place = self.begin(request)?;
            match self.model.stream(request).await {
                Ok(stream) => {
                    Ok(stream.inspect(move |chunk| self.note_chunk(place, chunk)).boxed())
                }
                Err(error) => {
                    self.note(place, |exchange| exchange.end_with(Err(&error)));
                    Err(error)
                }
            }
        }
        .boxed()
    }
}
