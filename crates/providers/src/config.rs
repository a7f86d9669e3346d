//! The settings of a model: its name, its address, and how long to wait for it.

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
use foldback_core::{CacheTerms, Prices};
use foldback_llm::{ModelError, ModelErrorKind, RetryPolicy, TokenPrices};
use prices::{usual_cache_life, usual_least_cached, usual_prices};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How tools are declared to a server, and how calls are read from its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolCalls {
    /// As members of the request and of the answer: `tools`, `tool_calls`.
    #[default]
    Native,
    /// As text in the Hermes format, for servers without tool calls: the tools are in the system
    /// prompt, and calls are read from the text of the answer.
    Hermes,
}

impl ToolCalls {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Native, Self::Hermes];

    /// Returns its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Hermes => "hermes",
        }
    }
}

/// Everything that is needed to call one model.
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
    /// Whose API is used.
    pub provider: Provider,
    /// Its address: what precedes `chat/completions` or `messages`.
    pub base_url: String,
    /// The key; self-hosted servers often need none.
    pub api_key: Option<ApiKey>,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// How often to retry.
    pub retry: RetryPolicy,
    /// What its input tokens cost, relative to each other.
    pub prices: Prices,
    /// What its tokens cost in money, if that is set.
    pub token_prices: Option<TokenPrices>,
    /// The shortest prefix that its provider caches, in tokens.
    pub least_cached_tokens: u64,
    /// How long its provider keeps a prefix that is not read; [`Duration::MAX`] if no time is known.
    pub cache_life: Duration,
    /// Whether the model can continue the beginning of an answer. Many refuse that.
    pub prefill: bool,
    /// Whether `tool_choice` may name a set of tools (`allowed_tools`).
    pub allowed_tools: bool,
    /// Whether the end of a cached prefix is marked.
    pub cache_marks: bool,
    /// Whether cached prefixes are kept for an hour instead of five minutes (more expensive to write; Anthropic).
    pub long_cache: bool,
    /// A header with the name of the session, for routers that keep a session on one worker.
    pub session_header: Option<String>,
    /// Further addresses of the same model. A session stays at one of all these addresses, by
    /// consistent hashing; an address that cannot be reached is skipped for a while.
    pub workers: Vec<String>,
    /// How tools are declared and calls are read, if that is set.
    pub tool_calls: Option<ToolCalls>,
    /// Whether requests carry a grammar that limits the model to text and to calls of allowed tools
    /// with arguments that fit their schemas: for servers with constrained decoding (llama.cpp, vLLM).
    pub grammar: bool,
    /// The seed for varied wording around the results of tools; without one they are sent unchanged.
    pub diversity: Option<u64>,
    /// The tokens of its window, request and answer together, if known.
    pub context_tokens: Option<usize>,
    /// Whether the window was reported by the server.
    pub(crate) is_window_told: bool,
    /// The limit on an answer's tokens if the request sets none, if configured.
    pub max_tokens: Option<u32>,
    /// Whether answers are streamed, so that only silence is limited, not the total time.
    pub stream: bool,
    /// What is known about its chat template.
    pub template: GivenTemplate,
    /// Whether the server accepts a required tool call; otherwise the requirement is put in words.
    pub required_calls: bool,
}

impl ModelConfig {
    /// Creates a model at an address, with defaults for everything else.
    #[must_use]
    pub fn new(provider: Provider, base_url: &str, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            provider,
            base_url: base_url.to_owned(),
            api_key: None,
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            prices: usual_prices(provider, name, false),
            token_prices: None,
            least_cached_tokens: usual_least_cached(provider, name),
            cache_life: usual_cache_life(provider, false),
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

    /// Sets the key.
    #[must_use]
    pub fn with_api_key(self, key: ApiKey) -> Self {
        Self { api_key: Some(key), ..self }
    }

    /// Sets how long to wait.
    #[must_use]
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Sets how often to retry.
    #[must_use]
    pub fn with_retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// Sets the prices of input tokens, relative to each other.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices, ..self }
    }

    /// Sets the shortest prefix that is cached, in tokens.
    #[must_use]
    pub fn with_least_cached_tokens(self, least_cached_tokens: u64) -> Self {
        Self { least_cached_tokens, ..self }
    }

    /// Returns how its provider caches requests, and what it charges for input.
    #[must_use]
    pub fn cache_terms(&self) -> CacheTerms {
        CacheTerms { prices: self.prices, least: self.least_cached_tokens, life: self.cache_life }
    }

    /// Sets how long the provider keeps a cached prefix that is not read.
    #[must_use]
    pub fn with_cache_life(self, cache_life: Duration) -> Self {
        Self { cache_life, ..self }
    }

    /// Sets the prices of tokens in money; the relative prices of input follow from them.
    #[must_use]
    pub fn with_token_prices(self, prices: TokenPrices) -> Self {
        Self { prices: prices.of_input(), token_prices: Some(prices), ..self }
    }

    /// Sets whether the model can continue the beginning of an answer.
    #[must_use]
    pub fn with_prefill(self, prefill: bool) -> Self {
        Self { prefill, ..self }
    }

    /// Sets whether `tool_choice` may name a set of tools.
    #[must_use]
    pub fn with_allowed_tools(self, allowed_tools: bool) -> Self {
        Self { allowed_tools, ..self }
    }

    /// Sets whether the end of a cached prefix is marked.
    #[must_use]
    pub fn with_cache_marks(self, cache_marks: bool) -> Self {
        Self { cache_marks, ..self }
    }

    /// Sets whether cached prefixes are kept for an hour instead of five minutes, which Anthropic charges more for. Prices
    /// and a life of the cache that are not the provider's usual ones stay.
    #[must_use]
    pub fn with_long_cache(self, long_cache: bool) -> Self {
        let usual = |is_long| {
            let prices = usual_prices(self.provider, &self.name, is_long);
            (prices, usual_cache_life(self.provider, is_long))
        };
        let (before, after) = (usual(self.long_cache), usual(long_cache));
        let prices = if self.prices == before.0 { after.0 } else { self.prices };
        let cache_life = if self.cache_life == before.1 { after.1 } else { self.cache_life };
        Self { long_cache, prices, cache_life, ..self }
    }

    /// Sets the header that carries the session's name.
    #[must_use]
    pub fn with_session_header(self, header: &str) -> Self {
        Self { session_header: Some(header.to_owned()), ..self }
    }

    /// Adds addresses of the same model.
    #[must_use]
    pub fn with_workers<'a>(self, addresses: impl IntoIterator<Item = &'a str>) -> Self {
        Self { workers: addresses.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// Sets how tools are declared and calls are read.
    #[must_use]
    pub fn with_tool_calls(self, tool_calls: ToolCalls) -> Self {
        Self { tool_calls: Some(tool_calls), ..self }
    }

    /// Sets whether requests carry a grammar.
    #[must_use]
    pub fn with_grammar(self, grammar: bool) -> Self {
        Self { grammar, ..self }
    }

    /// Varies the words around the results of tools by this seed.
    #[must_use]
    pub fn with_diversity(self, seed: u64) -> Self {
        Self { diversity: Some(seed), ..self }
    }

    /// Sets the tokens of the window; `None` if unknown.
    #[must_use]
    pub fn with_context_tokens(self, context_tokens: impl Into<Option<usize>>) -> Self {
        Self { context_tokens: context_tokens.into(), is_window_told: false, ..self }
    }

    /// Limits the tokens of an answer; `None` for the default limit.
    #[must_use]
    pub fn with_max_tokens(self, max_tokens: impl Into<Option<u32>>) -> Self {
        Self { max_tokens: max_tokens.into(), ..self }
    }

    /// Sets whether answers are streamed.
    #[must_use]
    pub fn with_stream(self, stream: bool) -> Self {
        Self { stream, ..self }
    }

    /// Sets what the chat template can express.
    #[must_use]
    pub fn with_template(self, template: ChatTemplate) -> Self {
        Self { template: template.into(), ..self }
    }

    /// Sets whether the server accepts a required tool call.
    #[must_use]
    pub fn with_required_calls(self, required_calls: bool) -> Self {
        Self { required_calls, ..self }
    }

    /// Returns how tools are declared and calls are read.
    #[must_use]
    pub fn tool_calls(&self) -> ToolCalls {
        self.tool_calls.unwrap_or_default()
    }

    /// Returns what its chat template can express; what is unknown counts as possible.
    #[must_use]
    pub fn chat_template(&self) -> ChatTemplate {
        self.template.or(ChatTemplate::default())
    }

    /// Checks for settings that contradict each other.
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
            .field("cache_life", &self.cache_life)
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
