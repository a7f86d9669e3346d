//! Which model to ask, where, and how patiently.

mod address;
mod chat_template;
mod load;
mod prices;
mod provider;
mod sources;
mod timeouts;
mod window;

pub use address::{is_same_server, public_url};
pub use chat_template::{CallIds, ChatTemplate, Family, GivenTemplate, SystemRole, Turns};
pub(crate) use prices::is_marked_openai;
pub use provider::Provider;
pub use sources::{ModelFlags, ModelSettings, ModelSources};
pub use timeouts::Timeouts;

use crate::ApiKey;
use foldback_core::Prices;
use foldback_llm::{ModelError, ModelErrorKind, RetryPolicy, TokenPrices};
use prices::{usual_least_cached, usual_prices};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How tools are told to a server, and calls read from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolCalls {
    /// As members of the request and of the answer: `tools`, `tool_calls`.
    #[default]
    Native,
    /// As text in the format of Hermes, for servers that know none: the tools stand in the system
    /// prompt, and the answer's text is read for calls.
    Hermes,
}

impl ToolCalls {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Native, Self::Hermes];

    /// Its name, as settings say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Hermes => "hermes",
        }
    }
}

/// Everything that is needed to ask one model.
///
/// ```
/// use foldback_providers::{ModelConfig, ModelFlags, ModelSources, Provider};
///
/// let flags = ModelFlags::default().with_base_url("http://127.0.0.1:8000/v1");
/// let environment = [("FOLDBACK_MODEL".into(), "qwen3-32b".into())].into();
/// let sources = ModelSources::default().with_flags(flags).with_environment(environment);
/// let config = ModelConfig::load(&sources)?;
/// assert_eq!((config.name.as_str(), config.provider), ("qwen3-32b", Provider::OpenAiCompatible));
/// # Ok::<(), foldback_llm::ModelError>(())
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// The model, as its provider knows it.
    pub name: String,
    /// Whose API is spoken.
    pub provider: Provider,
    /// Where it is served: what stands before `chat/completions` or `messages`.
    pub base_url: String,
    /// The key; servers of one's own often want none.
    pub api_key: Option<ApiKey>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How often to ask again.
    pub retry: RetryPolicy,
    /// What its input tokens cost, relative to each other.
    pub prices: Prices,
    /// What its tokens cost in money, where that was told.
    pub token_prices: Option<TokenPrices>,
    /// The shortest prefix that its provider caches, in tokens.
    pub least_cached_tokens: u64,
    /// Whether the model goes on from the beginning of an answer. Many refuse.
    pub prefill: bool,
    /// Whether `tool_choice` may name a set of tools (`allowed_tools`).
    pub allowed_tools: bool,
    /// Whether marks say where a cached prefix ends.
    pub cache_marks: bool,
    /// Whether cached prefixes shall live an hour instead of five minutes (dearer to write;
    /// Anthropic).
    pub long_cache: bool,
    /// A header that carries the session's name, for routers that keep a session on one worker.
    pub session_header: Option<String>,
    /// Further addresses at which the same model is served. A session stays at one of them all, by
    /// consistent hashing; one that cannot be reached is left out for a while.
    pub workers: Vec<String>,
    /// How tools are told, and calls read, where that was said.
    pub tool_calls: Option<ToolCalls>,
    /// Whether requests carry a grammar that holds the model to calls of allowed tools, with arguments
    /// of their schemas, and to words: for servers that decode by one (llama.cpp, vLLM).
    pub grammar: bool,
    /// The seed of varied words around the results of tools; without one they stand as they are.
    pub diversity: Option<u64>,
    /// The tokens of its window, request and answer together, where that is known.
    pub context_tokens: Option<usize>,
    /// Whether the window is what the server tells of itself.
    pub(crate) is_window_told: bool,
    /// The greatest number of tokens of an answer that is not bounded otherwise, where that was said.
    pub max_tokens: Option<u32>,
    /// Whether answers come piece by piece, so that only silence is bounded, and not the whole of them.
    pub stream: bool,
    /// What was said of its chat template.
    pub template: GivenTemplate,
    /// Whether the server takes that a tool has to be called; else that is said in words.
    pub required_calls: bool,
}

impl ModelConfig {
    /// A model at a place, everything else as usual.
    #[must_use]
    pub fn new(provider: Provider, base_url: &str, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            provider,
            base_url: base_url.to_owned(),
            api_key: None,
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            prices: usual_prices(provider, name),
            token_prices: None,
            least_cached_tokens: usual_least_cached(provider, name),
            prefill: false,
            allowed_tools: provider == Provider::OpenAi,
            cache_marks: match provider {
                Provider::Anthropic => true,
                Provider::OpenAi => is_marked_openai(name),
                Provider::OpenAiCompatible => false,
            },
            long_cache: false,
            session_header: None,
            workers: Vec::new(),
            tool_calls: None,
            grammar: false,
            diversity: None,
            context_tokens: None,
            is_window_told: false,
            max_tokens: None,
            stream: true,
            template: GivenTemplate::default(),
            required_calls: true,
        }
    }

    /// The same with a key.
    #[must_use]
    pub fn with_api_key(self, key: ApiKey) -> Self {
        Self { api_key: Some(key), ..self }
    }

    /// The same, waiting so long.
    #[must_use]
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// The same, asked again by this policy.
    #[must_use]
    pub fn with_retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// The same, with input tokens at these prices, relative to each other.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices, ..self }
    }

    /// The same, with prefixes of so many tokens or more cached.
    #[must_use]
    pub fn with_least_cached_tokens(self, least_cached_tokens: u64) -> Self {
        Self { least_cached_tokens, ..self }
    }

    /// The same, with tokens at these prices in money; input tokens cost as they say.
    #[must_use]
    pub fn with_token_prices(self, prices: TokenPrices) -> Self {
        Self { prices: prices.of_input(), token_prices: Some(prices), ..self }
    }

    /// The same, where the model goes on from the beginning of an answer, or does not.
    #[must_use]
    pub fn with_prefill(self, prefill: bool) -> Self {
        Self { prefill, ..self }
    }

    /// The same, where `tool_choice` may name a set of tools, or may not.
    #[must_use]
    pub fn with_allowed_tools(self, allowed_tools: bool) -> Self {
        Self { allowed_tools, ..self }
    }

    /// The same, where marks say where a cached prefix ends, or do not.
    #[must_use]
    pub fn with_cache_marks(self, cache_marks: bool) -> Self {
        Self { cache_marks, ..self }
    }

    /// The same, where cached prefixes live an hour instead of five minutes, or do not.
    #[must_use]
    pub fn with_long_cache(self, long_cache: bool) -> Self {
        Self { long_cache, ..self }
    }

    /// The same, with a header that carries the session's name.
    #[must_use]
    pub fn with_session_header(self, header: &str) -> Self {
        Self { session_header: Some(header.to_owned()), ..self }
    }

    /// The same, served at these addresses as well.
    #[must_use]
    pub fn with_workers<'a>(self, addresses: impl IntoIterator<Item = &'a str>) -> Self {
        Self { workers: addresses.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// The same, with tools told and calls read this way.
    #[must_use]
    pub fn with_tool_calls(self, tool_calls: ToolCalls) -> Self {
        Self { tool_calls: Some(tool_calls), ..self }
    }

    /// The same, with a grammar in its requests, or without.
    #[must_use]
    pub fn with_grammar(self, grammar: bool) -> Self {
        Self { grammar, ..self }
    }

    /// The same, with the results of tools in words that this seed varies.
    #[must_use]
    pub fn with_diversity(self, seed: u64) -> Self {
        Self { diversity: Some(seed), ..self }
    }

    /// The same with a window of so many tokens; `None` where that is not known.
    #[must_use]
    pub fn with_context_tokens(self, context_tokens: impl Into<Option<usize>>) -> Self {
        Self { context_tokens: context_tokens.into(), is_window_told: false, ..self }
    }

    /// The same with answers of at most so many tokens; `None` for the usual bound.
    #[must_use]
    pub fn with_max_tokens(self, max_tokens: impl Into<Option<u32>>) -> Self {
        Self { max_tokens: max_tokens.into(), ..self }
    }

    /// The same, with answers that come piece by piece, or whole.
    #[must_use]
    pub fn with_stream(self, stream: bool) -> Self {
        Self { stream, ..self }
    }

    /// The same with a chat template that can say this.
    #[must_use]
    pub fn with_template(self, template: ChatTemplate) -> Self {
        Self { template: template.into(), ..self }
    }

    /// The same with a server that takes that a tool has to be called, or does not.
    #[must_use]
    pub fn with_required_calls(self, required_calls: bool) -> Self {
        Self { required_calls, ..self }
    }

    /// How tools are told, and calls read.
    #[must_use]
    pub fn tool_calls(&self) -> ToolCalls {
        self.tool_calls.unwrap_or_default()
    }

    /// What its chat template can say: all that nothing was said of.
    #[must_use]
    pub fn chat_template(&self) -> ChatTemplate {
        self.template.or(ChatTemplate::default())
    }

    /// Checks what does not fit each other.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let (name, provider) = (&self.name, self.provider.name());
        let is_compatible = self.provider == Provider::OpenAiCompatible;
        let is_hermes = self.tool_calls() == ToolCalls::Hermes;
        if is_hermes && !is_compatible {
            return Err(wrong(format!(
                "tool_calls = \"hermes\" is for servers without tool calls (openai-compatible), but \
                 the provider of the model {name:?} is {provider}, which has them: leave it out"
            )));
        }
        if self.grammar && !is_hermes {
            return Err(wrong(format!(
                "the grammar of the model {name:?} describes calls in the Hermes format: grammar = true \
                 needs tool_calls = \"hermes\""
            )));
        }
        if !self.workers.is_empty() && !is_compatible {
            return Err(wrong(format!(
                "workers are several servers of one model (openai-compatible), but the provider of the \
                 model {name:?} is {provider}"
            )));
        }
        if self.template != GivenTemplate::default() && !is_compatible {
            return Err(wrong(format!(
                "family, call_ids, parallel_calls, turns and system describe the chat template of a \
                 self-hosted server (openai-compatible), but the provider of the model {name:?} is \
                 {provider}: leave them out"
            )));
        }
        self.check_window()
    }
}

impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelConfig")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("base_url", &public_url(&self.base_url))
            .field("api_key", &self.api_key)
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .field("prices", &self.prices)
            .field("token_prices", &self.token_prices)
            .field("least_cached_tokens", &self.least_cached_tokens)
            .field("prefill", &self.prefill)
            .field("allowed_tools", &self.allowed_tools)
            .field("cache_marks", &self.cache_marks)
            .field("long_cache", &self.long_cache)
            .field("session_header", &self.session_header)
            .field("workers", &self.workers.iter().map(|at| public_url(at)).collect::<Vec<_>>())
            .field("tool_calls", &self.tool_calls)
            .field("grammar", &self.grammar)
            .field("diversity", &self.diversity)
            .field("context_tokens", &self.context_tokens)
            .field("is_window_told", &self.is_window_told)
            .field("max_tokens", &self.max_tokens)
            .field("stream", &self.stream)
            .field("template", &self.template)
            .field("required_calls", &self.required_calls)
            .finish()
    }
}

fn wrong(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Configuration, message)
}
