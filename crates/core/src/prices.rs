//! What input tokens cost.

use serde::{Deserialize, Serialize};

/// The prices of input tokens, relative to each other: only their ratios matter.
///
/// A provider that caches prompts bills what the cache already holds at `read`, what it puts there
/// at `write`, and everything else at `plain`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// A token that is read from the cache.
    pub read: f64,
    /// A token that is written into the cache.
    pub write: f64,
    /// A token that does not involve the cache.
    pub plain: f64,
}

impl Prices {
    /// Returns whether each is a finite number of 0 or more, and an ordinary token costs something.
    #[must_use]
    pub fn is_sound(self) -> bool {
        let sound = |price: f64| price.is_finite() && price >= 0.0;
        sound(self.read) && sound(self.write) && sound(self.plain) && self.plain > 0.0
    }
}

impl Default for Prices {
    /// A cached read at a tenth and a write at five quarters of an ordinary token, as Anthropic
    /// lists its prompt caching with a lifetime of five minutes.
    fn default() -> Self {
        Self { read: 0.1, write: 1.25, plain: 1.0 }
    }
}
