//! Settings put together from their sources.

use super::ModelSettings;
use super::address::host;
use super::prices::LONG_CACHE_WRITE;
use super::{ChatTemplate, Family, ModelConfig, ModelSources, Provider, Timeouts, wrong};
use crate::ApiKey;
use foldback_llm::ModelError;
use std::time::Duration;

impl ModelConfig {
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
        let (template, is_template_given) = template(&settings);
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
        config.context_tokens = settings.context_tokens;
        config.max_tokens = settings.max_tokens.or(config.max_tokens);
        config.stream = settings.stream.unwrap_or(config.stream);
        config.required_calls = settings.required_calls.unwrap_or(config.required_calls);
        (config.template, config.is_template_given) = (template, is_template_given);
        if config.long_cache && config.provider == Provider::Anthropic {
            config.prices.write *= LONG_CACHE_WRITE;
        }
        let least_cached = settings.least_cached_tokens;
        config.least_cached_tokens = least_cached.unwrap_or(config.least_cached_tokens);
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

/// What the model's chat template can say, and whether anything was said of it: the family, and what is
/// set beside it.
fn template(settings: &ModelSettings) -> (ChatTemplate, bool) {
    let ModelSettings { family, call_ids, parallel_calls, turns, system, .. } = settings;
    let of_family = family.map(Family::template).unwrap_or_default();
    let template = ChatTemplate {
        call_ids: call_ids.unwrap_or(of_family.call_ids),
        parallel_calls: parallel_calls.unwrap_or(of_family.parallel_calls),
        turns: turns.unwrap_or(of_family.turns),
        system: system.unwrap_or(of_family.system),
    };
    let is_given = family.is_some()
        || call_ids.is_some()
        || parallel_calls.is_some()
        || turns.is_some()
        || system.is_some();
    (template, is_given)
}
