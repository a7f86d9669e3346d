//! What a provider keeps of what it was sent, for how long and at which prices.

use crate::Api;
use crate::conversation::Terms;
use foldback::CacheAware;
use foldback_core::Prices;
use foldback_providers::{ModelConfig, Provider};
use std::time::Duration;

/// How a model's provider caches a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Caching {
    /// What input costs, relative to each other.
    pub(crate) prices: Prices,
    /// The shortest prefix that is cached, in tokens.
    pub(crate) least: u64,
    /// How long a prefix lives that nobody reads.
    pub(crate) life: Duration,
}

/// A prefix that lives an hour costs so much to write (docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
const LONG_WRITE: f64 = 2.0;

impl Caching {
    /// As the lists of the providers say it for the model that a request names. Of a server that is not known,
    /// OpenAI's rules are taken: it caches by itself, and writing costs nothing more.
    pub(crate) fn usual(api: Api, terms: &Terms) -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let provider = if api == Api::Messages { Provider::Anthropic } else { Provider::OpenAi };
        let model = ModelConfig::new(provider, "", &terms.model);
        let (mut prices, least) = (model.prices, model.least_cached_tokens);
        let life = match (api, terms.is_long) {
            (Api::Messages, true) => {
                prices.write = LONG_WRITE;
                minutes(60)
            }
            (Api::Messages, false) => minutes(5),
            // "Typically 5 to 10 minutes of inactivity" (platform.openai.com/docs/guides/prompt-caching).
            _ => minutes(10),
        };
        if !terms.is_marked {
            prices = Prices { read: prices.plain, write: prices.plain, ..prices };
        }
        Self { prices, least, life }
    }

    /// The settings of the fold policy, for an agent that has the memory's tools or is given one.
    pub(crate) fn policy(self, has_tools: bool) -> CacheAware {
        let policy = CacheAware::default().with_least_cached(self.least).with_everything_cached();
        let policy = if has_tools { policy.with_tools_elsewhere() } else { policy };
        policy.with_prices(self.prices).unwrap_or(policy)
    }
}
