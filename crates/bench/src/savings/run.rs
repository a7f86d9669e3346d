//! One conversation under one policy.

use super::budget::{beginning, fits};
use super::facts::{Fact, Facts, Need};
use super::figures::Figures;
use super::question::question;
use super::reach::Reach;
use super::values::{Held, Values};
use super::{Config, Fate, Miss};
use crate::means::{Means, call};
use crate::{BenchError, Calls, Case, Counts, Driven, Meter, measured_context};
use foldback_core::{
    BlockId, Budget, Message, Role, SeqNo, Shortened, Shortening, Timestamp, TodoId, ToolCall,
};
use foldback_policies::Policy;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A conversation under measurement, with the data that its policies share.
pub(crate) struct Subject<'a> {
    pub(crate) case: &'a Case,
    pub(crate) facts: Facts,
    pub(crate) counts: Counts,
    /// The tokens of the agent's own tools: those that the recording declares, and those that are
    /// assumed.
    pub(crate) own_tools: u64,
    pub(crate) config: &'a Config,
}

/// The results.
pub(crate) struct Outcome {
    pub(crate) figures: Figures,
    /// The tokens of each call's prompt.
    pub(crate) curve: Vec<u64>,
    /// The facts that were neither visible nor recalled.
    pub(crate) misses: Vec<Miss>,
}

impl<'a> Subject<'a> {
    /// Returns a conversation that is not yet under any policy.
    ///
    /// # Errors
    /// When it has too many values to search for at once.
    pub(crate) fn new(case: &'a Case, config: &'a Config) -> Result<Self, BenchError> {
        let mut counts = Counts::default();
        let tools = case.conversation.envelope.get("tools");
        let recorded = tools.map_or(0, |tools| counts.recorded_tools(&tools));
        let own_tools = recorded + config.agent_tools;
        let facts = Facts::of(&case.conversation.messages)?;
        Ok(Self { case, facts, counts, own_tools, config })
    }

    /// Returns the tokens of the whole conversation, and of the model's part of it.
    pub(crate) fn tokens(&mut self) -> (u64, u64) {
        let (mut all, mut written) = (0, 0);
        for message in &self.case.conversation.messages {
            let tokens = self.counts.message(message);
            all += tokens;
            written += if *message.role() == Role::Assistant { tokens } else { 0 };
        }
        (all, written)
    }

    /// Feeds the conversation through a policy, message by message.
    ///
    /// # Errors
    /// When the policy cannot keep a message or answer a call.
    pub(crate) fn run(&mut self, policy: Policy) -> Result<Outcome, BenchError> {
        let messages = &self.case.conversation.messages;
        let todo = TodoId::from_foreign(&self.case.id);
        let calls = Calls::of(messages);
        let Config { prices, cache_life, gap, summaries, options, budget, .. } = self.config;
        let own_tools = usize::try_from(self.own_tools).unwrap_or(usize::MAX);
        let left = Budget { tokens: budget.tokens.map(|most| most.saturating_sub(own_tools)) };
        let (terms, clock) = ((*prices, *cache_life), Arc::<AtomicI64>::default());
        let read = Arc::clone(&clock);
        let now = move || Timestamp(read.load(Ordering::Relaxed));
        let context = measured_context(policy, todo, terms, summaries, options, now)?;
        let mut run = Run {
            policy,
            context: Driven::new(context).within(left).with_agent_tools(self.own_tools),
            meter: Meter::new(*prices).with_own_tools(self.own_tools).with_cache_life(*cache_life),
            reach: Reach::default(),
            figures: Figures::default(),
            curve: Vec::new(),
            misses: Vec::new(),
            shortened: BTreeSet::new(),
        };
        let is_dated = messages.iter().any(|message| message.timestamp().is_some());
        let gap = gap.filter(|_| !is_dated).unwrap_or_default();
        for (at, message) in messages.iter().enumerate() {
            if calls.is_before(at, message) {
                run.call(self, at)?;
            }
            if !is_dated {
                let passed = gap.as_millis() * u128::from(run.meter.prompts());
                let now = i64::try_from(passed).unwrap_or(i64::MAX);
                clock.store(now, Ordering::Relaxed);
                run.meter.wait_until(Timestamp(now));
            }
            run.context.record(message, &mut run.meter)?;
            if calls.is_behind(message) {
                run.call(self, at + 1)?;
            }
        }
        Ok(run.finish(self.tokens().1))
    }
}

/// What each block named at the end of a prompt contains, and whether any of that was missing.
type Hints = Vec<(Held, bool)>;

struct Run {
    policy: Policy,
    context: Driven,
    meter: Meter,
    reach: Reach,
    figures: Figures,
    curve: Vec<u64>,
    misses: Vec<Miss>,
    /// The messages that were shown in fewer tokens.
    shortened: BTreeSet<(Shortening, SeqNo)>,
}

impl Run {
    /// Asks the model after the first `at` messages, and searches for what the message there needs.
    fn call(&mut self, subject: &mut Subject<'_>, at: usize) -> Result<(), BenchError> {
        let prompt = self.context.prompt();
        self.curve.push(self.meter.call(&mut subject.counts, &prompt));
        self.count_shortened(&prompt.shortened, &mut subject.counts);
        self.figures.pointers.blocks += prompt.hints.len() as u64;
        if subject.facts.needs(at).is_empty() {
            return Ok(());
        }
        let means = Means::of(&prompt.tools);
        let Subject { case, facts: Facts { values, needs }, counts, .. } = subject;
        let so_far = case.conversation.messages.get(..at).unwrap_or_default();
        let mut hints = Hints::default();
        for need in needs.get(&at).map(Vec::as_slice).unwrap_or_default() {
            let mut missing = need.clone();
            missing.facts.retain(|fact| {
                let shows = |message| values.in_shared(message).has(fact.value);
                let is_there = prompt.messages.iter().any(shows);
                if is_there {
                    self.figures.count(*fact, Fate::Visible, true);
                }
                !is_there
            });
            if missing.facts.is_empty() {
                continue;
            }
            self.count_pointers(&prompt.hints, &mut hints, &missing, values)?;
            let asked = question(so_far, need, values);
            self.recall(means, &asked, &mut missing, values, counts)?;
            if missing.facts.is_empty() {
                continue;
            }
            self.reach.go_on(means, &mut self.context, &prompt, values)?;
            for fact in missing.facts {
                let value = values.get(fact.value).map(|value| value.text.clone());
                let fate = match self.reach.has(fact.value) {
                    true => Fate::Reachable,
                    false => Fate::Lost,
                };
                let in_a_look = fate == Fate::Reachable && value.as_deref().is_some_and(fits);
                self.figures.count(fact, fate, in_a_look);
                self.misses.push(Miss {
                    id: case.id.clone(),
                    policy: self.policy.name(),
                    at: at as u64,
                    tool: need.tool.clone(),
                    argument: need.argument.clone(),
                    value: value.unwrap_or_default(),
                    in_payload: fact.in_payload,
                    is_own: fact.is_own,
                    in_a_look,
                    fate,
                    asked: asked.clone(),
                });
            }
        }
        Ok(())
    }

    fn count_shortened(&mut self, shortened: &[Shortened], counts: &mut Counts) {
        for Shortened { seq, how, whole, shown } in shortened {
            let sum = match how {
                Shortening::CompactJson => &mut self.figures.compact_json,
                Shortening::Repetition => &mut self.figures.repetitions,
            };
            sum.results += u64::from(self.shortened.insert((*how, *seq)));
            sum.tokens += counts.shared(whole).saturating_sub(counts.shared(shown));
        }
    }

    /// Counts the missing values in blocks that the prompt named, and these blocks. `hints` is the
    /// content of the blocks, once it was read.
    fn count_pointers(
        &mut self,
        named: &[BlockId],
        hints: &mut Hints,
        missing: &Need,
        values: &Values,
    ) -> Result<(), BenchError> {
        if hints.is_empty() {
            for block in named {
                let look = call("load", serde_json::json!({ "ref": block.to_string() }));
                let text = self.context.call(&look)?.text;
                hints.push((values.in_text(&text), false));
            }
        }
        let pointers = &mut self.figures.pointers;
        for (held, is_needed) in &mut *hints {
            if !*is_needed && missing.facts.iter().any(|fact| held.has(fact.value)) {
                *is_needed = true;
                pointers.needed += 1;
            }
        }
        let is_held = |value: u32| hints.iter().any(|(held, _)| held.has(value));
        pointers.facts += missing.facts.iter().filter(|fact| is_held(fact.value)).count() as u64;
        Ok(())
    }

    /// Searches once, and looks once at a place that the search named. What is found is removed from
    /// `missing`.
    fn recall(
        &mut self,
        means: Means,
        asked: &str,
        missing: &mut Need,
        values: &Values,
        counts: &mut Counts,
    ) -> Result<(), BenchError> {
        let Some(search) = means.search(asked) else { return Ok(()) };
        self.figures.recalls += 1;
        let mut added = 0;
        let answer = self.ask(&search, missing, values, counts, &mut added)?;
        if missing.facts.is_empty() {
            return Ok(());
        }
        if let Some(look) = means.look(&answer) {
            self.figures.looks += 1;
            let before = self.figures.facts.recalled;
            self.ask(&look, missing, values, counts, &mut added)?;
            self.figures.recalled_by_look += self.figures.facts.recalled - before;
        }
        Ok(())
    }

    /// Calls a tool and asks the model once more, with the call and its answer.
    fn ask(
        &mut self,
        call: &ToolCall,
        missing: &mut Need,
        values: &Values,
        counts: &mut Counts,
        added: &mut u64,
    ) -> Result<String, BenchError> {
        let answer = self.context.call(call)?;
        let (read, tokens) = beginning(&answer.text);
        let asks = counts.message(&Message::calls("", vec![call.clone()]));
        let frame = counts.message(&Message::tool_result(&call.id, ""));
        *added += asks + frame + tokens;
        let usage = self.meter.aside(*added);
        self.context.note_recall(*added);
        if missing.facts.iter().all(|fact| fact.is_own) {
            self.figures.recalls_of_own.add(&usage);
        }
        if !answer.is_error {
            let held = values.in_text(unquoted(read));
            missing.facts.retain(|fact| {
                if held.has(fact.value) {
                    self.figures.count(*fact, Fate::Recalled, true);
                }
                !held.has(fact.value)
            });
        }
        Ok(read.to_owned())
    }

    fn finish(self, output_tokens: u64) -> Outcome {
        let mut figures = self.figures;
        figures.recalls_of_own = self.meter.billed(figures.recalls_of_own);
        figures.without_recalls = self.meter.usage();
        figures.usage = self.meter.usage();
        figures.usage.add(&self.meter.asides());
        figures.prefix_moves = self.meter.moves();
        figures.side_calls = self.context.side_calls();
        figures.side_output_tokens = self.context.side_output_tokens();
        figures.output_tokens = output_tokens;
        Outcome { figures: figures.settled(), curve: self.curve, misses: self.misses }
    }
}

/// Returns an answer without the line that quotes the search.
fn unquoted(answer: &str) -> &str {
    match answer.split_once('\n') {
        Some((head, rest)) if head.starts_with("[search_block:") => rest,
        _ => answer,
    }
}

impl Figures {
    fn count(&mut self, fact: Fact, fate: Fate, in_a_look: bool) {
        self.facts.count(fate, in_a_look);
        if fact.in_payload {
            self.payload.count(fate, in_a_look);
        }
        if fact.is_own {
            self.own.count(fate, in_a_look);
        }
    }
}
