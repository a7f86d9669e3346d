//! The usage of calls to a model: tokens, and how many of them a cache served.

use foldback_core::Prices;
use serde::Serialize;

/// The input of all calls of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// The number of calls.
    pub calls: u64,
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of the largest prompt.
    pub peak_tokens: u64,
    /// The input tokens that a prefix cache served.
    pub cached_tokens: u64,
    /// The cost, in ordinary input tokens by the default [`Prices`] or the given ones.
    pub cost_units: f64,
}

impl Usage {
    /// Adds a call: the tokens of its prompt that were in the cache, those written to it, and those
    /// sent without it.
    pub fn call(&mut self, prices: Prices, cached: u64, written: u64, plain: u64) {
        let tokens = cached + written + plain;
        self.calls += 1;
        self.input_tokens += tokens;
        self.peak_tokens = self.peak_tokens.max(tokens);
        self.cached_tokens += cached;
        self.cost_units += prices.read * cached as f64
            + prices.write * written as f64
            + prices.plain * plain as f64;
    }

    /// Returns the usage of the same calls without reads from or writes to a cache.
    #[must_use]
    pub fn without_cache(self, prices: Prices) -> Self {
        let cost_units = prices.plain * self.input_tokens as f64;
        Self { cached_tokens: 0, cost_units, ..self }
    }

    /// Returns the same, without the digits that come from adding tenths.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self { cost_units: (self.cost_units * 100.0).round() / 100.0, ..self }
    }

    /// Adds the calls of another conversation.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.peak_tokens = self.peak_tokens.max(other.peak_tokens);
        self.cached_tokens += other.cached_tokens;
        self.cost_units += other.cost_units;
    }

    /// Returns the share of the input tokens that a cache served, from 0 to 1.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        if self.input_tokens == 0 {
            return 0.0;
        }
        self.cached_tokens as f64 / self.input_tokens as f64
    }
}
