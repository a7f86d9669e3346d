//! The cost of a conversation's calls, compared with the cost of keeping everything.

use super::counted::{Billed, Counted};
use super::pace::Pace;
use crate::CacheAware;
use foldback_core::SeqNo;
use serde::{Deserialize, Serialize};

/// How much spending may exceed the cost of keeping everything.
const EXCESS: f64 = 0.02;

/// How much of that is kept free if all tokens are estimated, as a margin for errors of the estimates.
const UNCOUNTED: f64 = 0.001;

/// How much a fold may write beyond its estimate, if the rest was counted.
const DOUBT: f64 = 0.05;

/// How many tokens a search and a following load bring: 2,000 each, the first ones in both calls.
const RECALL_TOKENS: u64 = 6_000;

/// Which recall tools a prompt declares. The set only ever grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Declared {
    /// None: everything is in view.
    #[default]
    Nothing,
    /// `load` alone, in its shortest form: `ARCHITECTURE.md` says why it is not all three from the start.
    Load,
    /// All of them, as the history names them.
    All,
}

/// The cost of the calls so far, and the state of the view at the last of them. Tokens are estimates if the
/// provider's counts are not known; costs are thousandths of a token at the policy's prices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) calls: u64,
    /// The tokens of everything that was recorded.
    pub(crate) history: u64,
    /// Its value at the last call.
    sent: u64,
    /// The cost that keeping everything would have had.
    full: u64,
    /// The amount spent.
    spent: u64,
    /// The tokens of the last prompt with which the next one begins.
    pub(crate) cached: u64,
    /// The amount paid since the last fold for reading what could have been folded.
    rent: u64,
    pub(crate) declared: Declared,
    /// How many blocks have left the view.
    pub(crate) folded: u32,
    /// The ledger: what each fold wrote about the blocks that left, one message per fold.
    #[serde(rename = "told")]
    pub(crate) ledger: Vec<String>,
    /// Large results and answers of recall tools that are still shown whole.
    pub(crate) whole: Vec<SeqNo>,
    /// Whether the assistant has said anything.
    pub(crate) is_dialogue: bool,
    /// The provider's counts. Older stores end before it.
    #[serde(default)]
    pub(crate) counted: Counted,
    /// The last call, until it is billed.
    #[serde(default)]
    charged: Option<Charged>,
    /// The tokens of the question that the caller shows, if it left the view. Older stores end before it.
    #[serde(default)]
    pub(crate) question: u64,
    /// The tokens that the agent sends first: its instructions and tools. Older stores end before it.
    #[serde(default)]
    pub(crate) agent_front: u64,
    /// The cost of recalls, which is not part of the amount spent. Older stores end before it.
    #[serde(default)]
    recalled: u64,
    /// The number of calls for it.
    #[serde(default)]
    recalls: u32,
    /// The same costs without any cache, while the provider's bills are not known. Older stores do not have them.
    #[serde(default)]
    plain: Option<Plain>,
    /// The times of the conversation. Older stores end before it.
    #[serde(default)]
    pub(crate) pace: Pace,
}

/// The cost of everything, and the amount spent, had nothing been cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Plain {
    full: u64,
    spent: u64,
}

/// A call as it was charged, by estimates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charged {
    bill: Bill,
    /// Its cost.
    spent: u64,
    /// The cost that keeping everything would have had.
    full: u64,
    history: u64,
    /// Its tokens before the messages that the view knows of.
    own: u64,
    /// The estimated tokens of its new messages.
    estimate: u64,
    /// The first message after it.
    next: SeqNo,
}

/// The parts of a prompt that determine its price: its stable tokens, those after them, and how
/// many of the stable ones are cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bill {
    pub(crate) stable: u64,
    pub(crate) suffix: u64,
    pub(crate) shared: u64,
}

impl Bill {
    pub(crate) fn tokens(self) -> u64 {
        self.stable + self.suffix
    }

    /// Returns the cost as a provider bills it: nothing below the shortest prefix is cached. That a provider keeps
    /// whole runs of tokens is ignored: the rounding is chance, on both sides of the account.
    pub(crate) fn cost(self, settings: &CacheAware) -> f64 {
        let kept = cacheable(self.stable, settings);
        let read = cacheable(self.shared, settings).min(kept);
        let plain = self.stable - kept + self.suffix;
        let prices = settings.prices;
        prices.read * read as f64
            + prices.write * (kept - read) as f64
            + prices.plain * plain as f64
    }

    /// Returns its cost in each later call, if it was sent before.
    pub(crate) fn again(self, settings: &CacheAware) -> f64 {
        Self { shared: self.stable, ..self }.cost(settings)
    }

    /// Returns the cost without a cache, in thousandths.
    fn plain_cost(self, settings: &CacheAware) -> u64 {
        thousandths(settings.prices.plain * self.tokens() as f64)
    }
}

pub(crate) fn cacheable(tokens: u64, settings: &CacheAware) -> u64 {
    if tokens < settings.least_cached { 0 } else { tokens }
}

/// Rounds to whole numbers, so that a sum is the same wherever it is read again. A negative cost counts as none.
fn thousandths(cost: f64) -> u64 {
    (cost.max(0.0) * 1_000.0).round() as u64
}

impl Account {
    /// Returns the account of a conversation that has not begun.
    pub(crate) fn new() -> Self {
        Self { plain: Some(Plain::default()), ..Self::default() }
    }

    /// Returns the tokens before everything that the view knows of: as counted, or as given by the agent.
    pub(crate) fn front(&self) -> u64 {
        if self.counted.is_empty() { self.agent_front } else { self.counted.front }
    }

    /// Returns what one recall may cost, by a search and a load: as much as recalls have cost so far, else as much as
    /// two calls from this prompt may cost.
    fn recall_cost(&self, bill: Bill, settings: &CacheAware) -> f64 {
        let prices = settings.prices;
        let again = prices.read * bill.stable as f64 + prices.plain * bill.suffix as f64;
        match self.recalls {
            0 => 2.0 * again + prices.write * RECALL_TOKENS as f64,
            n => 2.0 * self.recalled as f64 / 1_000.0 / f64::from(n),
        }
    }

    /// Returns the cost of the next call if everything is kept.
    fn full_bill(&self) -> Bill {
        let front = |tokens: u64| if tokens == 0 { 0 } else { tokens + self.front() };
        Bill { stable: front(self.history), suffix: 0, shared: front(self.sent) }
    }

    /// Returns whether the next call may have this bill.
    pub(crate) fn affords(&self, bill: Bill, settings: &CacheAware) -> bool {
        self.affords_beside(bill, 0.0, settings)
    }

    /// Returns whether a fold may have this bill if a saving of `net` is expected, with `stay` as the bill without it:
    /// the possible cost of a recall has to be left over, or half of the expected saving has to pay for it.
    pub(crate) fn affords_fold(
        &self,
        bill: Bill,
        stay: Bill,
        net: f64,
        settings: &CacheAware,
    ) -> bool {
        // If the caller's tools recall, their cost is the caller's concern, too.
        let recall = if settings.tools_elsewhere { 0.0 } else { self.recall_cost(bill, settings) };
        let reserve = (recall - net.max(0.0) / 2.0).max(0.0);
        let is_cheaper = bill.cost(settings) + reserve <= stay.cost(settings);
        is_cheaper || self.affords_beside(bill, reserve, settings)
    }

    /// Returns whether keeping everything costs less with the cache than without.
    pub(crate) fn is_cache_cheaper(&self, settings: &CacheAware) -> bool {
        let whole = self.full_bill();
        let full = self.full + thousandths(whole.cost(settings));
        self.plain.is_none_or(|plain| full <= plain.full + whole.plain_cost(settings))
    }

    /// Returns whether the next call may have this bill and leave this much over.
    fn affords_beside(&self, bill: Bill, reserve: f64, settings: &CacheAware) -> bool {
        let whole = self.full_bill();
        let new = settings.prices.write * bill.stable.saturating_sub(bill.shared) as f64;
        let (excess, doubt) = match self.counted.is_empty() {
            true => (EXCESS - UNCOUNTED, 0.0),
            false => (EXCESS, DOUBT * new),
        };
        let (mut full, mut spent) = (
            self.full + thousandths(whole.cost(settings)),
            self.spent + thousandths(bill.cost(settings)),
        );
        // A caller that would pay less without a cache does without it.
        if let Some(plain) = self.plain.filter(|_| !settings.tools_elsewhere) {
            full = full.min(plain.full + whole.plain_cost(settings));
            spent = spent.min(plain.spent + bill.plain_cost(settings));
        }
        let spent = spent + thousandths(doubt + reserve);
        spent as f64 <= (1.0 + excess) * full as f64
    }

    /// Returns the tokens of a prefix that is cached if it is long enough: if counts are known, that has to be
    /// certain, since the rest of it is estimated.
    pub(crate) fn surely_cached(&self, tokens: u64, settings: &CacheAware) -> u64 {
        let is_sure = self.counted.is_empty() || tokens >= settings.tokens_cached();
        if is_sure { tokens } else { 0 }
    }

    /// Returns whether the rent, including this one, has reached the price.
    pub(crate) fn has_paid(&self, rent: f64, price: f64) -> bool {
        self.rent + thousandths(rent) >= thousandths(price)
    }

    /// Adds what a call paid for reading what could have been folded.
    pub(crate) fn pay_rent(&mut self, rent: f64) {
        self.rent += thousandths(rent);
    }

    /// Clears the rent after a fold.
    pub(crate) fn end_rent(&mut self) {
        self.rent = 0;
    }

    /// Returns the lines of the ledger.
    pub(crate) fn ledger_lines(&self) -> impl Iterator<Item = &str> {
        self.ledger.iter().flat_map(|message| message.lines())
    }

    /// Notes that the provider has nothing of what was sent in its cache.
    pub(crate) fn cool(&mut self) {
        (self.sent, self.cached) = (0, 0);
    }

    /// Charges the call that a prompt with this bill was made for; a call that only recalls would not be made if
    /// everything were kept. `estimate` is the estimate of what is new in it, up to the message `next`, and `own` are
    /// the tokens before the messages.
    pub(crate) fn charge(
        &mut self,
        bill: Bill,
        (own, estimate, next): (u64, u64, SeqNo),
        is_recall: bool,
        settings: &CacheAware,
    ) {
        let whole = self.full_bill();
        let full = thousandths(whole.cost(settings));
        let spent = thousandths(bill.cost(settings));
        self.cached = bill.stable;
        if is_recall {
            self.recalled += spent;
            self.recalls += 1;
            return;
        }
        self.full += full;
        self.spent += spent;
        if let Some(plain) = &mut self.plain {
            plain.full += whole.plain_cost(settings);
            plain.spent += bill.plain_cost(settings);
        }
        self.calls += 1;
        self.sent = self.history;
        let history = self.history;
        self.charged = Some(Charged { bill, spent, full, history, own, estimate, next });
    }

    /// Charges a further call from the last prompt that recalled something, with this many tokens after it. It is
    /// recorded nowhere, and would not be made if everything were kept.
    pub(crate) fn note_recall(&mut self, tokens: u64, settings: &CacheAware) {
        let bill = Bill { stable: self.cached + tokens, suffix: 0, shared: self.cached };
        self.recalled += thousandths(bill.cost(settings));
        self.recalls += 1;
    }

    /// Takes the provider's bill for the last call in place of the estimate.
    pub(crate) fn bill(&mut self, billed: &Billed) {
        let Some(charged) = self.charged.take() else { return };
        self.plain = None;
        self.full = self.full.saturating_sub(charged.full) + thousandths(billed.whole_cost);
        self.spent = self.spent.saturating_sub(charged.spent) + thousandths(billed.cost);
        let Charged { bill, history, own, estimate, next, .. } = charged;
        self.counted.count(billed, bill.tokens(), own, estimate, next);
        // What was said since follows it.
        let whole = billed.whole_tokens.saturating_sub(self.front());
        self.history = whole + self.history.saturating_sub(history);
        (self.sent, self.cached) = (whole, billed.tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call was billed 20,000 tokens, which keeping everything would have cost as well.
    fn begun() -> Account {
        let mut account = Account { history: 20_000, ..Account::new() };
        let whole = Bill { stable: 20_000, suffix: 0, shared: 0 };
        account.charge(whole, (0, 20_000, SeqNo(1)), false, &CacheAware::default());
        account
    }

    #[test]
    fn lv4_a_fold_leaves_room_for_a_recall_or_pays_for_it() {
        let settings = CacheAware::default();
        let stay = Bill { stable: 20_000, suffix: 0, shared: 20_000 };
        let fold = Bill { stable: 2_000, suffix: 0, shared: 0 };
        let account = begun();
        assert!(account.affords(fold, &settings));
        assert!(!account.affords_fold(fold, stay, 1_000.0, &settings));
        assert!(account.affords_fold(fold, stay, 40_000.0, &settings));
    }

    #[test]
    fn lv4_what_recalls_cost_is_no_part_of_what_keeping_everything_costs() {
        let settings = CacheAware::default();
        let mut account = begun();
        let before = (account.full, account.spent, account.calls, account.plain);
        let bill = Bill { stable: 20_100, suffix: 0, shared: 20_000 };
        account.charge(bill, (0, 100, SeqNo(3)), true, &settings);
        account.note_recall(100, &settings);
        assert_eq!((account.full, account.spent, account.calls, account.plain), before);
        assert_eq!((account.recalls, account.recalled > 2_000_000), (2, true));
    }
}
