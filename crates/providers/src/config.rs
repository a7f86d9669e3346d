//! Which model to ask, where, and how patiently.

mod sources;

pub use sources::{ModelFlags, ModelSources};

use crate::ApiKey;
use foldback_core::Prices;
use foldback_llm::{ModelError, ModelErrorKind, RetryPolicy, TokenPrices};
use serde::Deserialize;
use std::fmt;
use std::time::Duration;

/// Whose API is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// OpenAI's chat-completions, as OpenAI serves it.
    #[serde(rename = "openai")]
    OpenAi,
    /// Chat-completions as others serve it: vLLM, llama.cpp, Ollama, DeepSeek, a gateway.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
    /// Anthropic's messages.
    Anthropic,
}

impl Provider {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::OpenAiCompatible, Self::Anthropic];

    /// Its name, as settings say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Anthropic => "anthropic",
        }
    }

    /// Where it is served, if at one place.
    #[must_use]
    pub fn usual_base_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1/"),
            Self::Anthropic => Some("https://api.anthropic.com/v1/"),
            Self::OpenAiCompatible => None,
        }
    }

    /// The environment variable that usually holds its key.
    #[must_use]
    pub fn usual_key(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAiCompatible => None,
        }
    }

    /// The provider of a model, by its base URL or else by its name.
    fn infer(name: &str, base_url: Option<&str>) -> Option<Self> {
        if let Some(base_url) = base_url {
            let is_at =
                |provider: Self| provider.usual_base_url().map(host) == Some(host(base_url));
            let path = base_url.trim_end_matches('/').trim_end_matches("/v1");
            // Others that speak Anthropic's API have it at such a path.
            return Some(if is_at(Self::Anthropic) || path.ends_with("/anthropic") {
                Self::Anthropic
            } else if is_at(Self::OpenAi) {
                Self::OpenAi
            } else {
                Self::OpenAiCompatible
            });
        }
        Self::of_name(name)
    }

    /// The provider of a model of this name, where the name tells.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let of_openai = ["gpt-", "chatgpt-", "o1", "o3", "o4"];
        if name.starts_with("claude-") {
            Some(Self::Anthropic)
        } else if of_openai.iter().any(|beginning| name.starts_with(beginning)) {
            Some(Self::OpenAi)
        } else {
            None
        }
    }
}

/// How tools are told to a server, and calls read from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
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
    /// How tools are told, and calls read.
    pub tool_calls: ToolCalls,
    /// Whether requests carry a grammar that holds the model to calls of allowed tools, with arguments
    /// of their schemas, and to words: for servers that decode by one (llama.cpp, vLLM).
    pub grammar: bool,
    /// The seed of varied words around the results of tools; without one they stand as they are.
    pub diversity: Option<u64>,
}

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a whole answer. Of one that is streamed: for the first piece, and for any other while the
    /// provider gives nothing but signs of life (comments, pings).
    pub answer: Duration,
    /// For the next piece, or the next sign of life, of an answer that is streamed.
    pub silence: Duration,
}

impl Default for Timeouts {
    /// Ten minutes for an answer, as the providers' own clients wait; two for a silent stream.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(600),
            silence: Duration::from_secs(120),
        }
    }
}

impl Timeouts {
    /// The same, waiting so long for a connection.
    #[must_use]
    pub fn with_connect(self, connect: Duration) -> Self {
        Self { connect, ..self }
    }

    /// The same, waiting so long for a whole answer.
    #[must_use]
    pub fn with_answer(self, answer: Duration) -> Self {
        Self { answer, ..self }
    }

    /// The same, waiting so long for the next piece of an answer.
    #[must_use]
    pub fn with_silence(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }
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
            tool_calls: ToolCalls::default(),
            grammar: false,
            diversity: None,
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
        Self { tool_calls, ..self }
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

    /// Checks what does not fit each other.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let (name, provider) = (&self.name, self.provider.name());
        let is_compatible = self.provider == Provider::OpenAiCompatible;
        if self.tool_calls == ToolCalls::Hermes && !is_compatible {
            return Err(wrong(format!(
                "tool_calls = \"hermes\" is for servers that know no tool calls (openai-compatible), but \
                 the provider of the model {name:?} is {provider}, which does: leave it out"
            )));
        }
        if self.grammar && self.tool_calls != ToolCalls::Hermes {
            return Err(wrong(format!(
                "the grammar of the model {name:?} is one of calls in the format of Hermes: grammar = true \
                 needs tool_calls = \"hermes\""
            )));
        }
        if !self.workers.is_empty() && !is_compatible {
            return Err(wrong(format!(
                "workers are several servers of one model (openai-compatible), but the provider of the \
                 model {name:?} is {provider}"
            )));
        }
        Ok(())
    }

    /// Reads the settings: flags before environment before file.
    ///
    /// The key that a provider usually has in the environment (`OPENAI_API_KEY`,
    /// `ANTHROPIC_API_KEY`) is taken last, and only for that provider's own address: no other
    /// server is shown it.
    ///
    /// # Errors
    /// When a file cannot be read, a key is unknown or has another shape (named with its source),
    /// no model is named, or there is no telling where it is served.
    pub fn load(sources: &ModelSources) -> Result<Self, ModelError> {
        let settings = sources.read()?;
        let Some(name) = settings.name else {
            return Err(wrong(
                "no model is named: give --model, the environment variable FOLDBACK_MODEL, or \
                 name = \"...\" under [model] in the settings file",
            ));
        };
        let inferred = || Provider::infer(&name, settings.base_url.as_deref());
        let Some(provider) = settings.provider.or_else(inferred) else {
            return Err(wrong(format!(
                "where the model {name:?} is served cannot be told from its name: give a base URL \
                 (FOLDBACK_BASE_URL), or a provider (FOLDBACK_PROVIDER): openai or anthropic"
            )));
        };
        let usual = provider.usual_base_url();
        let Some(base_url) = settings.base_url.or_else(|| usual.map(str::to_owned)) else {
            return Err(wrong(format!(
                "the provider of the model {name:?} is openai-compatible, which has no address of \
                 its own: give a base URL (FOLDBACK_BASE_URL)"
            )));
        };
        let at_home = usual.is_some_and(|usual| host(usual) == host(&base_url));
        let usual_key = provider.usual_key().filter(|_| at_home);
        let api_key = settings
            .api_key
            .or_else(|| usual_key.and_then(|key| sources.variable(key)).map(ApiKey::new));
        if let (None, Some(variable)) = (&api_key, usual_key) {
            return Err(wrong(format!(
                "there is no key for the model {name:?}: set FOLDBACK_API_KEY or {variable}"
            )));
        }
        let mut config = Self { api_key, ..Self::new(provider, &base_url, &name) };
        let seconds = |given: Option<u64>, usual| given.map_or(usual, Duration::from_secs);
        config.timeouts = Timeouts {
            connect: seconds(settings.connect_seconds, config.timeouts.connect),
            answer: seconds(settings.answer_seconds, config.timeouts.answer),
            silence: seconds(settings.silence_seconds, config.timeouts.silence),
        };
        config.retry.attempts = settings.attempts.unwrap_or(config.retry.attempts);
        config.retry.total_wait = seconds(settings.wait_seconds, config.retry.total_wait);
        config.retry.total_time = seconds(settings.total_seconds, config.retry.total_time);
        config.retry.seed = settings.retry_seed.unwrap_or(config.retry.seed);
        config.prefill = settings.prefill.unwrap_or(config.prefill);
        config.allowed_tools = settings.allowed_tools.unwrap_or(config.allowed_tools);
        config.cache_marks = settings.cache_marks.unwrap_or(config.cache_marks);
        config.long_cache = settings.long_cache.unwrap_or(config.long_cache);
        config.session_header = settings.session_header;
        config.workers = settings.workers;
        config.tool_calls = settings.tool_calls.unwrap_or(config.tool_calls);
        config.grammar = settings.grammar.unwrap_or(config.grammar);
        config.diversity = settings.diversity;
        if config.long_cache && config.provider == Provider::Anthropic {
            config.prices.write *= LONG_CACHE_WRITE;
        }
        if let Some(prices) = settings.token_prices {
            if !prices.is_sound() {
                return Err(wrong(format!(
                    "the token prices of the model {name:?} are numbers of 0 or more, and input is more \
                     than 0, not {prices:?}"
                )));
            }
            config.prices = prices.of_input();
            config.token_prices = Some(prices);
        }
        if let Some(prices) = settings.prices {
            if !prices.is_sound() {
                return Err(wrong(format!(
                    "the prices of the model {name:?} are numbers of 0 or more, and plain is more \
                     than 0, not {prices:?}"
                )));
            }
            config.prices = prices;
        }
        Ok(config)
    }
}

/// A prefix that lives an hour is written at 2 instead of 1.25 times the plain price.
const LONG_CACHE_WRITE: f64 = 1.6;

/// What providers ask for input tokens. A server of one's own asks the same for all.
fn usual_prices(provider: Provider, name: &str) -> Prices {
    match provider {
        Provider::Anthropic => Prices::default(),
        Provider::OpenAi => Prices {
            read: openai_read(name),
            write: if is_marked_openai(name) { 1.25 } else { 1.0 },
            plain: 1.0,
        },
        Provider::OpenAiCompatible => Prices { read: 1.0, write: 1.0, plain: 1.0 },
    }
}

/// What OpenAI asks for a cached input token, as a part of the plain price: the column "cached input"
/// of its price list (developers.openai.com/api/docs/pricing), by family. A model that is not known, or
/// has no such price as the `-pro` ones, is taken to have no discount.
fn openai_read(name: &str) -> f64 {
    let is_of = |families: &[&str]| families.iter().any(|family| name.starts_with(family));
    if name.contains("-pro") {
        1.0
    } else if openai_version(name).is_some_and(|version| version >= (5, 0)) {
        0.1
    } else if is_of(&["gpt-4o", "o1", "o3-mini"]) {
        0.5
    } else if is_of(&["gpt-4.1", "o3", "o4-mini"]) {
        0.25
    } else {
        1.0
    }
}

/// Whether a model of OpenAI's takes marks, and charges for what it writes: from GPT-5.6 on.
pub(crate) fn is_marked_openai(name: &str) -> bool {
    openai_version(name).is_some_and(|version| version >= (5, 6))
}

/// The version in a name such as `gpt-5.6-mini`, as major and minor.
fn openai_version(name: &str) -> Option<(u32, u32)> {
    let version = name.strip_prefix("gpt-")?.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// An address without what may be secret in it: user and password, query and fragment.
#[must_use]
pub fn public_url(url: &str) -> String {
    let (front, rest) = match url.rsplit_once('@') {
        Some((before, rest)) => {
            let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
            (format!("{}[...]@", scheme.unwrap_or_default()), rest)
        }
        None => (String::new(), url),
    };
    match rest.find(['?', '#']) {
        Some(end) => format!("{front}{}[...]", &rest[..=end]),
        None => format!("{front}{rest}"),
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
            .field("prefill", &self.prefill)
            .field("allowed_tools", &self.allowed_tools)
            .field("cache_marks", &self.cache_marks)
            .field("long_cache", &self.long_cache)
            .field("session_header", &self.session_header)
            .field("workers", &self.workers.iter().map(|at| public_url(at)).collect::<Vec<_>>())
            .field("tool_calls", &self.tool_calls)
            .field("grammar", &self.grammar)
            .field("diversity", &self.diversity)
            .finish()
    }
}

/// The scheme and host of an address, for comparing.
fn host(url: &str) -> Option<(String, Option<String>, Option<u16>)> {
    let url = reqwest::Url::parse(url).ok()?;
    Some((url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port()))
}

fn wrong(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Configuration, message)
}
