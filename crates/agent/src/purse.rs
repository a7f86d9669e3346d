//! What a run may spend, and what it has spent.

use foldback_llm::Usage;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What a run may spend at most; what is not given is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allowance {
    /// Calls of the model.
    pub model_calls: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Tokens of the model, in and out.
    pub tokens: Option<u64>,
    /// Money, in the currency of [`TokenPrices`].
    pub cost: Option<f64>,
    /// Time.
    pub time: Option<Duration>,
}

/// What a model's tokens cost, per million, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenPrices {
    /// A million tokens of input that the cache has no part in.
    pub input: f64,
    /// A million tokens of output.
    pub output: f64,
    /// A million tokens that are read from the cache.
    pub cached_read: f64,
    /// A million tokens that are written into the cache.
    pub cached_write: f64,
}

impl TokenPrices {
    /// What these tokens cost.
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
}

/// What was spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// Calls of the model.
    pub model_calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// The model's tokens.
    pub usage: Usage,
    /// Money, where the prices are known.
    pub cost: f64,
}

/// Of what there was not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Calls of the model.
    ModelCalls,
    /// Calls of tools.
    ToolCalls,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// Time.
    Time,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ModelCalls => "calls of the model",
            Self::ToolCalls => "calls of tools",
            Self::Tokens => "tokens",
            Self::Cost => "money",
            Self::Time => "time",
        })
    }
}

/// An account with a bound. What is spent from a [share](Self::share) is spent from all purses that it
/// came from as well. Clones are the same purse; the default has no bound.
#[derive(Clone, Debug, Default)]
pub struct Purse {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    allowance: Allowance,
    prices: Option<TokenPrices>,
    began: Instant,
    spent: Mutex<Spending>,
    from: Option<Purse>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            allowance: Allowance::default(),
            prices: None,
            began: Instant::now(),
            spent: Mutex::default(),
            from: None,
        }
    }
}

impl Purse {
    /// An account with a bound; without prices nothing costs money.
    #[must_use]
    pub fn new(allowance: Allowance, prices: Option<TokenPrices>) -> Self {
        Self { inner: Arc::new(Inner { allowance, prices, ..Inner::default() }) }
    }

    /// A part of this purse with a bound of its own.
    #[must_use]
    pub fn share(&self, allowance: Allowance) -> Self {
        let (prices, from) = (self.inner.prices, Some(self.clone()));
        Self { inner: Arc::new(Inner { allowance, prices, from, ..Inner::default() }) }
    }

    /// What was spent from this purse and its shares.
    #[must_use]
    pub fn spent(&self) -> Spending {
        *self.inner.spent.lock()
    }

    /// Of what there is nothing left, here or where this came from; `None` where the run may go on.
    #[must_use]
    pub fn exhausted(&self) -> Option<Resource> {
        let Inner { allowance, began, from, .. } = &*self.inner;
        let spent = self.spent();
        let tokens = spent.usage.input.saturating_add(spent.usage.output);
        let reached = |most: Option<u64>, spent: u64| most.is_some_and(|most| spent >= most);
        let own = [
            (reached(allowance.model_calls, spent.model_calls), Resource::ModelCalls),
            (reached(allowance.tool_calls, spent.tool_calls), Resource::ToolCalls),
            (reached(allowance.tokens, tokens), Resource::Tokens),
            (allowance.cost.is_some_and(|most| spent.cost >= most), Resource::Cost),
            (allowance.time.is_some_and(|most| began.elapsed() >= most), Resource::Time),
        ];
        let own = own.into_iter().find_map(|(is_gone, what)| is_gone.then_some(what));
        own.or_else(|| from.as_ref()?.exhausted())
    }

    /// The model was asked and took these tokens; says what they cost, where that is known.
    pub fn model_called(&self, usage: Usage) -> Option<f64> {
        let cost = self.inner.prices.map(|prices| prices.cost(&usage));
        self.spend(&|spent| {
            spent.model_calls += 1;
            spent.usage += usage;
            spent.cost += cost.unwrap_or_default();
        });
        cost
    }

    /// A tool was called.
    pub fn tool_called(&self) {
        self.spend(&|spent| spent.tool_calls += 1);
    }

    fn spend(&self, change: &dyn Fn(&mut Spending)) {
        change(&mut self.inner.spent.lock());
        if let Some(from) = &self.inner.from {
            from.spend(change);
        }
    }
}
