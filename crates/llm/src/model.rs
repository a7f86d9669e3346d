//! The port to a chat model.

use crate::{ChatRequest, ChatResponse, ChatStream, ModelError};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use std::sync::Arc;

/// A model that answers chats. Implementations may be shared between tasks.
pub trait ChatModel: Send + Sync {
    /// The model's name, as its provider knows it.
    fn name(&self) -> &str;

    /// What the provider offers; a request that asks for more is rendered in the nearest way that it
    /// does offer.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the provider cannot be reached, refuses the request, or answers what cannot be read.
    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>>;

    /// Answers a request piece by piece. The last item is the whole response. A model that does not
    /// stream gives the text and each call in one piece. Behind
    /// [`ChatChunk::Again`](crate::ChatChunk::Again) the answer begins anew, and what came before is void.
    ///
    /// # Errors
    /// As [`complete`](Self::complete); also in the middle of the stream.
    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move {
            let chunks = self.complete(request).await?.into_chunks();
            Ok(stream::iter(chunks.into_iter().map(Ok)).boxed())
        }
        .boxed()
    }
}

/// What a provider offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The last assistant message may be given the beginning of, for the model to go on from.
    pub prefill: bool,
    /// A set of allowed tools can be sent beside all tools.
    pub allowed_tools: bool,
    /// Marks say where a cached prefix ends.
    pub cache_marks: bool,
}

impl Capabilities {
    /// The same, going on from the beginning of an answer, or not.
    #[must_use]
    pub fn with_prefill(self, prefill: bool) -> Self {
        Self { prefill, ..self }
    }

    /// The same, taking a set of allowed tools, or not.
    #[must_use]
    pub fn with_allowed_tools(self, allowed_tools: bool) -> Self {
        Self { allowed_tools, ..self }
    }

    /// The same, taking cache marks, or not.
    #[must_use]
    pub fn with_cache_marks(self, cache_marks: bool) -> Self {
        Self { cache_marks, ..self }
    }
}

impl<M: ChatModel + ?Sized> ChatModel for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        (**self).complete(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        (**self).stream(request)
    }
}
