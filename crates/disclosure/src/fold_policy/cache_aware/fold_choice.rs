//! Decides how many blocks are worth folding: every possible fold, priced by an estimate.

use super::account::Bill;
use super::{CALLED_TOKENS, CacheAwarePolicy};
use crate::called::line_tokens;
use crate::contents::{ClosedBlock, Contents, visible};
use crate::entry::{Entry, Form};
use foldback_core::{Estimate, SeqNo, TokenCounter};
use std::collections::BTreeSet;

/// Estimated tokens of the rule that the ledger begins with, rounded up.
const RULE_TOKENS: u64 = 100;

/// A possible fold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fold {
    /// How many closed blocks leave.
    pub(super) cut: usize,
    /// How much smaller the prompt is.
    pub(super) saved: u64,
    /// How much more expensive the next call is.
    pub(super) price: f64,
    /// The expected saving, less its price.
    pub(super) net: f64,
}

impl CacheAwarePolicy {
    /// Returns the cheapest fold over the expected calls, if one is worth its price and affordable;
    /// if the view is `over` its high mark, the one that brings it below. `stay` is the next call's
    /// bill without a fold.
    pub(super) fn best_fold(&self, contents: &Contents, stay: Bill, over: bool) -> Option<Fold> {
        let (settings, account) = (&self.settings, &self.account);
        let fresh = self.fresh_start(contents);
        let prefix = Prefix::of(self, contents, stay);
        let mut split = Split::new(self, contents, fresh);
        let is_due = account.cached > 0 && self.due(contents) != account.declared;
        let (base, again) = (stay.cost(settings), stay.again(settings));
        let calls = (account.calls + 1) as f64;
        let open = &contents.open_tail;
        let mut best: Option<(f64, Fold)> = None;
        for (at, block) in contents.closed.iter().enumerate() {
            if block.entries.last().is_some_and(|last| last.seq >= fresh) {
                break;
            }
            split.leave(contents, block);
            let bill = prefix.bill(self, contents, at + 1, &split);
            let saved = stay.tokens().saturating_sub(bill.tokens());
            let price = bill.cost(settings) - base;
            let net = calls * (again - bill.again(settings)) - price;
            let fold = Fold { cut: at + 1, saved, price, net };
            let fits = split.messages + open.len() <= settings.messages_max
                && split.tokens <= settings.tokens_max;
            let pays = net > 0.0
                && split.messages + visible(open) >= settings.messages_min
                && (is_due || bill.stable >= settings.tokens_min())
                && account.affords_fold(bill, stay, net, settings);
            // Above the high mark, every further block is better until the view fits.
            let (net, wanted) = if over && !fits { (f64::MIN, true) } else { (net, over || pays) };
            if wanted && best.is_none_or(|(most, _)| net > most || most == f64::MIN) {
                best = Some((net, fold));
            }
        }
        best.map(|(_, fold)| fold)
    }
}

/// What any fold leaves before the messages, and how much of that is cached.
struct Prefix {
    /// The tokens before the ledger.
    front: u64,
    /// The tokens of the ledger so far.
    ledger: u64,
    /// The tokens that stay cached if blocks are listed after the fold.
    cached_listed: u64,
    /// The same if there are too many to be listed.
    cached_unlisted: u64,
    /// New large parts are shown once after the cached part, whatever leaves.
    suffix: u64,
}

impl Prefix {
    fn of(policy: &CacheAwarePolicy, contents: &Contents, stay: Bill) -> Self {
        let account = &policy.account;
        let declared = policy.at_least_load(account.declared);
        let suffix = match account.declared == declared {
            true => stay.suffix,
            false => policy.keeping(contents, declared).1.suffix,
        };
        let ledger = if policy.ledger.is_empty() { RULE_TOKENS } else { policy.ledger_tokens() };
        let front = policy.front_tokens(contents, declared);
        let is_listing = contents.ledger.lists_blocks();
        let cached_listed = match (account.declared == declared, is_listing) {
            (true, true) => account.cached.min(front + policy.ledger_tokens()),
            (true, false) => {
                account.cached.min(front + policy.ledger.first().map_or(0, Form::estimate))
            }
            (false, _) => 0,
        };
        let cached_unlisted = cached_listed.min(if is_listing { front } else { u64::MAX });
        Self { front, ledger, cached_listed, cached_unlisted, suffix }
    }

    /// Returns the bill of the call after a fold of this many blocks.
    fn bill(
        &self,
        policy: &CacheAwarePolicy,
        contents: &Contents,
        cut: usize,
        split: &Split<'_>,
    ) -> Bill {
        let (ledger, cached) = match contents.ledger.lists_blocks_after(cut) {
            true => {
                let calls = split.new_calls.min(CALLED_TOKENS);
                (self.ledger + split.lines + 24 + calls, self.cached_listed)
            }
            false => {
                let before: u64 = contents.called.lines().map(line_tokens).sum();
                let calls = (before + split.new_calls).min(CALLED_TOKENS);
                (RULE_TOKENS + 60 + calls, self.cached_unlisted)
            }
        };
        let shared = (cached + split.pins).min(policy.account.cached);
        let shared = policy.account.surely_cached(shared, &policy.settings);
        let messages = split.tokens.saturating_sub(self.suffix);
        let next = contents.closed.iter().skip(cut).flat_map(|block| &block.entries);
        let is_asked = next.chain(&contents.open_tail).next().is_some_and(Entry::opens_turn);
        let question = if is_asked { 0 } else { split.question };
        let stable = self.front + split.pins + ledger + question + messages;
        Bill { stable, suffix: self.suffix, shared }
    }
}

/// The contents, divided into what leaves and what stays. What stays is as a fold leaves it: light if
/// the model has seen it.
struct Split<'v> {
    policy: &'v CacheAwarePolicy,
    fresh: SeqNo,
    /// The tokens that stay, including those shown whole this once.
    tokens: u64,
    /// The messages of closed blocks that stay.
    messages: usize,
    /// The tokens of the ledger lines of the blocks that leave.
    lines: u64,
    /// The tokens of pinned messages that leave their place.
    pins: u64,
    /// The tokens of the question that the caller shows of what left.
    question: u64,
    /// The tokens of calls that leave and are not yet in the ledger. Some of them may still be in view,
    /// and are written later: the price tends to be too high.
    new_calls: u64,
    known_calls: BTreeSet<&'v str>,
}

impl<'v> Split<'v> {
    /// Creates the division in which nothing leaves yet.
    fn new(policy: &'v CacheAwarePolicy, contents: &'v Contents, fresh: SeqNo) -> Self {
        let mut split = Self {
            policy,
            fresh,
            tokens: 0,
            messages: contents.closed.iter().map(|block| visible(&block.entries)).sum(),
            lines: 0,
            pins: 0,
            question: policy.account.question,
            new_calls: 0,
            known_calls: policy.account.ledger_lines().collect(),
        };
        split.tokens = contents.entries().map(|entry| split.tokens_of(entry)).sum();
        split
    }

    /// Lets one more block leave.
    fn leave(&mut self, contents: &Contents, block: &'v ClosedBlock) {
        let entries = &block.entries;
        self.messages -= visible(entries);
        self.tokens -= entries.iter().map(|entry| self.tokens_of(entry)).sum::<u64>();
        self.lines += Estimate.count(&block.line) as u64 + 1;
        let pinned = entries.iter().filter(|entry| contents.pins.contains_key(&entry.seq));
        self.pins += pinned.map(|entry| self.policy.tokens_of(entry)).sum::<u64>();
        if let Some(question) = self.policy.question_in(contents, entries) {
            self.question = question;
        }
        let calls = entries.iter().flat_map(Entry::called_lines);
        let new = calls.filter(|line| self.known_calls.insert(*line));
        self.new_calls += new.map(line_tokens).sum::<u64>();
    }

    fn tokens_of(&self, entry: &Entry) -> u64 {
        let light = self.policy.light_tokens_of(entry).filter(|_| entry.seq < self.fresh);
        light.unwrap_or_else(|| self.policy.tokens_of(entry))
    }
}
