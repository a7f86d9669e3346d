//! Failures of the model: they name the model, and temporary ones are reported to the user.

use super::lines::elapsed;
use super::screen::Screen;
use crate::settings::InForce;
use foldback_llm::{
    Capabilities, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError, ModelErrorKind,
};
use foldback_providers::{ApiKey, ModelConfig, ModelSources};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A model whose failures say which model it was.
pub(crate) struct Named<M> {
    pub(crate) model: M,
    /// The address of its server.
    pub(crate) at: String,
    /// The source of its key, in words.
    pub(crate) key: String,
}

/// The screen that temporary failures are reported to, once there is one.
pub(crate) type Watched = Arc<OnceLock<Arc<Screen>>>;

/// Reports a temporary failure, and the wait before the model is asked again.
pub(crate) fn tell(watched: &Watched) -> impl Fn(&ModelError, Duration) + Send + Sync + 'static {
    let watched = Arc::clone(watched);
    move |error, wait| {
        if let Some(screen) = watched.get() {
            screen.note(&format!("no answer yet: {error}; asking again in {}", elapsed(wait)));
        }
    }
}

/// The source of a model's key, in words.
pub(crate) fn key_source(
    sources: &ModelSources,
    config: &ModelConfig,
    settings: &InForce,
) -> String {
    let value = |variable: &str| {
        let value = sources.environment.get(variable).map(|value| value.trim())?;
        (!value.is_empty()).then(|| ApiKey::new(value))
    };
    // In order of precedence, as they are read.
    let variables = ["FOLDBACK_API_KEY"].into_iter().chain(config.provider.usual_key());
    let mut holding = variables.filter(|variable| value(variable) == config.api_key);
    match (&config.api_key, holding.next()) {
        (None, _) => {
            "it has no key: none in FOLDBACK_API_KEY or the settings is for this address".to_owned()
        }
        (Some(_), Some(variable)) => format!("its key is taken from {variable}"),
        (Some(_), None) => match settings.source_of("model.api_key") {
            Some(place) => format!("its key is taken from {place}"),
            None => "its key is taken from the settings".to_owned(),
        },
    }
}

impl<M: ChatModel> Named<M> {
    fn failed(&self, error: ModelError) -> ModelError {
        let (model, at) = (self.model.name(), &self.at);
        let hint = match error.kind {
            ModelErrorKind::Authentication => format!("; {}", self.key),
            _ => String::new(),
        };
        let message = format!("{} (model {model} at {at}{hint})", error.message);
        ModelError { message, ..error }
    }
}

impl<M: ChatModel> ChatModel for Named<M> {
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
        async move {
            let pieces = self.model.stream(request).await.map_err(|error| self.failed(error))?;
            Ok(pieces.map(|piece| piece.map_err(|error| self.failed(error))).boxed())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_llm::ScriptedModel;
    use foldback_providers::Provider;
    use futures::stream;

    const AT: &str = "http://127.0.0.1:8000/v1";

    fn refused(kind: ModelErrorKind) -> ModelError {
        ModelError::new(kind, "the provider answered with status 401")
    }

    /// A model that begins an answer, and breaks off.
    struct Breaking;

    impl ChatModel for Breaking {
        fn name(&self) -> &str {
            "qwen3"
        }

        fn capabilities(&self) -> Capabilities {
            ScriptedModel::new([]).capabilities()
        }

        fn complete<'a>(
            &'a self,
            _request: &'a ChatRequest,
        ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
            async { Err(refused(ModelErrorKind::Authentication)) }.boxed()
        }

        fn stream<'a>(
            &'a self,
            _request: &'a ChatRequest,
        ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
            async { Ok(stream::iter([Err(refused(ModelErrorKind::Request))]).boxed()) }.boxed()
        }
    }

    #[tokio::test]
    async fn an_error_names_its_model() {
        let key = "its key is taken from OPENAI_API_KEY".to_owned();
        let model = Named { model: Breaking, at: AT.to_owned(), key };
        let request = ChatRequest::default();
        let told = model.complete(&request).await.unwrap_err().message;
        assert!(told.ends_with("8000/v1; its key is taken from OPENAI_API_KEY)"), "{told}");
        let mut pieces = model.stream(&request).await.unwrap();
        let told = pieces.next().await.unwrap().unwrap_err().message;
        assert_eq!(told, format!("the provider answered with status 401 (model qwen3 at {AT})"));
    }

    #[test]
    fn a_key_is_told_from_where_it_is() {
        let told = |variables: &[(&str, &str)], key: Option<&str>| {
            let named = variables.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned()));
            let sources = ModelSources::default().with_environment(named.collect());
            let mut config = ModelConfig::new(Provider::OpenAi, AT, "gpt-5");
            config.api_key = key.map(ApiKey::new);
            key_source(&sources, &config, &InForce::default())
        };
        let usual = ("OPENAI_API_KEY", "b");
        assert_eq!(told(&[usual], Some("b")), "its key is taken from OPENAI_API_KEY");
        let both = [("FOLDBACK_API_KEY", " a "), usual];
        assert_eq!(told(&both, Some("a")), "its key is taken from FOLDBACK_API_KEY");
        assert_eq!(told(&[usual], Some("c")), "its key is taken from the settings");
        assert!(told(&[], None).starts_with("it has no key"));
    }
}
