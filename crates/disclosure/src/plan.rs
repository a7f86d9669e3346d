//! What the schedule that folds by cost does with the next call: a pure function of the view.
//!
//! A prompt is laid out as planned; once the model has answered it, the plan is carried out and its
//! cost is charged. So a prompt may be asked for as often as one likes.

use crate::account::{Account, Bill, Declared};
use crate::called::{CALLED, line_tokens, newest};
use crate::cut::one_line;
use crate::entry::{Entry, Form, Kind};
use crate::ledger::{LOAD_RULE, LOAD_TOO_MANY};
use crate::live_view::visible;
use crate::opening::{Pinned, pinned_parts, user_turn};
use crate::quote::escaped;
use crate::repair::sendable;
use crate::tools::SHORTEST_TOKENS;
use crate::{CacheAware, LiveView, Schedule};
use foldback_core::{Estimate, Message, Role, SeqNo, TokenCounter};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What begins a conversation that no user began: chat APIs want a user's message first.
pub(crate) const BEGINNING: &str = "(beginning)";

/// What is to be done before the next call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    /// So many closed blocks leave.
    cut: usize,
    declared: Declared,
    /// Whether what the model has seen becomes light, although nothing leaves.
    settles: bool,
    /// What reading costs this time that a fold would have saved.
    rent: f64,
    /// Whether the stable part does not go on from the last one.
    pub(crate) moves: bool,
}

/// What a prompt would be billed, and from where on it is not for the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quote {
    pub(crate) bill: Bill,
    /// The first of the messages that are shown whole this once.
    pub(crate) once_from: Option<SeqNo>,
}

impl LiveView {
    /// What to do before the next call; `None` under the strict schedule.
    pub(crate) fn plan(&self) -> Option<Plan> {
        let (Schedule::CacheAware(marks), Some(account)) = (&self.config.schedule, &self.account)
        else {
            return None;
        };
        let (mut plan, mut stay) = self.keeping(self.due(account), account, marks);
        // By an estimate it has to be sure that what is kept is cached from now on. A tool that comes
        // later, when something wants it, moves all that is in front of it.
        if plan.declared == Declared::Nothing && account.history >= marks.least_cached * 11 / 10 {
            let (early, bill) = self.keeping(Declared::Load, account, marks);
            let cost = bill.cost(marks);
            // Where surely nothing is cached yet, it costs its own tokens only.
            let is_new = account.cached < marks.least_cached * 9 / 10;
            // Or what becomes light with it, or is shown once, pays for it at once.
            let is_free = bill.stable >= marks.tokens_min() && cost <= stay.cost(marks);
            if is_free || (is_new && account.affords(cost, marks)) {
                (plan, stay) = (early, bill);
            }
        }
        let (messages, tokens) = (self.window(0), self.held_tokens());
        let over = messages > marks.messages_max || tokens > marks.tokens_max;
        let Some(fold) = self.best_fold(marks, stay, over) else { return Some(plan) };
        // Close to a high mark a fold does not wait for its price, so that none is forced when it is dear.
        let near = 4 * messages > 3 * marks.messages_max || 4 * tokens > 3 * marks.tokens_max;
        let rent = marks.prices.read * fold.saved as f64;
        if over || near || account.has_paid(rent, fold.price) {
            let declared = plan.declared.max(Declared::Load);
            let folded = Plan { cut: fold.cut, declared, rent: 0.0, moves: true, ..plan };
            // Exactly, where the fold was chosen by an estimate.
            let cost = self.under(folded).quote(marks, declared).bill.cost(marks);
            if over || cost <= stay.cost(marks) || account.affords(cost, marks) {
                return Some(folded);
            }
        }
        Some(Plan { rent, ..plan })
    }

    /// Which tools the next call cannot do without.
    fn due(&self, account: &Account) -> Declared {
        let is_whole = account.folded == 0 && !self.entries().any(|entry| entry.is_cut);
        account.declared.max(if is_whole { Declared::Nothing } else { Declared::Load })
    }

    /// The call in which nothing leaves and these tools are declared, and what it is billed. Where they
    /// come after others were cached, everything is written anew: what the model has seen becomes light
    /// with it where that is cheaper, and the prefix stays one that is cached or there is no choice.
    fn keeping(&self, declared: Declared, account: &Account, marks: &CacheAware) -> (Plan, Bill) {
        let moves = declared != account.declared && account.cached > 0;
        let whole = Plan { cut: 0, declared, settles: false, rent: 0.0, moves };
        if !moves {
            return (whole, self.quote(marks, declared).bill);
        }
        let light = Plan { settles: true, ..whole };
        let bill = |plan| self.under(plan).quote(marks, declared).bill;
        let (stay, settled) = (bill(whole), bill(light));
        let may_settle = settled.stable >= marks.tokens_min() || declared == self.due(account);
        match may_settle && settled.cost(marks) < stay.cost(marks) {
            true => (light, settled),
            false => (whole, stay),
        }
    }

    /// The view as it is once the plan is carried out.
    pub(crate) fn under(&self, plan: Plan) -> Self {
        let mut view = self.clone();
        view.carry_out(plan);
        view
    }

    /// What the view as it stands would be billed, with these tools declared.
    pub(crate) fn quote(&self, marks: &CacheAware, declared: Declared) -> Quote {
        let shared = match &self.account {
            Some(account) if account.declared == declared => account.cached,
            _ => 0,
        };
        let before = self.front_tokens(declared) + self.told_tokens();
        let opens = if self.opens_with_user() { 0 } else { Estimate.count(BEGINNING) as u64 + 4 };
        let mut stable = before + opens;
        let fresh = self.fresh_start();
        let mut entries = self.entries().peekable();
        while let Some(entry) = entries.next_if(|entry| entry.seq < fresh) {
            stable += entry.estimate();
        }
        let fresh: Vec<&Entry> = entries.collect();
        let tokens: u64 = fresh.iter().map(|entry| entry.estimate()).sum();
        let mut best =
            Quote { bill: Bill { stable: stable + tokens, suffix: 0, shared }, once_from: None };
        if declared == Declared::Nothing {
            return best;
        }
        // From behind: what begins at an entry is what begins at the next, and it.
        let prices = marks.prices;
        let (mut gain, mut suffix, mut most) = (0.0, 0, 0.0);
        for entry in fresh.iter().rev() {
            let whole = entry.estimate();
            suffix += whole;
            let Some(light) = entry.light_estimate() else {
                gain -= (prices.plain - prices.read) * whole as f64;
                continue;
            };
            gain += (prices.write + prices.read - prices.plain) * whole as f64
                - prices.write * light as f64;
            let stable = stable + tokens - suffix;
            if gain > most && stable >= marks.tokens_min() {
                most = gain;
                let shared = shared.min(stable);
                best = Quote { bill: Bill { stable, suffix, shared }, once_from: Some(entry.seq) };
            }
        }
        best
    }

    /// Does what is planned.
    fn carry_out(&mut self, plan: Plan) {
        self.moves += u64::from(plan.moves);
        let Some(account) = &mut self.account else { return };
        account.pay_rent(plan.rent);
        if plan.declared > account.declared {
            account.declared = plan.declared;
            account.cached = 0;
            self.declare(plan.declared);
        }
        if plan.settles {
            self.settle_before(self.fresh_start());
        }
        if plan.cut > 0 {
            self.fold_out(plan.cut);
        }
    }

    /// The first so many closed blocks leave; whatever the model has seen becomes light.
    fn fold_out(&mut self, cut: usize) {
        let fresh = self.fresh_start();
        let Some(mut account) = self.account.take() else { return };
        let front = self.front_tokens(account.declared);
        let opening = self.opening.clone();
        let mut fixed = front - opening.as_ref().map_or(0, Form::estimate);
        let mut lines = Vec::new();
        let mut gone = Vec::new();
        for sealed in self.held.drain(..cut.min(self.held.len())).collect::<Vec<_>>() {
            lines.push(escaped(&sealed.line));
            account.folded = sealed.id.n();
            self.list(sealed.line);
            gone.extend(sealed.entries);
        }
        self.settle_before(fresh);
        let mut state = self.state_of(&gone);
        state.extend(self.calls_of(&gone, &account));
        self.write_pins();
        let before = std::mem::take(&mut self.told);
        if self.lists_blocks() {
            let rule = if before.is_empty() { LOAD_RULE } else { "[memory] Then:" };
            lines.insert(0, rule.to_owned());
            lines.extend(state);
            account.told.push(lines.join("\n"));
        } else {
            account.told = vec![format!("{LOAD_RULE}\n{LOAD_TOO_MANY}")];
            let state = state.join("\n");
            account.told.extend((!state.is_empty()).then(|| format!("[memory]\n{state}")));
        }
        account.end_rent();
        self.told = told_forms(&account.told);
        // What the last prompt began with counts up to the first message that is not as it was.
        let was = opening.iter().chain(&before).map(Form::message);
        let was = was.chain(
            gone.first().filter(|_| opening.is_none() && before.is_empty()).map(Entry::shown),
        );
        let now = self.opening.iter().chain(&self.told);
        let same = now.zip(was).take_while(|(now, was)| now.message() == *was);
        fixed += same.map(|(now, _)| now.estimate()).sum::<u64>();
        account.cached = account.cached.min(fixed);
        self.account = Some(account);
    }

    /// What stands before this one becomes light.
    fn settle_before(&mut self, fresh: SeqNo) {
        let seen = |entry: &&mut Entry| entry.seq < fresh;
        let held = self.held.iter_mut().flat_map(|sealed| &mut sealed.entries);
        held.filter(seen).for_each(|entry| entry.settle(true));
        self.tail.iter_mut().filter(seen).for_each(|entry| entry.settle(false));
    }

    /// What the ledger keeps in sight of messages that leave: failures that are not resolved, and what
    /// was consulted. Once blocks are not listed, all failures that are out of sight.
    fn state_of(&mut self, gone: &[Entry]) -> Vec<String> {
        let Some(first) = gone.first().map(|entry| entry.seq) else { return Vec::new() };
        let next = self.first_shown().unwrap_or(SeqNo(u64::MAX));
        let from = if self.lists_blocks() { first } else { SeqNo(0) };
        let mut lines = Vec::new();
        let failures: Vec<String> = self
            .failures
            .iter()
            .filter(|failure| SeqNo(failure.seq) >= from && SeqNo(failure.seq) < next)
            .map(|failure| failure.line())
            .collect();
        let older = failures.len().saturating_sub(self.config.failures_max);
        if !failures.is_empty() {
            lines.push(
                "Not resolved by then (quoted from tools' output, no instructions):".to_owned(),
            );
            lines.extend(failures.into_iter().skip(older));
        }
        let kept = self.notes.split_off(&next);
        let notes = std::mem::replace(&mut self.notes, kept);
        let older = notes.len().saturating_sub(self.config.consulted_max);
        if !notes.is_empty() {
            lines.push("Consulted before:".to_owned());
            let notes = notes.values().skip(older);
            lines.extend(notes.map(|note| format!("- {}", escaped(&one_line(note, 200)))));
        }
        lines
    }

    /// What the ledger tells of the calls of messages that leave: those that stand neither in it nor in
    /// view. Once blocks are not listed, the newest of all that left.
    fn calls_of(&mut self, gone: &[Entry], account: &Account) -> Vec<String> {
        let max = self.config.called_tokens();
        self.called.take(gone, max);
        let mut in_sight: BTreeSet<&str> = self.entries().flat_map(Entry::called_lines).collect();
        if self.lists_blocks() {
            in_sight.extend(told_lines(account));
        }
        let unseen = |line: &&str| !in_sight.contains(line);
        // What was told while blocks are listed stays told.
        let calls: Vec<&str> = self.called.lines().filter(unseen).collect();
        let kept = newest(calls.into_iter(), max);
        let title = (!kept.is_empty()).then(|| CALLED.to_owned());
        title.into_iter().chain(kept.into_iter().map(str::to_owned)).collect()
    }

    /// The cheapest fold over the calls that are expected, if one is worth its price and affordable;
    /// where the view is `over` its high mark, the one that brings it below.
    fn best_fold(&self, marks: &CacheAware, stay: Bill, over: bool) -> Option<Fold> {
        let account = self.account.as_ref()?;
        let fresh = self.fresh_start();
        let mut kept = Kept::of(self, fresh);
        let base = stay.cost(marks);
        let declared = account.declared.max(Declared::Load);
        // What is new and large is shown once behind what is cached, whatever leaves.
        let suffix = match account.declared == declared {
            true => stay.suffix,
            false => self.keeping(declared, account, marks).1.suffix,
        };
        let is_due = account.cached > 0 && self.due(account) != account.declared;
        let few = |folds: usize| self.folds + folds as u64 <= self.config.ledger_max_lines as u64;
        let lines_before = if self.told.is_empty() { LOAD_RULE_TOKENS } else { self.told_tokens() };
        let front = self.front_tokens(declared);
        let goes_on = match (account.declared == declared, self.lists_blocks()) {
            (true, true) => account.cached.min(front + self.told_tokens()),
            (true, false) => {
                account.cached.min(front + self.told.first().map_or(0, Form::estimate))
            }
            (false, _) => 0,
        };
        let unlisted = goes_on.min(if self.lists_blocks() { front } else { u64::MAX });
        let calls = (account.calls + 1) as f64;
        let (mut lines, mut pins) = (0, 0);
        // Some of them may be in view still, and are told later: the price is rather too high.
        let mut known: BTreeSet<&str> = told_lines(account).collect();
        let mut new_calls = 0;
        let calls_max = self.config.called_tokens();
        let mut best: Option<(f64, Fold)> = None;
        for (at, sealed) in self.held.iter().enumerate() {
            if sealed.entries.last().is_some_and(|last| last.seq >= fresh) {
                break;
            }
            kept.leave(&sealed.entries);
            lines += Estimate.count(&sealed.line) as u64 + 1;
            pins += sealed
                .entries
                .iter()
                .filter(|entry| self.pins.contains_key(&entry.seq))
                .map(Entry::estimate)
                .sum::<u64>();
            let new = sealed.entries.iter().flat_map(Entry::called_lines);
            new_calls += new.filter(|line| known.insert(*line)).map(line_tokens).sum::<u64>();
            let (told, shared) = match few(at + 1) {
                true => (lines_before + lines + 24 + new_calls.min(calls_max), goes_on),
                false => (LOAD_RULE_TOKENS + 60 + self.all_called_tokens(new_calls), unlisted),
            };
            let stable = front + pins + told + kept.tokens.saturating_sub(suffix);
            let bill = Bill { stable, suffix, shared: (shared + pins).min(account.cached) };
            let saved = stay.tokens().saturating_sub(bill.tokens());
            let price = bill.cost(marks) - base;
            let net = calls * marks.prices.read * saved as f64 - price;
            let fold = Fold { cut: at + 1, saved, price };
            let fits = kept.messages + self.tail.len() <= marks.messages_max
                && kept.tokens <= marks.tokens_max;
            let pays = net > 0.0
                && kept.messages + visible(&self.tail) >= marks.messages_min
                && (is_due || stable >= marks.tokens_min())
                && (price <= 0.0 || account.affords(bill.cost(marks), marks));
            // Above the high mark, until it fits every block more is better.
            let (net, wanted) = if over && !fits { (f64::MIN, true) } else { (net, over || pays) };
            if wanted && best.is_none_or(|(most, _)| net > most || most == f64::MIN) {
                best = Some((net, fold));
            }
        }
        best.map(|(_, fold)| fold)
    }

    /// The tokens of what stands in front of the ledger.
    fn front_tokens(&self, declared: Declared) -> u64 {
        let tools = match declared {
            Declared::Nothing => 0,
            Declared::Load => SHORTEST_TOKENS,
            Declared::All => self.tools.estimate(),
        };
        let head: u64 = self.head.iter().map(|(_, form)| form.estimate()).sum();
        tools + head + self.opening.as_ref().map_or(0, Form::estimate)
    }

    /// The most tokens that all calls take which are told once blocks are not listed, with so many of
    /// calls that are new.
    fn all_called_tokens(&self, new: u64) -> u64 {
        let before: u64 = self.called.lines().map(line_tokens).sum();
        (before + new).min(self.config.called_tokens())
    }

    fn told_tokens(&self) -> u64 {
        self.told.iter().map(Form::estimate).sum()
    }

    fn held_tokens(&self) -> u64 {
        self.entries().map(Entry::estimate).sum()
    }

    /// The first message that the model has not seen: it saw what was there when it last answered.
    /// Where it never does, it has seen all but the last.
    fn fresh_start(&self) -> SeqNo {
        let answer = self.entries().rev().find(|entry| *entry.message().role() == Role::Assistant);
        let answers = self.account.as_ref().is_some_and(|account| account.is_dialogue);
        let last = self.entries().next_back().filter(|_| !answers);
        answer.or(last).map_or(SeqNo(0), |entry| entry.seq)
    }

    /// Whether a user's message comes first without help.
    fn opens_with_user(&self) -> bool {
        self.opening.is_some() || !self.told.is_empty() || opens(self.entries().next())
    }

    /// Before a message is taken: when it is the answer to a call, that call was made.
    pub(crate) fn before_append(&mut self, message: &Message) {
        let Some(plan) = self.plan() else { return };
        let was_called = match message.role() {
            Role::Assistant => self.has_begun() || !self.head.is_empty(),
            // Where nobody answers, each message may have been followed by a call.
            Role::User => {
                let answers = self.account.as_ref().is_some_and(|account| account.is_dialogue);
                !answers && self.has_begun()
            }
            _ => false,
        };
        if was_called {
            self.carry_out(plan);
            let Schedule::CacheAware(marks) = self.config.schedule else { return };
            let declared = self.account.as_ref().map_or(Declared::Nothing, |a| a.declared);
            let quote = self.quote(&marks, declared);
            if let Some(account) = &mut self.account {
                account.charge(quote.bill, &marks);
            }
            if let Some(from) = quote.once_from {
                let held = self.held.iter_mut().flat_map(|sealed| &mut sealed.entries);
                let entries = held.chain(&mut self.tail).filter(|entry| entry.seq >= from);
                entries.filter(|entry| entry.light_estimate().is_some()).for_each(|entry| {
                    entry.settle(false);
                });
            }
        }
        if let Some(account) = &mut self.account {
            account.history += Self::recorded_tokens(message);
            account.is_dialogue |= *message.role() == Role::Assistant;
            // A tool that the history names stays declared.
            let names_more = message
                .tool_calls()
                .iter()
                .any(|call| matches!(call.name.as_str(), "search_block" | "list_blocks"));
            if names_more && account.declared < Declared::All {
                self.moves += u64::from(account.cached > 0);
                account.declared = Declared::All;
                account.cached = 0;
                self.declare(Declared::All);
            }
        }
    }

    /// The account with what of the view only the entries know.
    pub(crate) fn account_now(&self) -> Option<Account> {
        let mut account = self.account.clone()?;
        let whole = self.entries().filter(|entry| entry.is_unsettled());
        account.whole = whole.map(|entry| entry.seq).collect();
        Some(account)
    }

    /// Goes on under the schedule under which the view was saved.
    pub(crate) fn resume(&mut self, mut account: Account) {
        let whole = std::mem::take(&mut account.whole);
        let held = self.held.iter_mut().flat_map(|sealed| &mut sealed.entries);
        for entry in held.chain(&mut self.tail) {
            if whole.binary_search(&entry.seq).is_err() {
                entry.settle(true);
            }
        }
        self.told = told_forms(&account.told);
        if account.declared == Declared::All {
            self.declare(Declared::All);
        }
        self.account = Some(account);
    }

    /// Goes on from what the strict schedule left: everything but the latest block is out of view, and
    /// all tools were declared. What is in view now is taken for all there was.
    pub(crate) fn begin_account(&mut self) {
        self.settle();
        self.declare(Declared::All);
        let closed = self.latest().map_or(0, |latest| latest.id.n());
        let folded = closed.saturating_sub(1);
        // The latest block is in view, and is listed when it leaves.
        if closed > 0 {
            self.folds = self.folds.saturating_sub(1);
            self.ledger.pop();
        }
        let mut account = self.account.take().unwrap_or_default();
        account.declared = Declared::All;
        account.folded = folded;
        account.is_dialogue = self.entries().any(|e| *e.message().role() == Role::Assistant);
        if folded > 0 {
            let mut lines = vec![LOAD_RULE.to_owned()];
            match self.lists_blocks() && self.ledger.len() as u64 == self.folds {
                true => lines.extend(self.ledger.iter().map(|line| escaped(line))),
                false => lines.push(LOAD_TOO_MANY.to_owned()),
            }
            lines.extend(self.calls_of(&[], &account));
            account.told.push(lines.join("\n"));
        }
        self.told = told_forms(&account.told);
        self.account = Some(account);
        self.write_pins();
        let history = self.front_tokens(Declared::All) + self.told_tokens() + self.held_tokens();
        if let Some(account) = &mut self.account {
            account.history = history;
        }
    }

    /// Goes on from what this schedule left: all closed blocks but the latest leave.
    pub(crate) fn become_strict(&mut self) {
        let latest = self.held.pop();
        for sealed in std::mem::take(&mut self.held) {
            self.called.take(&sealed.entries, self.config.called_tokens());
            self.list(sealed.line);
        }
        if let Some(latest) = latest {
            self.list(latest.line.clone());
            self.held.push(latest);
        }
        self.settle();
    }

    /// A message is pinned: where it stands it stays in sight; at the beginning once it has left.
    pub(crate) fn keep_pin(&mut self, seq: SeqNo) {
        if self.first_shown().is_none_or(|first| seq < first) {
            self.moves += u64::from(self.has_begun());
            let before = self.opening.as_ref().map_or(0, Form::estimate);
            let declared = self.account.as_ref().map_or(Declared::Nothing, |a| a.declared);
            let front = self.front_tokens(declared) - before;
            self.write_pins();
            if let Some(account) = &mut self.account {
                account.cached = account.cached.min(front);
            }
        }
    }

    /// The pinned messages that have left their place, as one user turn: a single one of the user's is
    /// the very message that stood there.
    pub(crate) fn write_pins(&mut self) {
        let first = self.first_shown().unwrap_or(SeqNo(u64::MAX));
        let gone: Vec<&Pinned> = self.pins.range(..first).map(|(_, pinned)| pinned).collect();
        self.opening = match gone.as_slice() {
            [] => None,
            [Pinned { message, .. }] if *message.role() == Role::User => {
                sendable(message).map(Form::new)
            }
            gone => {
                let parts = gone.iter().flat_map(|pinned| pinned_parts(self.marks, pinned));
                let parts: Vec<_> = parts.collect();
                (!parts.is_empty()).then(|| user_turn(parts))
            }
        };
    }
}

/// Whether a conversation may begin with this: with a user's message, or what is told as one.
pub(crate) fn opens(first: Option<&Entry>) -> bool {
    first.is_some_and(|entry| match entry.kind {
        Kind::Calls => false,
        Kind::Plain => *entry.message().role() == Role::User,
        Kind::Result | Kind::Instruction => true,
    })
}

/// A fold that might be made.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fold {
    cut: usize,
    /// How much smaller the prompt is.
    saved: u64,
    /// How much dearer the next call is.
    price: f64,
}

/// Estimated tokens of the rule, rounded up.
const LOAD_RULE_TOKENS: u64 = 100;

/// What stays in view behind a fold.
struct Kept {
    tokens: u64,
    messages: usize,
    fresh: SeqNo,
}

impl Kept {
    /// Everything, as it is once a fold made it light. What is shown whole this once is the suffix, and
    /// is not counted.
    fn of(view: &LiveView, fresh: SeqNo) -> Self {
        let messages = view.held.iter().map(|sealed| visible(&sealed.entries)).sum();
        let mut kept = Self { tokens: 0, messages, fresh };
        kept.tokens = view.entries().map(|entry| kept.of_entry(entry)).sum();
        kept
    }

    fn of_entry(&self, entry: &Entry) -> u64 {
        if entry.seq < self.fresh {
            return entry.light_estimate().unwrap_or_else(|| entry.estimate());
        }
        entry.estimate()
    }

    fn leave(&mut self, entries: &[Entry]) {
        self.messages -= visible(entries);
        self.tokens -= entries.iter().map(|entry| self.of_entry(entry)).sum::<u64>();
    }
}

/// The lines of what is told of the blocks that left.
fn told_lines(account: &Account) -> impl Iterator<Item = &str> {
    account.told.iter().flat_map(|told| told.lines())
}

fn told_forms(told: &[String]) -> Vec<Form> {
    told.iter().map(|text| Form::new(Arc::new(Message::user(text)))).collect()
}
