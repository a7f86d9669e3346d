//! What a provider's prefix cache serves, and where to tell it to keep something.
//!
//! [`place_cache_marks`] says where the kept prefixes of a request end, [`RequestTokens`] are the
//! request as a cache sees it, and [`PrefixCache`] says what of it is read, written, and neither.

mod breakpoints;
mod prefix;
mod request_tokens;

pub use breakpoints::{CACHE_BREAKPOINT, MarkLimits, place_cache_marks};
pub use prefix::{CacheSettings, PrefixCache};
pub use request_tokens::RequestTokens;

use crate::Usage;
use foldback_core::Prices;
use serde::Serialize;
use std::ops::AddAssign;

/// The input tokens of one request or of several, by what a prefix cache did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheUse {
    /// Read from the cache.
    pub read: u64,
    /// Written into the cache.
    pub written: u64,
    /// Neither.
    pub plain: u64,
}

impl CacheUse {
    /// Of so many tokens, so many read and written.
    fn of(tokens: usize, read: usize, written: usize) -> Self {
        let plain = tokens.saturating_sub(read + written);
        Self { read: read as u64, written: written as u64, plain: plain as u64 }
    }

    /// All of them.
    #[must_use]
    pub fn tokens(self) -> u64 {
        self.read + self.written + self.plain
    }

    /// The share that was read from the cache, from 0 to 1; 0 of nothing.
    #[must_use]
    pub fn hit_rate(self) -> f64 {
        if self.tokens() == 0 { 0.0 } else { self.read as f64 / self.tokens() as f64 }
    }

    /// What they cost, in the unit of the prices.
    #[must_use]
    pub fn cost(self, prices: Prices) -> f64 {
        prices.read * self.read as f64
            + prices.write * self.written as f64
            + prices.plain * self.plain as f64
    }

    /// What they would cost without a cache.
    #[must_use]
    pub fn uncached_cost(self, prices: Prices) -> f64 {
        prices.plain * self.tokens() as f64
    }

    /// The same as the usage of a call that answered with so many tokens.
    #[must_use]
    pub fn usage(self, output: u64) -> Usage {
        let Self { read: cached_read, written: cached_write, .. } = self;
        Usage { input: self.tokens(), output, cached_read, cached_write }
    }
}

impl AddAssign for CacheUse {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.written += other.written;
        self.plain += other.plain;
    }
}
