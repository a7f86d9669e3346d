//! Settings merged from their sources.

use super::ModelSettings;
use super::address::host;
use super::{Family, GivenTemplate, ModelConfig, ModelSources, Provider, Timeouts, wrong};
use crate::ApiKey;
use foldback_core::Prices;
use foldback_llm::{ModelError, TokenPrices};
use std::time::Duration;

impl ModelConfig {
    /// Reads the settings: flags take precedence over the environment, and the environment over the file.
    ///
    /// The key that a provider usually has in the environment (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`)
    /// is used last, and only for that provider's own address: no other server receives it.
    ///
    /// # Errors
    /// When a file cannot be read, a key is unknown or has the wrong type (named with its source), no
    /// model is named, or its address cannot be determined.
    pub fn load(sources: &ModelSources) -> Result<Self, ModelError> {
        let settings = sources.read()?;
        let template = template(&settings);
        let Some(name) = settings.name else {
            return Err(wrong(
                "no model is named: give --model, the environment variable FOLDBACK_MODEL, or \
                 name = \"...\" under [model] in the settings file",
            ));
        };
        let inferred = || Provider::infer(&name, settings.base_url.as_deref());
        let Some(provider) = settings.provider.or_else(inferred) else {
            return Err(wrong(format!(
                "the address of the model {name:?} cannot be inferred from its name: give a base URL \
                 (FOLDBACK_BASE_URL), or a provider (FOLDBACK_PROVIDER): openai or anthropic"
            )));
        };
        let usual = provider.usual_base_url();
        let Some(base_url) = settings.base_url.or_else(|| usual.map(str::to_owned)) else {
            return Err(wrong(format!(
                "the provider of the model {name:?} is openai-compatible, which has no default \
                 address: give a base URL (FOLDBACK_BASE_URL)"
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
        let is_long = settings.long_cache.unwrap_or(config.long_cache);
        config = config.with_long_cache(is_long);
        config.session_header = settings.session_header;
        config.workers = settings.workers;
        config.tool_calls = settings.tool_calls;
        config.grammar = settings.grammar.unwrap_or(config.grammar);
        config.diversity = settings.diversity;
        config.context_tokens = settings.context_tokens;
        config.max_tokens = settings.max_tokens;
        config.stream = settings.stream.unwrap_or(config.stream);
        config.required_calls = settings.required_calls.unwrap_or(config.required_calls);
        config.template = template;
        let least_cached = settings.least_cached_tokens;
        config.least_cached_tokens = least_cached.unwrap_or(config.least_cached_tokens);
        if settings.cache_life_seconds == Some(0) {
            let what = "cache_life_seconds is 0; at least 1 was expected";
            return Err(wrong(format!("{what} for the model {:?}", config.name)));
        }
        config.cache_life = seconds(settings.cache_life_seconds, config.cache_life);
        config.priced(settings.token_prices, settings.prices)
    }

    /// Sets these prices, in money and relative to each other, if given.
    fn priced(
        mut self,
        token_prices: Option<TokenPrices>,
        prices: Option<Prices>,
    ) -> Result<Self, ModelError> {
        if let Some(prices) = token_prices {
            if !prices.is_sound() {
                return Err(wrong(format!(
                    "the token prices of the model {:?} must be numbers of 0 or more, and input must be more \
                     than 0, not {prices:?}",
                    self.name
                )));
            }
            self.prices = prices.of_input();
            self.token_prices = Some(prices);
        }
        if let Some(prices) = prices {
            if !prices.is_sound() {
                return Err(wrong(format!(
                    "the prices of the model {:?} must be numbers of 0 or more, and plain must be more \
                     than 0, not {prices:?}",
                    self.name
                )));
            }
            self.prices = prices;
        }
        Ok(self)
    }
}

/// Returns what is known about the model's chat template: its family, and explicit settings.
fn template(settings: &ModelSettings) -> GivenTemplate {
    let ModelSettings { family, call_ids, parallel_calls, turns, system, .. } = settings;
    let of_family = family.map(Family::template).map(GivenTemplate::from).unwrap_or_default();
    GivenTemplate {
        call_ids: call_ids.or(of_family.call_ids),
        parallel_calls: parallel_calls.or(of_family.parallel_calls),
        turns: turns.or(of_family.turns),
        system: system.or(of_family.system),
    }
}
