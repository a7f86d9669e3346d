//! `cache-aware`: several blocks leave at once when that is cheaper than reading them repeatedly from
//! the provider's cache.
//!
//! The next prompt is a pure function of contents and account ([`plan`]). The plan is carried out and
//! charged once the model has answered, so a prompt may be requested any number of times.

mod account;
mod calls;
mod counted;
mod fold;
mod fold_choice;
mod pace;
mod plan;
mod settings;

pub(crate) use account::Account;
pub use counted::Billed;
pub use settings::CacheAware;

use super::{OutOfView, Policy};
use crate::Names;
use crate::arrangement::{Arrangement, Piece};
use crate::contents::{ClosedBlock, Contents};
use crate::declared_tools::DeclaredTools;
use crate::entry::{Entry, Form, Shown};
use crate::failures::OpenCall;
use crate::layout::{Extent, Layout};
use crate::ledger::{load_rule, load_too_many};
use crate::opening::{Pinned, pinned_parts, user_turn};
use crate::quote::escaped;
use crate::repair::sendable;
use crate::suffix::section;
use crate::tools::SHORTEST_TOKENS;
use account::Declared;
use calls::only_recalls;
use foldback_core::{Budget, Estimate, Message, Prompt, Role, SeqNo, TokenCounter, message_tokens};
use std::sync::Arc;

/// The greatest number of estimated tokens for calls that are not in view: they are listed in the
/// ledger, at the price of cached tokens.
const CALLED_TOKENS: u64 = 400;

/// The policy `cache-aware` of one view. A pinned message stays in its place until its block leaves.
#[derive(Clone)]
pub(crate) struct CacheAwarePolicy {
    settings: CacheAware,
    /// What was spent, and what was decided based on it.
    account: Account,
    /// The pinned messages that left their place, as one user turn; there may be none.
    pinned: Option<Form>,
    /// The messages of the account's ledger.
    ledger: Vec<Form>,
    tools: DeclaredTools,
    /// Whether the stable part has to stay as it is for now.
    is_held: bool,
}

impl CacheAwarePolicy {
    pub(super) fn new(settings: CacheAware) -> Self {
        Self {
            settings,
            account: Account::new(),
            pinned: None,
            ledger: Vec::new(),
            tools: DeclaredTools::shortest(),
            is_held: false,
        }
    }

    /// Continues with contents that this policy left.
    pub(super) fn resume(
        settings: CacheAware,
        mut account: Account,
        contents: &mut Contents,
    ) -> Self {
        let whole = std::mem::take(&mut account.whole);
        let light = |entry: &&mut Entry| whole.binary_search(&entry.seq).is_err();
        contents.entries_mut().filter(light).for_each(|entry| entry.settle(true));
        contents.show_once();
        let mut policy = Self { account, ..Self::new(settings) };
        policy.declare(policy.account.declared);
        policy.write_ledger();
        policy.write_pinned(contents);
        policy
    }

    /// Continues with contents that `strict` left: everything except the latest block is out of view,
    /// and all tools were declared. What is in view now is treated as all there was.
    pub(super) fn after_strict(settings: CacheAware, contents: &mut Contents) -> Self {
        contents.settle();
        let closed = contents.latest().map_or(0, |latest| latest.id.n());
        let folded = closed.saturating_sub(1);
        // The latest block is in view, and is listed when it leaves.
        if closed > 0 {
            contents.ledger.take_back();
        }
        contents.show_once();
        let mut policy = Self::new(settings);
        policy.declare(Declared::All);
        policy.account.folded = folded;
        let is_answer = |entry: &Entry| *entry.message().role() == Role::Assistant;
        policy.account.is_dialogue = contents.entries().any(is_answer);
        if folded > 0 {
            let load = contents.config.names.load().to_owned();
            let mut lines = vec![load_rule(&load)];
            match contents.ledger.is_complete() {
                true => lines.extend(contents.ledger.lines().iter().map(|line| escaped(line))),
                false => lines.push(load_too_many(&load)),
            }
            lines.extend(policy.called_by(contents));
            policy.account.ledger.push(lines.join("\n"));
        }
        policy.write_ledger();
        policy.write_pinned(contents);
        policy.account.history = policy.front_tokens(contents, Declared::All)
            + policy.ledger_tokens()
            + policy.tokens(contents);
        policy
    }

    /// Continues with other settings, such as another model's prices.
    pub(crate) fn set(&mut self, settings: CacheAware) {
        self.settings = settings;
    }

    /// Rewrites the rules of the ledger with the current name of `load`.
    pub(crate) fn rename(&mut self, contents: &Contents, before: &Names) {
        let (old, new) = (before.load(), contents.config.names.load());
        if old == new || self.account.ledger.is_empty() {
            return;
        }
        for text in &mut self.account.ledger {
            let ruled = text.replace(&load_rule(old), &load_rule(new));
            *text = ruled.replace(&load_too_many(old), &load_too_many(new));
        }
        self.write_ledger();
        self.account.counted.has_moved = true;
        self.account.cached =
            self.account.cached.min(self.front_tokens(contents, self.account.declared));
    }

    /// Sets how many tokens the agent sends before every prompt.
    pub(crate) fn set_front_tokens(&mut self, tokens: u64) {
        self.account.agent_front = tokens;
    }

    /// Charges a further call from the last prompt that recalled something.
    pub(crate) fn note_recall(&mut self, tokens: u64) {
        self.account.note_recall(tokens, &self.settings);
    }

    /// Notes that the provider's cache is gone.
    pub(crate) fn cool(&mut self) {
        self.account.cool();
    }

    /// Takes the bill of the last prompt.
    pub(crate) fn bill(&mut self, billed: &Billed) {
        self.account.bill(billed);
    }

    /// Sets whether the stable part has to stay as it is, until the next call.
    pub(crate) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Returns what the next prompt shows, message by message.
    pub(crate) fn arrangement(&self, contents: &Contents) -> Arrangement {
        let (policy, contents) = self.after(contents, self.plan(contents));
        let first = contents.first_shown().unwrap_or(SeqNo(u64::MAX));
        let pins = contents.pins.range(..first).map(|(seq, _)| Piece::Recorded(*seq));
        let written = policy.ledger.iter().map(|form| Piece::Written(Arc::clone(form.message())));
        let entries = contents.entries().filter_map(|entry| match entry.form(false)? {
            _ if entry.is_exact() => Some(Piece::Recorded(entry.seq)),
            form => Some(Piece::Instead(entry.seq, Arc::clone(form.message()))),
        });
        Arrangement {
            pieces: pins.chain(written).chain(entries).collect(),
            declares: policy.account.declared != Declared::Nothing
                && !policy.settings.tools_elsewhere,
        }
    }

    /// Declares these tools from now on, whatever is cached.
    fn declare(&mut self, declared: Declared) {
        self.account.declared = declared;
        self.tools = match declared {
            Declared::Nothing | Declared::Load => DeclaredTools::shortest(),
            Declared::All => DeclaredTools::all(),
        };
    }

    fn write_ledger(&mut self) {
        let form = |text: &String| Form::new(Arc::new(Message::user(text)));
        self.ledger = self.account.ledger.iter().map(form).collect();
    }

    /// Writes the pinned messages that have left their place: a single one of the user's is the same
    /// message that was there.
    fn write_pinned(&mut self, contents: &Contents) {
        let first = contents.first_shown().unwrap_or(SeqNo(u64::MAX));
        let gone: Vec<&Pinned> = contents.pins.range(..first).map(|(_, pinned)| pinned).collect();
        self.pinned = match gone.as_slice() {
            [] => None,
            [Pinned { message, .. }] if *message.role() == Role::User => {
                sendable(message).map(Form::new)
            }
            gone => {
                let marks = contents.marks;
                let parts = gone.iter().flat_map(|pinned| pinned_parts(marks, pinned));
                let parts: Vec<_> = parts.collect();
                (!parts.is_empty()).then(|| user_turn(parts))
            }
        };
    }

    /// Returns the tokens before the ledger.
    fn front_tokens(&self, contents: &Contents, declared: Declared) -> u64 {
        let tools = match declared {
            _ if self.settings.tools_elsewhere => 0,
            Declared::Nothing => 0,
            Declared::Load => SHORTEST_TOKENS,
            Declared::All => self.tools.estimate(),
        };
        let system_prompt: u64 =
            contents.system_prompt.iter().map(|(_, form)| form.estimate()).sum();
        tools
            + self.account.front()
            + system_prompt
            + self.pinned.as_ref().map_or(0, Form::estimate)
    }

    /// Returns the tokens of a message as it is shown.
    fn tokens_of(&self, entry: &Entry) -> u64 {
        self.account.counted.of(entry.seq, entry.estimate())
    }

    /// Returns the same once it is no longer fresh, if they differ.
    fn light_tokens_of(&self, entry: &Entry) -> Option<u64> {
        Some(self.account.counted.of(entry.seq, entry.light_estimate()?))
    }

    /// Returns the tokens of the closed blocks and the open tail as they are shown.
    fn tokens(&self, contents: &Contents) -> u64 {
        contents.entries().map(|entry| self.tokens_of(entry)).sum()
    }

    fn ledger_tokens(&self) -> u64 {
        self.ledger.iter().map(Form::estimate).sum()
    }

    /// Returns the first message that the model has not seen: it saw what was there when it last
    /// answered. If it never answers, it has seen all but the last.
    fn fresh_start(&self, contents: &Contents) -> SeqNo {
        let mut newest = contents.entries().rev();
        let answer = newest.find(|entry| *entry.message().role() == Role::Assistant);
        let last = contents.entries().next_back().filter(|_| !self.account.is_dialogue);
        answer.or(last).map_or(SeqNo(0), |entry| entry.seq)
    }
}

impl Policy for CacheAwarePolicy {
    fn before_append(&mut self, contents: &mut Contents, shown: &Shown) {
        let message = shown.message.as_ref();
        let is_recall = !self.settings.tools_elsewhere && only_recalls(message);
        if self.answers_prompt(contents, message) {
            self.charge(contents, is_recall);
        }
        self.keep_pace(shown);
        if !is_recall {
            let estimate = message_tokens(&Estimate, message) as u64;
            self.account.history += self.account.counted.of(SeqNo(u64::MAX), estimate);
        }
        // An empty answer is not shown, and does not show what was seen.
        let is_shown = !message.content().is_blank() || !message.tool_calls().is_empty();
        self.account.is_dialogue |= *message.role() == Role::Assistant && is_shown;
        // A tool that appears in the history stays declared.
        let names_more = message
            .tool_calls()
            .iter()
            .any(|call| matches!(call.name.as_str(), "search_block" | "list_blocks"));
        if names_more && self.account.declared < Declared::All {
            contents.moves += u64::from(self.account.cached > 0);
            self.account.counted.has_moved = true;
            self.account.cached = 0;
            self.declare(Declared::All);
        }
    }

    fn pin_task(&mut self, contents: &mut Contents, task: Pinned) {
        contents.pins.insert(task.whose.seq(), task);
    }

    fn pin(&mut self, contents: &mut Contents, pinned: Pinned) {
        let seq = pinned.whose.seq();
        contents.pins.insert(seq, pinned);
        if contents.first_shown().is_none_or(|first| seq < first) {
            contents.moves += u64::from(contents.has_begun());
            let before = self.pinned.as_ref().map_or(0, Form::estimate);
            let front = self.front_tokens(contents, self.account.declared) - before;
            self.write_pinned(contents);
            self.account.counted.has_moved = true;
            self.account.cached = self.account.cached.min(front);
        }
    }

    /// Keeping everything would keep it in the form in which it is shown: what that saves must not pay for a fold.
    fn place(&mut self, contents: &mut Contents, shown: &Shown) -> Option<OpenCall> {
        let answered = contents.place(shown);
        if shown.recall.is_some() && !self.settings.tools_elsewhere {
            // If everything is kept, nothing is recalled.
            let estimate = message_tokens(&Estimate, &shown.message) as u64;
            let history = &mut self.account.history;
            *history = history.saturating_sub(self.account.counted.of(SeqNo(u64::MAX), estimate));
            return answered;
        }
        let saved = contents.open_tail.last().filter(|last| last.seq == shown.seq);
        let saved = saved.map_or(0, Entry::once_saved);
        let history = &mut self.account.history;
        *history = history.saturating_sub(self.account.counted.of(SeqNo(u64::MAX), saved));
        answered
    }

    fn fold(&mut self, contents: &mut Contents, block: ClosedBlock) {
        contents.closed.push(block);
    }

    fn is_about_to_move(&self, contents: &Contents) -> bool {
        self.plan(contents).moves
    }

    fn prompt(&self, contents: &Contents, budget: &Budget, counter: &dyn TokenCounter) -> Prompt {
        let (policy, contents) = self.after(contents, self.plan(contents));
        let once_from = policy.quote(&contents, policy.account.declared).once_from;
        let extent =
            Extent { from: 0, question: None, light: false, once_from, without_hints: false };
        Layout { contents: &contents, policy: &policy, counter }.within(extent, budget)
    }

    fn opening(&self) -> Vec<&Form> {
        self.pinned.iter().chain(&self.ledger).collect()
    }

    fn tools(&self) -> &DeclaredTools {
        &self.tools
    }

    /// As planned, and whenever something is not whole.
    fn declares_tools(&self, extent: Extent) -> bool {
        let is_needed =
            self.account.declared != Declared::Nothing || extent.from > 0 || extent.light;
        is_needed && !self.settings.tools_elsewhere
    }

    /// The ledger says the rest.
    fn out_of_view(&self, contents: &Contents, extent: Extent) -> OutOfView {
        let hidden = contents.closed.iter().take(extent.from);
        let lines = hidden.map(|block| format!("- {}", escaped(&block.line)));
        let sections = section("Closed blocks, not shown:", lines).into_iter().collect();
        OutOfView { sections, blocks: Vec::new() }
    }

    fn account(&self, contents: &Contents) -> Option<Account> {
        let mut account = self.account.clone();
        let whole = contents.entries().filter(|entry| entry.is_unsettled());
        account.whole = whole.map(|entry| entry.seq).collect();
        Some(account)
    }
}
