//! How a provider caches what it is sent, and what it asks for input.

use foldback_core::Prices;
use std::time::Duration;

/// How a provider caches what it is sent, and what it asks for input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheTerms {
    /// The prices of input, relative to each other.
    pub prices: Prices,
    /// The shortest prefix that is cached, in tokens.
    pub least: u64,
    /// How long a prefix lives that nobody reads.
    pub life: Duration,
}

impl Default for CacheTerms {
    /// Anthropic's: the default prices, 1,024 tokens and five minutes.
    fn default() -> Self {
        Self { prices: Prices::default(), least: 1_024, life: Duration::from_secs(300) }
    }
}

impl CacheTerms {
    /// The same where the provider is asked to cache; else nothing is cached.
    #[must_use]
    pub fn when(self, is_asked: bool) -> Self {
        if is_asked { self } else { self.without_cache() }
    }

    /// The same where nothing is cached.
    #[must_use]
    pub fn without_cache(self) -> Self {
        let plain = self.prices.plain;
        Self { prices: Prices { read: plain, write: plain, plain }, ..self }
    }
}
