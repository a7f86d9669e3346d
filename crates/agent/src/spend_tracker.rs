//! The tracker of what a run has spent, and of whether it may spend more.

use crate::{Resource, RunEvent, SpendLimits};
use foldback_llm::{ChatResponse, ModelError, TokenPrices, Usage};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The amounts that were spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// Calls of the model.
    pub model_calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// The model's tokens.
    pub usage: Usage,
    /// Money, if the prices are known.
    pub cost: f64,
}

/// The reason why a limit cannot work.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpendError {
    /// The limit on money is invalid.
    #[error("the limit on cost is {0}; expected a sum of money, 0 or more")]
    Cost(f64),
    /// A price is invalid.
    #[error("the price of a million tokens is {0}; expected 0 or more")]
    Price(f64),
    /// Money is limited, but no prices are given.
    #[error(
        "the limit on cost is {0}, but no prices of tokens are given; give prices, or limit tokens \
        instead"
    )]
    NoPrices(f64),
}

/// A tracker of spending with a limit. What is spent from a [share](Self::share) is also spent from all trackers
/// that it came from. Clones share one tracker; the default has no limit.
#[derive(Clone, Debug, Default)]
pub struct SpendTracker {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: SpendLimits,
    prices: Option<TokenPrices>,
    began: Instant,
    account: Mutex<Account>,
    from: Option<SpendTracker>,
    /// Whether an answer without usage was counted by an estimate.
    estimates: AtomicBool,
}

#[derive(Debug, Default)]
struct Account {
    spent: Spending,
    /// The estimated input tokens of the calls of a model that are in progress.
    under_way: u64,
}

/// A call of a model in progress. Until it is [charged](Self::charge) or dropped, its estimated input counts
/// as spent.
#[derive(Debug)]
#[must_use = "what the call takes is charged to it"]
pub struct BegunCall {
    spend: SpendTracker,
    estimate: u64,
}

impl BegunCall {
    /// Charges the tokens of the call; returns what they cost, if that is known.
    pub fn charge(self, usage: Usage) -> Option<f64> {
        self.spend.charge(usage)
    }
}

impl Drop for BegunCall {
    fn drop(&mut self) {
        let estimate = self.estimate;
        self.spend
            .change(&|account| account.under_way = account.under_way.saturating_sub(estimate));
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            limits: SpendLimits::default(),
            prices: None,
            began: Instant::now(),
            account: Mutex::default(),
            from: None,
            estimates: AtomicBool::default(),
        }
    }
}

impl SpendTracker {
    /// Creates a tracker with a limit; without prices nothing costs money.
    ///
    /// # Errors
    /// When a price or the limit on money is negative or not a number, and when money is limited and there are
    /// no prices: such a limit would never take effect.
    pub fn new(limits: SpendLimits, prices: Option<TokenPrices>) -> Result<Self, SpendError> {
        let is_sum = |sum: &f64| sum.is_finite() && *sum >= 0.0;
        if let Some(TokenPrices { input, output, cached_read, cached_write }) = prices
            && let Some(price) =
                [input, output, cached_read, cached_write].into_iter().find(|price| !is_sum(price))
        {
            return Err(SpendError::Price(price));
        }
        match limits.cost {
            Some(cost) if !is_sum(&cost) => Err(SpendError::Cost(cost)),
            Some(cost) if prices.is_none() => Err(SpendError::NoPrices(cost)),
            _ => Ok(Self { inner: Arc::new(Inner { limits, prices, ..Inner::default() }) }),
        }
    }

    /// Creates a part of this tracker with a limit of its own.
    ///
    /// # Errors
    /// As [`new`](Self::new), with the prices of this tracker.
    pub fn share(&self, limits: SpendLimits) -> Result<Self, SpendError> {
        let own = Self::new(limits, self.inner.prices)?;
        let Inner { limits, prices, .. } = *own.inner;
        let from = Some(self.clone());
        Ok(Self { inner: Arc::new(Inner { limits, prices, from, ..Inner::default() }) })
    }

    /// Creates a part of this tracker without a limit of its own, to see what is spent through it.
    #[must_use]
    pub fn counting(&self) -> Self {
        let (prices, from) = (self.inner.prices, Some(self.clone()));
        Self { inner: Arc::new(Inner { prices, from, ..Inner::default() }) }
    }

    /// Returns what is left, here and in the trackers that this came from: the least of each, and no value for
    /// what is not limited. Calls in progress count as spent.
    #[must_use]
    pub fn left(&self) -> SpendLimits {
        let own = self.inner.left(&self.inner.account.lock());
        match &self.inner.from {
            Some(from) => own.least(from.left()),
            None => own,
        }
    }

    /// Returns what was spent from this tracker and its shares.
    #[must_use]
    pub fn spent(&self) -> Spending {
        self.inner.account.lock().spent
    }

    /// Returns the resource that is used up, here or in a tracker that this came from; `None` if the run may
    /// continue.
    #[must_use]
    pub fn exhausted(&self) -> Option<Resource> {
        let own = self.inner.exhausted(&self.inner.account.lock()).next();
        own.or_else(|| self.inner.from.as_ref()?.exhausted())
    }

    /// Returns whether a resource is used up, here or in a tracker that this came from.
    #[must_use]
    pub fn has_none(&self, of: Resource) -> bool {
        let is_gone = self.inner.exhausted(&self.inner.account.lock()).any(|what| what == of);
        is_gone || self.inner.from.as_ref().is_some_and(|from| from.has_none(of))
    }

    /// Returns whether a resource is used up here, but not in the tracker that everything came from.
    pub(crate) fn lacks_share(&self, of: Resource) -> bool {
        self.has_none(of) && !self.whole().has_none(of)
    }

    /// Returns whether tokens or money are limited, here or in a tracker that this came from.
    pub(crate) fn bounds_usage(&self) -> bool {
        let left = self.left();
        left.tokens.is_some() || left.cost.is_some()
    }

    /// Notes that usage is estimated; returns whether that is new to the tracker that everything came from.
    pub(crate) fn begins_estimating(&self) -> bool {
        !self.whole().inner.estimates.swap(true, Ordering::Relaxed)
    }

    fn whole(&self) -> &Self {
        self.inner.from.as_ref().map_or(self, Self::whole)
    }

    /// Returns when the time is up, here or in a tracker that this came from; `None` if it is not limited.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let Inner { limits, began, from, .. } = &*self.inner;
        // A limit beyond the range of the clock is no limit.
        let own = limits.time.and_then(|time| began.checked_add(time));
        let outer = from.as_ref().and_then(Self::deadline);
        own.into_iter().chain(outer).min()
    }

    /// Counts a call of the model that is about to be made, unless there is nothing left for it, here or in a
    /// tracker that this came from. Concurrent calls cannot both take the last one, nor the last tokens:
    /// until the call is charged, the `estimate` of its input in tokens counts as spent. Used-up calls of
    /// tools do not matter here: the model can still answer.
    ///
    /// # Errors
    /// The resource that is used up; nothing is counted then.
    pub fn begin_model_call(&self, estimate: u64) -> Result<BegunCall, Resource> {
        let count = |account: &mut Account| {
            account.spent.model_calls += 1;
            account.under_way = account.under_way.saturating_add(estimate);
        };
        let uncount = |account: &mut Account| {
            account.spent.model_calls -= 1;
            account.under_way = account.under_way.saturating_sub(estimate);
        };
        self.begin_call(Resource::ModelCalls, &count, &uncount)?;
        Ok(BegunCall { spend: self.clone(), estimate })
    }

    /// Counts a call of a tool that is about to be made, as [`begin_model_call`](Self::begin_model_call). Used-up
    /// calls of the model do not matter here: what it has asked for may still be done.
    ///
    /// # Errors
    /// As there.
    pub fn begin_tool_call(&self) -> Result<(), Resource> {
        let count = |account: &mut Account| account.spent.tool_calls += 1;
        let uncount = |account: &mut Account| account.spent.tool_calls -= 1;
        self.begin_call(Resource::ToolCalls, &count, &uncount)
    }

    /// Counts a call of the model with these tokens, whatever was left; returns what they cost, if that is
    /// known.
    pub fn model_called(&self, usage: Usage) -> Option<f64> {
        self.change(&|account| account.spent.model_calls += 1);
        self.charge(usage)
    }

    /// Counts a call of a tool, whatever was left.
    pub fn tool_called(&self) {
        self.change(&|account| account.spent.tool_calls += 1);
    }

    /// Counts the spending in an event. Calls that are made now are counted when they
    /// [begin](Self::begin_model_call).
    pub(crate) fn hear(&self, event: &RunEvent<'_>) {
        match *event {
            RunEvent::Answered { answer, from_journal: true, .. } => {
                self.model_called(usage_of(answer));
            }
            RunEvent::Answered { answer, .. } => {
                self.charge(usage_of(answer));
            }
            RunEvent::PolicyAsked { usage, cost } => {
                self.change(&|account| account.spent.model_calls += 1);
                self.charge_at(usage, cost.or_else(|| self.cost_of(&usage)));
            }
            RunEvent::CallRestored { attempts, spent } => {
                if attempts > 0 {
                    self.tool_called();
                }
                if let Some(spent) = spent {
                    self.was_spent(spent);
                }
            }
            _ => {}
        }
    }

    /// Returns what these tokens cost, if that is known.
    pub(crate) fn cost_of(&self, usage: &Usage) -> Option<f64> {
        self.inner.prices.map(|prices| prices.cost(usage))
    }

    /// Counts the spending of an earlier process, whatever is left, at today's prices.
    fn was_spent(&self, before: &Spending) {
        self.change(&|account| {
            account.spent.model_calls += before.model_calls;
            account.spent.tool_calls += before.tool_calls;
        });
        self.charge(before.usage);
    }

    /// Counts these tokens, of a call that was counted when it began; returns what they cost, if that is
    /// known.
    pub(crate) fn charge(&self, usage: Usage) -> Option<f64> {
        self.charge_at(usage, self.cost_of(&usage))
    }

    fn charge_at(&self, usage: Usage, cost: Option<f64>) -> Option<f64> {
        self.change(&|account| {
            account.spent.usage += usage;
            account.spent.cost += cost.unwrap_or_default();
        });
        cost
    }

    fn begin_call(
        &self,
        kind: Resource,
        count: &dyn Fn(&mut Account),
        uncount: &dyn Fn(&mut Account),
    ) -> Result<(), Resource> {
        {
            // Checked and counted under one lock.
            let mut account = self.inner.account.lock();
            let calls = [Resource::ModelCalls, Resource::ToolCalls];
            let mut gone = self.inner.exhausted(&account);
            if let Some(what) = gone.find(|what| *what == kind || !calls.contains(what)) {
                return Err(what);
            }
            count(&mut account);
        }
        let Some(from) = &self.inner.from else { return Ok(()) };
        let counted = from.begin_call(kind, count, uncount);
        counted.inspect_err(|_| uncount(&mut self.inner.account.lock()))
    }

    fn change(&self, change: &dyn Fn(&mut Account)) {
        change(&mut self.inner.account.lock());
        if let Some(from) = &self.inner.from {
            from.change(change);
        }
    }
}

/// Returns the tokens of an answer, also of one that could not be used.
pub(crate) fn usage_of(answer: &Result<ChatResponse, ModelError>) -> Usage {
    match answer {
        Ok(response) => response.usage,
        Err(error) => error.usage.unwrap_or_default(),
    }
}

impl Inner {
    /// Returns what is left of the limits here, with calls in progress counted as spent.
    fn left(&self, account: &Account) -> SpendLimits {
        let (most, Account { spent, under_way }) = (&self.limits, account);
        let tokens = spent.usage.input.saturating_add(spent.usage.output);
        let coming = Usage { input: *under_way, ..Usage::default() };
        let cost = spent.cost + self.prices.map_or(0.0, |prices| prices.cost(&coming));
        let rest = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
        SpendLimits {
            model_calls: rest(most.model_calls, spent.model_calls),
            tool_calls: rest(most.tool_calls, spent.tool_calls),
            tokens: rest(most.tokens, tokens.saturating_add(*under_way)),
            cost: most.cost.map(|most| (most - cost).max(0.0)),
            time: most.time.map(|most| most.saturating_sub(self.began.elapsed())),
        }
    }

    /// Returns the resources that are used up here, with calls in progress counted as spent.
    fn exhausted(&self, account: &Account) -> impl Iterator<Item = Resource> + use<> {
        let left = self.left(account);
        let bounds = [
            (left.model_calls == Some(0), Resource::ModelCalls),
            (left.tool_calls == Some(0), Resource::ToolCalls),
            (left.tokens == Some(0), Resource::Tokens),
            (left.cost.is_some_and(|cost| cost <= 0.0), Resource::Cost),
            (left.time == Some(Duration::ZERO), Resource::Time),
        ];
        bounds.into_iter().filter_map(|(is_gone, what)| is_gone.then_some(what))
    }
}
