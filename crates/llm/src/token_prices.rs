//! What a model's tokens cost in money.

use crate::Usage;
use foldback_core::Prices;
use serde::{Deserialize, Serialize};

/// What a model's tokens cost, per million, in any one currency.
///
/// ```
/// use foldback_llm::{TokenPrices, Usage};
///
/// let prices = TokenPrices { input: 3.0, output: 15.0, cached_read: 0.3, cached_write: 3.75 };
/// let usage = Usage { input: 1_000_000, output: 100_000, cached_read: 500_000, cached_write: 0 };
/// assert_eq!(prices.cost(&usage), 1.5 + 0.15 + 1.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenPrices {
    /// The price of a million input tokens that do not involve the cache.
    pub input: f64,
    /// The price of a million output tokens.
    pub output: f64,
    /// The price of a million tokens that are read from the cache.
    pub cached_read: f64,
    /// The price of a million tokens that are written into the cache.
    pub cached_write: f64,
}

impl TokenPrices {
    /// Returns what these tokens cost.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let plain =
            usage.input.saturating_sub(usage.cached_read.saturating_add(usage.cached_write));
        let million = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        million(plain, self.input)
            + million(usage.output, self.output)
            + million(usage.cached_read, self.cached_read)
            + million(usage.cached_write, self.cached_write)
    }

    /// Returns the prices of input, for uses in which only the ratios matter.
    #[must_use]
    pub fn of_input(&self) -> Prices {
        Prices { read: self.cached_read, write: self.cached_write, plain: self.input }
    }

    /// Returns whether each price is a finite number of at least 0, and ordinary input costs
    /// something.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.of_input().is_sound() && self.output.is_finite() && self.output >= 0.0
    }
}
