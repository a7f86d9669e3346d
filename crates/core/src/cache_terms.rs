//! How a provider caches requests, and what it charges for input.

use crate::Prices;
use std::time::Duration;

/// How a provider caches requests, and what it charges for input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheTerms {
    /// The prices of input, relative to each other.
    pub prices: Prices,
    /// The shortest prefix that is cached, in tokens.
    pub least: u64,
    /// How long an unread prefix is kept; [`Duration::MAX`] if no time is known after which it is gone.
    pub life: Duration,
}

impl Default for CacheTerms {
    /// Returns Anthropic's terms: the default prices, 1,024 tokens and five minutes.
    fn default() -> Self {
        Self { prices: Prices::default(), least: 1_024, life: Duration::from_secs(300) }
    }
}

impl CacheTerms {
    /// Returns these terms if the provider is asked to cache, otherwise the terms without a cache.
    #[must_use]
    pub fn when(self, is_asked: bool) -> Self {
        if is_asked { self } else { self.without_cache() }
    }

    /// Returns the terms without a cache.
    #[must_use]
    pub fn without_cache(self) -> Self {
        let plain = self.prices.plain;
        Self { prices: Prices { read: plain, write: plain, plain }, ..self }
    }
}
