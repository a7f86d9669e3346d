//! What calls to a model came to: tokens, and what of them a cache served.

use foldback_core::Prices;
use serde::Serialize;

/// What all calls of a conversation were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// How often the model was asked.
    pub calls: u64,
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of the largest prompt.
    pub peak_tokens: u64,
    /// Of the input tokens, those that a prefix cache served.
    pub cached_tokens: u64,
    /// The cost, in ordinary input tokens by the default [`Prices`] or those given.
    pub cost_units: f64,
}

impl Usage {
    /// Takes a call: what of its prompt was in the cache, what was written there, and what was sent
    /// without.
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

    /// The same calls, had nothing of them been read from a cache or written there.
    #[must_use]
    pub fn without_cache(self, prices: Prices) -> Self {
        let cost_units = prices.plain * self.input_tokens as f64;
        Self { cached_tokens: 0, cost_units, ..self }
    }

    /// The same, without the digits that come of adding tenths.
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

    /// The share of the input tokens that a cache served, from 0 to 1.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        if self.input_tokens == 0 {
            return 0.0;
        }
        self.cached_tokens as f64 / self.input_tokens as f64
    }
}
