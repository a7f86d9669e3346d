//! Attempts at an answer of the model, as whoever watches is told of those that fail.

use super::screen::Screen;
use foldback_llm::{
    Capabilities, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError, ModelErrorKind,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::sync::{Arc, OnceLock};

/// A model each of whose failures says which model it was. Of one that passes, after which the model is
/// asked again, whoever watches is told.
pub(crate) struct Attempts<M> {
    pub(crate) model: M,
    /// Where it is served.
    pub(crate) at: String,
    /// Whoever watches, once somebody does.
    pub(crate) watched: Watched,
}

/// Whoever watches, once somebody does.
pub(crate) type Watched = Arc<OnceLock<Arc<Screen>>>;

impl<M: ChatModel> Attempts<M> {
    fn failed(&self, error: ModelError) -> ModelError {
        let error = named(error, self.model.name(), &self.at);
        if let (true, Some(screen)) = (error.kind.is_transient(), self.watched.get()) {
            screen.note(&format!("no answer yet: {error}"));
        }
        error
    }
}

/// The error with the model that it is of, and what to look at.
fn named(error: ModelError, model: &str, at: &str) -> ModelError {
    let hint = match error.kind {
        ModelErrorKind::Authentication => {
            "; its key is taken from FOLDBACK_API_KEY or the settings"
        }
        _ => "",
    };
    let message = format!("{} (model {model} at {at}{hint})", error.message);
    ModelError { message, ..error }
}

impl<M: ChatModel> ChatModel for Attempts<M> {
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
        async move { self.model.complete(request).await.map_err(|error| self.failed(error)) }
            .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move { self.model.stream(request).await.map_err(|error| self.failed(error)) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_model() {
        let told = |kind| {
            let error = ModelError::new(kind, "the provider answered with status 401");
            named(error, "qwen3", "http://127.0.0.1:8000/v1").message
        };
        assert_eq!(
            told(ModelErrorKind::Request),
            "the provider answered with status 401 (model qwen3 at http://127.0.0.1:8000/v1)"
        );
        assert!(
            told(ModelErrorKind::Authentication).ends_with("FOLDBACK_API_KEY or the settings)")
        );
    }
}
