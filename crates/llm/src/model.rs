//! The interface to a chat model.

use crate::{ChatRequest, ChatResponse, ChatStream, ModelError};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use std::sync::Arc;

/// A model that answers chats. Implementations may be shared between tasks.
pub trait ChatModel: Send + Sync {
    /// Returns the model's name, as its provider knows it.
    fn name(&self) -> &str;

    /// Returns what the provider offers; a request that needs more is rendered in the nearest way
    /// that is supported.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the provider cannot be reached, refuses the request, or sends an answer that cannot be
    /// read.
    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>>;

    /// Answers a request piece by piece. The last item is the whole response. A model that does not stream
    /// gives the text and each call in one piece. After [`ChatChunk::Again`](crate::ChatChunk::Again) the
    /// answer begins anew, and what came before is void.
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
    /// The model can continue a given beginning of the last assistant message.
    pub prefill: bool,
    /// A set of allowed tools can be sent in addition to all tools.
    pub allowed_tools: bool,
    /// The end of a cached prefix can be marked.
    pub cache_marks: bool,
}

impl Capabilities {
    /// Sets whether the beginning of an answer can be continued.
    #[must_use]
    pub fn with_prefill(self, prefill: bool) -> Self {
        Self { prefill, ..self }
    }

    /// Sets whether a set of allowed tools can be sent.
    #[must_use]
    pub fn with_allowed_tools(self, allowed_tools: bool) -> Self {
        Self { allowed_tools, ..self }
    }

    /// Sets whether cache marks are accepted.
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
