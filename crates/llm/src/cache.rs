//! What a provider's prefix cache serves, and where to mark what it should keep.
//!
//! [`place_cache_marks`] marks where the cached prefixes of a request end, [`RequestTokens`] is the
//! request as a cache sees it, and [`PrefixCache`] computes which of its tokens are read, written,
//! or neither.

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

/// The input tokens of one or more requests, by what a prefix cache did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheUse {
    /// Read from the cache.
    pub read: u64,
    /// Written into the cache.
    pub written: u64,
    /// Neither read nor written.
    pub plain: u64,
}

impl CacheUse {
    /// Splits this many tokens by how many were read and written.
    fn of(tokens: usize, read: usize, written: usize) -> Self {
        let plain = tokens.saturating_sub(read + written);
        Self { read: read as u64, written: written as u64, plain: plain as u64 }
    }

    /// Returns the total.
    #[must_use]
    pub fn tokens(self) -> u64 {
        self.read + self.written + self.plain
    }

    /// Returns the share that was read from the cache, from 0 to 1; 0 if there are no tokens.
    #[must_use]
    pub fn hit_rate(self) -> f64 {
        if self.tokens() == 0 { 0.0 } else { self.read as f64 / self.tokens() as f64 }
    }

    /// Returns what they cost, in the unit of the prices.
    #[must_use]
    pub fn cost(self, prices: Prices) -> f64 {
        prices.read * self.read as f64
            + prices.write * self.written as f64
            + prices.plain * self.plain as f64
    }

    /// Returns what they would cost without a cache.
    #[must_use]
    pub fn uncached_cost(self, prices: Prices) -> f64 {
        prices.plain * self.tokens() as f64
    }

    /// Returns the same as the usage of a call whose answer has `output` tokens.
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
