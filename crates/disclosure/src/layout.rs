//! The central pure function: contents, a policy and a budget in, a request out.

use crate::contents::{Contents, visible};
use crate::entry::Entry;
use crate::fold_policy::{OutOfView, Policy};
use crate::hints::Hints;
use crate::once::{Rules, once_of_all};
use crate::opening::BEGINNING;
use crate::suffix::suffix;
use crate::turns::Turns;
use foldback_core::{Budget, Message, Prompt, SeqNo, TokenCounter, thousands};
use std::borrow::Cow;
use std::sync::Arc;

/// How much of the contents is laid out.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// The first of the closed blocks in view that is shown.
    pub(crate) from: usize,
    /// A message of the blocks before that, shown all the same: the user's question.
    pub(crate) question: Option<SeqNo>,
    /// Whether parts that are stored outside are shown by their notice even if they are fresh.
    pub(crate) light: bool,
    /// The first message that is shown whole this once, after the stable part.
    pub(crate) once_from: Option<SeqNo>,
    /// Whether matching earlier blocks are not named.
    pub(crate) without_hints: bool,
}

/// The contents of a view as its policy shows them.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'v> {
    pub(crate) contents: &'v Contents,
    pub(crate) policy: &'v dyn Policy,
    pub(crate) counter: &'v dyn TokenCounter,
}

impl<'v> Layout<'v> {
    /// Returns the request, with as much removed as the budget requires.
    pub(crate) fn within(self, mut extent: Extent, budget: &Budget) -> Prompt {
        let closed = &self.contents.closed;
        let mut unfit = Vec::new();
        let mut prompt = self.lay_out(extent, &unfit);
        let Some(max) = budget.tokens else { return prompt };
        if prompt.tokens > max && !self.contents.hints.is_empty() {
            extent.without_hints = true;
            prompt = self.lay_out(extent, &[]);
        }
        if prompt.tokens > max && extent.from < closed.len() {
            let last = closed.last().map(|latest| latest.id.to_string()).unwrap_or_default();
            extent.question = self.contents.question_of(extent.from);
            let question = extent.question.map_or("", |_| ", apart from the user's question");
            unfit.push(match closed.len() - extent.from {
                1 => format!("The latest block {last} is shown as its line only{question}."),
                n => format!(
                    "The latest {n} blocks, up to {last}, are shown as their lines only{question}."
                ),
            });
            extent.from = closed.len();
            prompt = self.lay_out(extent, &[]);
        }
        if prompt.tokens > max && self.contents.open_tail.iter().any(Entry::is_large_and_fresh) {
            extent.light = true;
            unfit.push("Large new parts are shown as stored references only.".to_owned());
            prompt = self.lay_out(extent, &[]);
        }
        if prompt.tokens > max {
            // The excess is not stated: stating it would add to it.
            unfit.push(format!(
                "The view exceeds the {} allowed tokens; instructions, tools, pinned messages, open \
                 messages and what is said below them cannot be made smaller.",
                thousands(max as u64),
            ));
            prompt = self.lay_out(extent, &unfit);
        }
        prompt.unfit = unfit;
        prompt
    }

    fn lay_out(self, extent: Extent, unfit: &[String]) -> Prompt {
        let Self { contents, policy, counter } = self;
        let mut turns = Turns::new(contents.marks, counter);
        let mut cache_marks = CacheMarks::default();
        for (_, form) in &contents.system_prompt {
            turns.push_form(form);
        }
        cache_marks.set_behind(turns.messages.len());
        let opening = policy.opening();
        for form in &opening {
            turns.push_form(form);
        }
        let begins = self.entries(extent).next().is_some_and(Entry::is_beginning);
        if opening.is_empty() && !begins {
            turns.push_new(Message::user(BEGINNING));
        }
        cache_marks.set_behind(turns.messages.len());
        let mut stable = None;
        let mut shortened = Vec::new();
        for entry in &*self.shown_once(extent) {
            if extent.once_from == Some(entry.seq) {
                stable = Some(turns.messages.len());
            }
            if let Some(form) = entry.form(extent.light) {
                turns.push(entry.seq, entry.kind, &form);
            }
            shortened.extend(entry.shortened());
        }
        let stable = stable.unwrap_or(turns.messages.len());
        cache_marks.set_behind(stable);
        turns.abandon();
        let nothing = Hints::default();
        let hints = if extent.without_hints { &nothing } else { &contents.hints };
        let OutOfView { mut sections, mut blocks } = policy.out_of_view(contents, extent);
        blocks.retain(|block| !hints.blocks().contains(block));
        sections.extend(hints.section().map(str::to_owned));
        if let Some(text) = suffix(contents, sections, unfit) {
            turns.push_new(Message::user(&text));
        }
        let tools = Some(policy.tools()).filter(|_| policy.declares_tools(extent));
        let latest = contents.closed.get(extent.from..).and_then(|shown| shown.last());
        Prompt {
            volatile: turns.messages.len() - stable,
            tokens: turns.tokens + tools.map_or(0, |tools| tools.tokens(counter)),
            messages: turns.messages,
            tools: tools.map_or_else(Vec::new, |tools| tools.definitions().to_vec()),
            block: latest.map(|latest| latest.id.clone()),
            window: contents.window(extent.from) + usize::from(extent.question.is_some()),
            loose: visible(&contents.open_tail),
            pinned: contents.pins.len(),
            cache_marks: cache_marks.0,
            conversation: Some(self.conversation(extent)),
            shortened,
            hints: [hints.blocks().to_vec(), blocks].concat(),
            unfit: Vec::new(),
        }
    }

    /// Returns the messages that are shown in their place, each thing once: if something is hidden, among those that
    /// are shown.
    fn shown_once(self, extent: Extent) -> Vec<Cow<'v, Entry>> {
        let mut shown: Vec<Cow<'v, Entry>> = self.entries(extent).map(Cow::Borrowed).collect();
        if extent.from > 0 || extent.light {
            let rules = Rules { light: extent.light, ..self.contents.rules() };
            let forms = once_of_all(shown.iter().map(AsRef::as_ref), rules);
            shown.iter_mut().zip(forms).for_each(|(entry, once)| entry.to_mut().show_once(once));
        }
        shown
    }

    /// Returns the messages that are shown in their place.
    fn entries(self, extent: Extent) -> impl Iterator<Item = &'v Entry> {
        let closed = &self.contents.closed;
        let (hidden, shown) = closed.split_at(extent.from.min(closed.len()));
        let hidden = hidden.iter().flat_map(|block| &block.entries);
        let question = hidden.filter(move |entry| Some(entry.seq) == extent.question);
        let shown = shown.iter().flat_map(|block| &block.entries);
        question.chain(shown).chain(&self.contents.open_tail)
    }

    /// Returns what was said in these messages and in those before them in every prompt.
    fn conversation(self, extent: Extent) -> Vec<Arc<Message>> {
        let Contents { system_prompt, pins, .. } = self.contents;
        let is_question = |seq: SeqNo| extent.question == Some(seq);
        let (question, shown): (Vec<_>, Vec<_>) =
            self.entries(extent).partition(|entry| is_question(entry.seq));
        let first = shown.first().map_or(SeqNo(u64::MAX), |entry| entry.seq);
        let said = |entry: &&'v Entry| {
            let pin = || pins.get(&entry.seq).map(|pinned| &pinned.message);
            entry.said(extent.light).or_else(pin)
        };
        let pinned = pins.range(..first).filter(|(seq, _)| !is_question(**seq));
        let pinned = pinned.map(|(seq, pinned)| (*seq, &pinned.message));
        let question = question.iter().filter_map(|entry| Some((entry.seq, said(entry)?)));
        let mut before: Vec<(SeqNo, &Arc<Message>)> = pinned.chain(question).collect();
        before.sort_by_key(|(seq, _)| *seq);
        let system_prompt = system_prompt.iter().map(|(_, form)| form.message());
        let before = before.into_iter().map(|(_, message)| message);
        let shown = shown.iter().filter_map(said);
        system_prompt.chain(before).chain(shown).cloned().collect()
    }
}

/// The messages after which a cache mark is worth setting, ascending.
#[derive(Default)]
struct CacheMarks(Vec<usize>);

impl CacheMarks {
    /// Sets a mark after this many messages, if there is none yet.
    fn set_behind(&mut self, messages: usize) {
        if let Some(last) = messages.checked_sub(1)
            && self.0.last().is_none_or(|mark| *mark < last)
        {
            self.0.push(last);
        }
    }
}
