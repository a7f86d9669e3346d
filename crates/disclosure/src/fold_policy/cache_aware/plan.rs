//! Plans the next call: a pure function of contents and account.

use super::CacheAwarePolicy;
use super::account::{Bill, Declared};
use crate::contents::Contents;
use crate::entry::Entry;
use crate::opening::BEGINNING;
use foldback_core::{Estimate, SeqNo, TokenCounter};

/// The steps before the next call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    /// How many closed blocks leave.
    pub(super) cut: usize,
    pub(super) declared: Declared,
    /// Whether what the model has seen becomes light although nothing leaves.
    pub(super) settles: bool,
    /// The cost of reading this time that a fold would have saved.
    pub(super) rent: f64,
    /// Whether the stable part is not a continuation of the last one.
    pub(super) moves: bool,
}

/// The bill of a prompt, and where its uncached part begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quote {
    pub(super) bill: Bill,
    /// The first of the messages that are shown whole this once.
    pub(super) once_from: Option<SeqNo>,
}

impl CacheAwarePolicy {
    /// Plans what to do before the next call.
    pub(super) fn plan(&self, contents: &Contents) -> Plan {
        let (settings, account) = (&self.settings, &self.account);
        if self.is_held {
            return Plan {
                cut: 0,
                declared: account.declared,
                settles: false,
                rent: 0.0,
                moves: false,
            };
        }
        let (plan, stay) = self.declaring(contents);
        let (messages, tokens) = (contents.window(0), self.tokens(contents));
        let over = messages > settings.messages_max || tokens > settings.tokens_max;
        let Some(fold) = self.best_fold(contents, stay, over) else { return plan };
        // Close to a high mark, a fold does not wait for its price, so that none is forced when it is expensive.
        let near = 4 * messages > 3 * settings.messages_max || 4 * tokens > 3 * settings.tokens_max;
        let rent = settings.prices.read * fold.saved as f64;
        if over || near || account.has_paid(rent, fold.price) {
            let declared = self.at_least_load(plan.declared);
            let folded = Plan { cut: fold.cut, declared, rent: 0.0, moves: true, ..plan };
            // The bill is exact; the fold was chosen by an estimate.
            let bill = self.bill_after(contents, folded);
            if over || account.affords_fold(bill, stay, fold.net, settings) {
                return folded;
            }
        }
        Plan { rent, ..plan }
    }

    /// Returns the plan in which nothing leaves, with the tools that are now worth declaring, and its
    /// bill.
    fn declaring(&self, contents: &Contents) -> (Plan, Bill) {
        let (settings, account) = (&self.settings, &self.account);
        let (plan, stay) = self.keeping(contents, self.due(contents));
        // The estimate has to ensure that what is kept is cached from now on. A tool that is
        // declared later, when something needs it, moves everything before it.
        let is_cached = account.history + account.front() >= settings.tokens_cached();
        if plan.declared != Declared::Nothing || !is_cached || settings.tools_elsewhere {
            return (plan, stay);
        }
        let (early, bill) = self.keeping(contents, Declared::Load);
        let cost = bill.cost(settings);
        // If certainly nothing is cached yet, it costs only its own tokens. If reading is no cheaper than writing, it
        // costs no more later.
        let is_new = account.cached < settings.least_cached * 9 / 10
            && settings.prices.read < settings.prices.write;
        // Or what becomes light with it, or is shown once, pays for it at once.
        let is_free = bill.stable >= settings.tokens_min()
            && cost <= stay.cost(settings)
            && account.is_cache_cheaper(settings);
        match is_free || (is_new && account.affords(bill, settings)) {
            true => (early, bill),
            false => (plan, stay),
        }
    }

    /// Returns which tools the next call needs.
    pub(super) fn due(&self, contents: &Contents) -> Declared {
        if self.settings.tools_elsewhere {
            return self.account.declared;
        }
        let is_whole = self.account.folded == 0 && !contents.entries().any(|entry| entry.is_cut);
        self.account.declared.max(if is_whole { Declared::Nothing } else { Declared::Load })
    }

    /// Returns what is declared once something has left.
    pub(super) fn at_least_load(&self, declared: Declared) -> Declared {
        if self.settings.tools_elsewhere { declared } else { declared.max(Declared::Load) }
    }

    /// Returns the plan in which nothing leaves and these tools are declared, and its bill. If they are added after
    /// others were cached, everything is written anew: what the model has seen becomes light at the same time if that
    /// is cheaper, and if the prefix stays one that is cached or there is no choice.
    pub(super) fn keeping(&self, contents: &Contents, declared: Declared) -> (Plan, Bill) {
        let settings = &self.settings;
        let moves = declared != self.account.declared && self.account.cached > 0;
        let whole = Plan { cut: 0, declared, settles: false, rent: 0.0, moves };
        if !moves {
            return (whole, self.quote(contents, declared).bill);
        }
        let light = Plan { settles: true, ..whole };
        let (stay, settled) = (self.bill_after(contents, whole), self.bill_after(contents, light));
        let may_settle = settled.stable >= settings.tokens_min() || declared == self.due(contents);
        match may_settle && settled.cost(settings) < stay.cost(settings) {
            true => (light, settled),
            false => (whole, stay),
        }
    }

    /// Returns policy and contents as they are once the plan is carried out.
    pub(super) fn after(&self, contents: &Contents, plan: Plan) -> (Self, Contents) {
        let (mut policy, mut contents) = (self.clone(), contents.clone());
        policy.carry_out(&mut contents, plan);
        (policy, contents)
    }

    /// Returns the bill of the prompt once the plan is carried out.
    fn bill_after(&self, contents: &Contents, plan: Plan) -> Bill {
        let (policy, contents) = self.after(contents, plan);
        policy.quote(&contents, plan.declared).bill
    }

    /// Returns the bill of the current contents with these tools declared.
    pub(super) fn quote(&self, contents: &Contents, declared: Declared) -> Quote {
        let settings = &self.settings;
        let shared = if self.account.declared == declared { self.account.cached } else { 0 };
        let question = self.account.question;
        let mut stable = self.front_tokens(contents, declared) + self.ledger_tokens() + question;
        if !self.opens_with_user(contents) {
            stable += Estimate.count(BEGINNING) as u64 + 4;
        }
        let fresh = self.fresh_start(contents);
        let mut entries = contents.entries().peekable();
        while let Some(entry) = entries.next_if(|entry| entry.seq < fresh) {
            stable += self.tokens_of(entry);
        }
        let fresh: Vec<&Entry> = entries.collect();
        let tokens: u64 = fresh.iter().map(|entry| self.tokens_of(entry)).sum();
        let mut best =
            Quote { bill: Bill { stable: stable + tokens, suffix: 0, shared }, once_from: None };
        if declared == Declared::Nothing || !settings.shows_once {
            return best;
        }
        // From the end: what begins at an entry is that entry and what begins at the next.
        let prices = settings.prices;
        let (mut gain, mut suffix, mut most) = (0.0, 0, 0.0);
        for entry in fresh.iter().rev() {
            let whole = self.tokens_of(entry);
            suffix += whole;
            let Some(light) = self.light_tokens_of(entry) else {
                gain -= (prices.plain - prices.read) * whole as f64;
                continue;
            };
            gain += (prices.write + prices.read - prices.plain) * whole as f64
                - prices.write * light as f64;
            let stable = stable + tokens - suffix;
            if gain > most && stable >= settings.tokens_min() {
                most = gain;
                let shared = shared.min(stable);
                best = Quote { bill: Bill { stable, suffix, shared }, once_from: Some(entry.seq) };
            }
        }
        best
    }

    /// Returns whether a user's message comes first anyway.
    fn opens_with_user(&self, contents: &Contents) -> bool {
        self.pinned.is_some()
            || !self.ledger.is_empty()
            || contents.entries().next().is_some_and(Entry::is_beginning)
    }
}
