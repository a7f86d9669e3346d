//! The settings of `cache-aware`.

use crate::Error;
use foldback_core::Prices;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The limits of the fold policy [`CacheAware`](crate::FoldPolicy::CacheAware), and the prices that it
/// uses.
///
/// Everything before the volatile suffix keeps its bytes from call to call, except when blocks fold.
/// A fold moves what follows it: those tokens are written into the cache again, at `write - read`
/// each. It pays once the later calls would have spent more on reading what leaves.
///
/// - **Whether it pays.** As many further calls are expected as there have been: nothing else is known about a
///   conversation's length. Reading what leaves that often has to cost more than the fold. And the reads that were
///   paid since something could have left must have reached the price of the fold, as in the ski-rental rule, by which
///   one buys skis once the rent has reached their price: reads and fold together then cost at most twice what the
///   better of the two would have cost, whenever the conversation ends. If the view grows steadily, this is also the
///   period at which folds and reads together cost least.
/// - **What it may cost.** A running account compares what was spent with what keeping everything would have cost. A
///   step that costs more now (declaring the tool, a fold) waits until all that was spent, including this call, is
///   within 1.9 % of the other: so a conversation may end at any call and was not over 2 % more expensive. A fold must
///   also leave room for one recall, at what recalls have cost so far, less half of what the fold saves. Recalls
///   themselves are not part of the account. If the caller reports what the provider has billed and counted
///   ([`LiveView::bill`](crate::LiveView::bill)), the account uses that, with a limit of 2 %, and 5 % more for what is
///   new. From three quarters of a high mark on, a fold is made as soon as it is allowed. The exceptions are a fold
///   that a high mark forces, the tool if a part that is too large to be shown forces it, words that a valid request
///   needs and the record lacks, and the caller's todo list and notices. Tokens are estimated, and a provider that
///   caches whole runs of them rounds each call by up to one run.
/// - **A pause.** Once as much time as [`with_cache_life`](Self::with_cache_life) sets has passed since the last prompt,
///   the provider has nothing of it in its cache any more, and everything is written again in any case. A fold then
///   costs less than not folding, and does not wait for its price; it still has to leave room for a recall. A pause shows in
///   the times that messages carry, or in those at which they were recorded.
/// - **A large result is seen once.** While it is new, it follows the cached part, where it costs
///   `plain` rather than `write`, and its light form is written in the next call, if that is then
///   cheaper than having kept it.
/// - **The tool** with which the model reads what left is declared from the first prompt that is long enough to be
///   cached, if the account allows it; otherwise when what becomes light with it pays for it, or when something first
///   leaves. It moves everything; what was seen becomes light at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CacheAware {
    pub(crate) prices: Prices,
    pub(crate) least_cached: u64,
    pub(crate) messages_min: usize,
    pub(crate) messages_max: usize,
    pub(crate) tokens_max: u64,
    /// Whether a large result may follow the cached part while it is new. Older stores end before it.
    #[serde(default = "yes")]
    pub(crate) shows_once: bool,
    /// Whether the caller provides the tools that reach what left. Older stores end before it.
    #[serde(default)]
    pub(crate) tools_elsewhere: bool,
    /// The longest question, in bytes, that the caller shows before the rest of its turn. Older stores end before it.
    #[serde(default)]
    pub(crate) question_max: usize,
    /// How long the provider keeps what is not read, if that is known. Older stores end before it.
    #[serde(default)]
    pub(crate) cache_life: Option<Duration>,
}

fn yes() -> bool {
    true
}

impl Default for CacheAware {
    /// Returns the default prices; a cache of prefixes of 1,024 tokens or more, which are never lost; 4 messages stay,
    /// and at most 1,024 messages or 32,000 tokens of closed blocks and open messages.
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
            cache_life: None,
        }
    }
}

impl CacheAware {
    /// Sets the prices.
    ///
    /// # Errors
    /// When one of them is negative or not a number, or a plain token costs nothing.
    pub fn with_prices(self, prices: Prices) -> Result<Self, Error> {
        if !prices.is_sound() {
            return Err(Error::Prices(prices));
        }
        Ok(Self { prices, ..self })
    }

    /// Sets the shortest prefix that the provider caches, in tokens: a fold leaves a quarter more.
    #[must_use]
    pub fn with_least_cached(self, tokens: u64) -> Self {
        Self { least_cached: tokens, ..self }
    }

    /// Sets how long the provider keeps a prefix that is not read; `None` if no time is known.
    #[must_use]
    pub fn with_cache_life(self, life: Option<Duration>) -> Self {
        Self { cache_life: life, ..self }
    }

    /// For callers that do not say what is cached: each prompt is cached to its end, so nothing is cheaper after it.
    #[must_use]
    pub fn with_everything_cached(self) -> Self {
        Self { shows_once: false, ..self }
    }

    /// For callers whose model already has tools that reach what left: none is declared, and none is paid for.
    #[must_use]
    pub fn with_tools_elsewhere(self) -> Self {
        Self { tools_elsewhere: true, ..self }
    }

    /// For callers that show the question of a turn whose beginning left, up to this many bytes, before the rest: a
    /// fold is priced with it.
    #[must_use]
    pub fn with_question_kept(self, bytes: usize) -> Self {
        Self { question_max: bytes, ..self }
    }

    /// Returns whether it can cost less than `strict` at its prices: cached tokens are cheaper than new ones,
    /// and a prefix that is cached fits below the high mark.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.prices.read < self.prices.plain && self.tokens_min() < self.tokens_max
    }

    /// Sets the high mark: when the closed blocks and open messages in view have more messages or
    /// estimated tokens than this, blocks fold at any cost. Open messages do not fold.
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

    /// Returns the number of estimated tokens from which a prefix is certainly cached.
    pub(crate) fn tokens_cached(&self) -> u64 {
        self.least_cached * 11 / 10
    }

    /// Returns the low mark in tokens: a fold leaves a prefix that is still cached, with some room.
    pub(crate) fn tokens_min(&self) -> u64 {
        self.least_cached + self.least_cached / 4
    }
}
