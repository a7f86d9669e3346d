//! The settings of `cache-aware`.

use crate::Error;
use foldback_core::Prices;
use serde::{Deserialize, Serialize};

/// The bounds of the fold policy [`CacheAware`](crate::FoldPolicy::CacheAware), and the prices that it
/// goes by.
///
/// Everything in front of the volatile suffix keeps its bytes from call to call, except when blocks
/// fold. A fold moves what stands behind it: those tokens are written into the cache again, `write -
/// read` each. It is worth that once the calls to come would have read what leaves for more.
///
/// - **Whether it pays.** As many calls are expected to come as there were: nothing else is known of
///   a conversation's length; so many reads of what leaves have to cost more than the fold. And the
///   reads that were paid since something could have left must have come to the price of the fold, as
///   one buys skis when the rent for them has come to their price: reads and fold together then cost at
///   most twice what the better of the two would have cost, whenever the conversation ends. Where the
///   view grows steadily, this is also the period at which folds and reads together cost least.
/// - **What it may cost.** A running account compares what was spent with what keeping everything
///   would have cost. Whatever costs more than that now (declaring the tool, a fold) waits until all
///   that was spent, this call included, is within 1.9 % of the other: so a conversation may end at
///   any call and was not over 2 % dearer. A fold must leave room for one recall as well, at what recalls have cost so
///   far, less half of what the fold saves. Recalls themselves are no part of the account. Where the caller says what the provider has billed and counted
///   ([`LiveView::bill`](crate::LiveView::bill)), the account goes by that: by 2 %, and what is new by 5 % more. From three quarters of a high mark on, a fold is made as
///   soon as it may be. What remains: a fold that a high mark forces, the tool where a part that is
///   too large to be shown forces it, words that a valid request needs and the record lacks, and the
///   caller's todo list and notices. Tokens are estimated, and a provider that caches whole runs of
///   them rounds each call by up to one run.
/// - **A large result is seen once.** It stands behind the cached part while it is new, where it
///   costs `plain` rather than `write`, and its light form is written in the next call, where that
///   is cheaper by then than having kept it.
/// - **The tool** by which the model reads what left is declared from the first prompt that is long
///   enough to be cached, if the account allows it, else where what becomes light with it pays for it,
///   or with the first thing that leaves. It moves everything; what was seen becomes light with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CacheAware {
    pub(crate) prices: Prices,
    pub(crate) least_cached: u64,
    pub(crate) messages_min: usize,
    pub(crate) messages_max: usize,
    pub(crate) tokens_max: u64,
    /// Whether a large result may stand behind the cached part while it is new. Older stores end before it.
    #[serde(default = "yes")]
    pub(crate) shows_once: bool,
    /// Whether the tools that reach what left are the caller's matter. Older stores end before it.
    #[serde(default)]
    pub(crate) tools_elsewhere: bool,
    /// The longest question, in bytes, that the caller shows in front of the rest of its turn. Older stores end before it.
    #[serde(default)]
    pub(crate) question_max: usize,
}

fn yes() -> bool {
    true
}

impl Default for CacheAware {
    /// The default prices; a cache that takes prefixes of 1,024 tokens or more; 4 messages stay, and
    /// at most 1,024 messages or 32,000 tokens of closed blocks and open messages.
    fn default() -> Self {
        Self {
            prices: Prices::default(),
            least_cached: 1_024,
            messages_min: 4,
            messages_max: 1_024,
            tokens_max: 32_000,
            shows_once: true,
            tools_elsewhere: false,
            question_max: 0,
        }
    }
}

impl CacheAware {
    /// With these prices.
    ///
    /// # Errors
    /// When one of them is negative or no number, or a plain token costs nothing.
    pub fn with_prices(self, prices: Prices) -> Result<Self, Error> {
        if !prices.is_sound() {
            return Err(Error::Prices(prices));
        }
        Ok(Self { prices, ..self })
    }

    /// The shortest prefix that the provider caches, in tokens: a fold leaves a quarter more.
    #[must_use]
    pub fn with_least_cached(self, tokens: u64) -> Self {
        Self { least_cached: tokens, ..self }
    }

    /// For callers who do not say what is cached: each prompt is cached to its end, so nothing is cheaper behind it.
    #[must_use]
    pub fn with_everything_cached(self) -> Self {
        Self { shows_once: false, ..self }
    }

    /// For callers whose model has tools that reach what left anyway: none is declared, and none is paid for.
    #[must_use]
    pub fn with_tools_elsewhere(self) -> Self {
        Self { tools_elsewhere: true, ..self }
    }

    /// For callers who show the question of a turn whose beginning left, up to so many bytes, in front of the rest: a
    /// fold is priced with it.
    #[must_use]
    pub fn with_question_kept(self, bytes: usize) -> Self {
        Self { question_max: bytes, ..self }
    }

    /// Whether it can cost less than `strict` at its prices: what is read from the cache is cheaper than what
    /// is new, and a prefix that is cached fits below the high mark.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.prices.read < self.prices.plain && self.tokens_min() < self.tokens_max
    }

    /// The high mark: when the closed blocks and open messages in view are more messages or
    /// estimated tokens than this, blocks fold whatever it costs. What is open does not fold.
    ///
    /// # Errors
    /// When fewer than 12 messages or 2,000 tokens are allowed: then `strict` is the fold policy to use.
    pub fn with_most(self, messages: usize, tokens: u64) -> Result<Self, Error> {
        if messages < 12 {
            let expected = "at least 12 messages";
            return Err(Error::Config { setting: "messages_max", expected, found: messages });
        }
        if tokens < 2_000 {
            let found = usize::try_from(tokens).unwrap_or(usize::MAX);
            return Err(Error::Config {
                setting: "tokens_max",
                expected: "at least 2,000 tokens",
                found,
            });
        }
        Ok(Self { messages_max: messages, tokens_max: tokens, ..self })
    }

    /// A prefix of so many estimated tokens is surely cached.
    pub(crate) fn tokens_cached(&self) -> u64 {
        self.least_cached * 11 / 10
    }

    /// The low mark in tokens: a fold leaves a prefix that is still cached, with some room.
    pub(crate) fn tokens_min(&self) -> u64 {
        self.least_cached + self.least_cached / 4
    }
}
