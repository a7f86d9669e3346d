//! A baseline that receives the same calls as the memory, and is metered beside it.

use super::Report;
use super::proof::Proof;
use super::run::Stop;
use crate::error::CliError;
use crate::sources::Sourced;
use foldback_baselines::{BASELINES, Baseline};
use foldback_bench::{BenchError, Calls, Counts, Driven, Meter, Usage};
use foldback_core::{Message, Prompt, TodoId, Violation, check_request, thousands};
use foldback_policies::Policy;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A baseline at work on one conversation.
pub(crate) struct Beside {
    pub(crate) baseline: &'static Baseline,
    /// The tokens of its last prompt.
    pub(crate) sent: u64,
    /// Whether that prompt did not continue the one before.
    moved: bool,
    /// The calls at which it had dropped messages since the call before, in order.
    pub(crate) forgot: Vec<Forgot>,
    context: Driven,
    meter: Meter,
}

/// A moment at which a policy had dropped messages for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Forgot {
    /// The call, counted from 1.
    pub(crate) call: u64,
    /// How many of the recorded messages its prompt no longer has, in total.
    pub(crate) gone: u64,
}

/// What a baseline would have been sent in the same calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct BesideUsage {
    #[serde(flatten)]
    pub(crate) usage: Usage,
    /// Recorded messages that its last prompt no longer had, and that nothing brings back.
    pub(crate) forgotten: u64,
    /// How often it dropped messages.
    pub(crate) cuts: u64,
}

/// The baselines for every replay. `foldback bench savings` compares foldback with all there are.
const RIVALS: [&str; 2] = ["full", "summary-top-n"];

/// The baselines that every replay is compared with, in the order of the registry.
pub(crate) fn rivals() -> impl Iterator<Item = &'static Baseline> {
    BASELINES.iter().filter(|baseline| RIVALS.contains(&baseline.name))
}

impl Beside {
    fn new(
        baseline: &'static Baseline,
        todo: &TodoId,
        own_tools: u64,
        cache_life: Option<Duration>,
    ) -> Self {
        Self {
            baseline,
            sent: 0,
            moved: false,
            forgot: Vec::new(),
            context: Driven::new(baseline.start(todo.clone(), Driven::counters())),
            meter: Meter::default().with_own_tools(own_tools).with_cache_life(cache_life),
        }
    }

    /// Those that every replay is compared with, if the agent's own tools take this many tokens of
    /// every prompt, and the provider's cache keeps for this long what is not read.
    pub(crate) fn standing(
        todo: &TodoId,
        own_tools: u64,
        cache_life: Option<Duration>,
    ) -> Vec<Self> {
        rivals().map(|baseline| Self::new(baseline, todo, own_tools, cache_life)).collect()
    }

    pub(crate) fn record(&mut self, message: &Message) -> Result<(), CliError> {
        Ok(self.context.record(message, &mut self.meter).map_err(BenchError::Context)?)
    }

    /// Takes a call after the messages `so_far`, and returns its prompt.
    pub(crate) fn call(&mut self, counts: &mut Counts, so_far: &[Message]) -> Prompt {
        let prompt = self.context.prompt();
        let moves = self.meter.moves();
        self.sent = self.meter.call(counts, &prompt);
        self.moved = self.meter.moves() > moves;
        if self.moved {
            let gone = missing(&prompt, so_far);
            if gone > self.forgotten() {
                self.forgot.push(Forgot { call: self.meter.prompts(), gone });
            }
        }
        prompt
    }

    /// The cost of all its prompts so far, in tokens at the plain price.
    pub(crate) fn cost(&self) -> f64 {
        self.meter.usage().cost_units
    }

    /// What it has been sent so far.
    pub(crate) fn usage(&self) -> BesideUsage {
        BesideUsage {
            // The calls of the conversation; calls that the policy made itself count by their tokens.
            usage: Usage { calls: self.meter.prompts(), ..self.meter.usage().rounded() },
            forgotten: self.forgotten(),
            cuts: self.forgot.len() as u64,
        }
    }

    fn forgotten(&self) -> u64 {
        self.forgot.last().map_or(0, |forgot| forgot.gone)
    }
}

/// Measures a conversation under a baseline, and checks whether its last prompt still has every
/// message. With a call to stop at, returns its prompt instead.
///
/// # Errors
/// When the policy cannot keep a message.
pub(crate) fn replay_baseline(
    sourced: &Sourced,
    baseline: &'static Baseline,
    cache_life: Option<Duration>,
    stop: Stop,
) -> Result<(Report, Option<Prompt>), CliError> {
    let messages = &sourced.conversation.messages;
    let todo = sourced.todo();
    let mut report = Report::new(sourced, &todo, Policy::Baseline(baseline));
    let calls = Calls::of(messages);
    let mut counts = Counts::default();
    let own_tools = own_tools(sourced, &mut counts);
    let mut all = Beside::standing(&todo, own_tools, cache_life);
    let mine = all.iter().position(|beside| beside.baseline.name == baseline.name);
    let mine = mine.unwrap_or_else(|| {
        all.push(Beside::new(baseline, &todo, own_tools, cache_life));
        all.len() - 1
    });
    // Handles a call after the first so_far messages; returns the prompt of the one to stop at.
    let call = |all: &mut [Beside], counts: &mut Counts, report: &mut Report, upto: usize| {
        let mut found = None;
        for (index, beside) in all.iter_mut().enumerate() {
            let prompt = beside.call(counts, messages.get(..upto).unwrap_or_default());
            if index == mine {
                report.window_max_messages = report.window_max_messages.max(prompt.window);
                if beside.moved {
                    report.odd(&prompt);
                }
                found = (stop == Stop::Call(beside.meter.prompts())).then_some(prompt);
            }
        }
        found
    };
    for (at, message) in messages.iter().enumerate() {
        if calls.is_before(at, message)
            && let Some(prompt) = call(&mut all, &mut counts, &mut report, at)
        {
            return Ok((report, Some(prompt)));
        }
        report.tokens += counts.message(message);
        all.iter_mut().try_for_each(|beside| beside.record(message))?;
        if calls.is_behind(message)
            && let Some(prompt) = call(&mut all, &mut counts, &mut report, at + 1)
        {
            return Ok((report, Some(prompt)));
        }
    }
    report.used_beside(&all);
    if let Some(mine) = all.get(mine) {
        report.used(mine.usage().usage);
        report.prefix_moves = mine.meter.moves();
        let last = mine.context.prompt();
        report.proved(held(&last, messages));
        report.odd(&last);
    }
    Ok((report, None))
}

/// The tokens of the tools that the recording declares.
pub(super) fn own_tools(sourced: &Sourced, counts: &mut Counts) -> u64 {
    let tools = sourced.conversation.envelope.get("tools");
    tools.map_or(0, |tools| counts.recorded_tools(&tools))
}

impl Report {
    /// Records what a chat API would refuse in a prompt that is not repaired. Anything else odd in
    /// it (late instructions, for example) comes from the source.
    fn odd(&mut self, prompt: &Prompt) {
        for violation in check_request(prompt.messages.iter().map(Arc::as_ref)) {
            if matches!(
                violation,
                Violation::Orphan(_) | Violation::Unanswered(_) | Violation::DuplicateCall(_)
            ) {
                self.orphans += 1;
                self.problems.push(violation.to_string());
            }
        }
    }
}

/// Compares a prompt with the messages that it should still have.
fn held(prompt: &Prompt, source: &[Message]) -> Proof {
    let gone = missing(prompt, source);
    let mut proof = Proof { messages: source.len() as u64 - gone, ..Proof::default() };
    proof.bytes = prompt.messages.iter().map(|message| message.json().len() as u64).sum();
    if gone > 0 {
        let all = thousands(source.len() as u64);
        let gone = thousands(gone);
        proof
            .problems
            .push(format!("{gone} of {all} messages are gone, and nothing brings them back"));
    }
    proof
}

/// How many of the messages a prompt does not have byte for byte.
fn missing(prompt: &Prompt, source: &[Message]) -> u64 {
    let mut there: HashMap<&str, u64> = HashMap::new();
    for message in &prompt.messages {
        *there.entry(message.json()).or_default() += 1;
    }
    let gone = source.iter().filter(|message| match there.get_mut(message.json()) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    });
    gone.count() as u64
}
