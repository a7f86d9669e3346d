//! The steps of a conversation: what came in, then what the model said or called with all results.

use crate::compressor::Written;
use foldback_core::{Message, Pairing, PairingTracker, Role, SeqNo, ToolCallId};
use std::sync::Weak;

/// A finished step that is not in the memory yet.
#[derive(Debug)]
pub(crate) struct Step {
    /// Its number, counted from 1.
    pub(crate) number: u64,
    /// What came in before the model spoke.
    pub(crate) asked: Vec<SeqNo>,
    /// What the model said or called, followed by the results in the order of their calls.
    pub(crate) wave: Vec<SeqNo>,
    /// Its progress into the memory.
    pub(crate) fold: Fold,
}

/// The progress of a step into the memory.
#[derive(Debug, Default)]
pub(crate) enum Fold {
    /// No job has it.
    #[default]
    Waiting,
    /// A job has it, as long as the token lives.
    Out(Weak<()>),
    /// It may go into the memory.
    Done(Written),
}

impl Fold {
    /// Returns whether the job that has it was abandoned.
    pub(crate) fn is_free(&self) -> bool {
        match self {
            Self::Waiting => true,
            Self::Out(token) => token.strong_count() == 0,
            Self::Done(_) => false,
        }
    }
}

/// A splitter of conversations into steps. A wave of parallel calls is one step.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    tracker: PairingTracker,
    finished: u64,
    /// What came in since the last step.
    pub(crate) asked: Vec<SeqNo>,
    /// A wave whose results have not all arrived.
    wave: Option<Wave>,
}

#[derive(Debug)]
struct Wave {
    said: SeqNo,
    calls: Vec<ToolCallId>,
    /// The results, each with the place of its call.
    results: Vec<(usize, SeqNo)>,
}

impl Steps {
    /// Takes the next message and returns the step that it finishes. A user's message abandons waiting
    /// calls, so one message may finish a step and begin another.
    pub(crate) fn push(&mut self, seq: SeqNo, message: &Message) -> Vec<Step> {
        let mut finished = Vec::new();
        let pairing = self.tracker.observe(message);
        if let (Pairing::Answers, Some(wave)) = (&pairing, &mut self.wave) {
            let id = message.tool_call_id();
            let place = wave.calls.iter().position(|call| Some(call) == id);
            wave.results.push((place.unwrap_or(wave.calls.len()), seq));
            if self.tracker.open().is_empty() {
                finished.extend(self.finish());
            }
            return finished;
        }
        if !self.tracker.open().is_empty() && !matches!(pairing, Pairing::Calls { .. }) {
            // It came between a call and its result, and abandons no call.
            self.asked.push(seq);
            return finished;
        }
        finished.extend(self.finish());
        let calls: Vec<_> = message.tool_calls().iter().map(|call| call.id.clone()).collect();
        let says = *message.role() == Role::Assistant && !message.content().is_blank();
        if calls.is_empty() && !says {
            self.asked.push(seq);
            return finished;
        }
        let is_open = !calls.is_empty();
        self.wave = Some(Wave { said: seq, calls, results: Vec::new() });
        if !is_open {
            finished.extend(self.finish());
        }
        finished
    }

    /// Makes a step of what came in and was not answered, except the latest message. `None` if that is
    /// all there is, or a wave waits for its results.
    pub(crate) fn finish_unanswered(&mut self) -> Option<Step> {
        let latest = self.asked.len().checked_sub(1).filter(|at| *at > 0 && self.wave.is_none())?;
        let latest = self.asked.split_off(latest);
        Some(self.step(latest, Vec::new()))
    }

    /// Returns whether the message belongs to a wave that waits for results.
    pub(crate) fn is_waiting(&self, seq: SeqNo) -> bool {
        self.wave.as_ref().is_some_and(|wave| {
            wave.said == seq || wave.results.iter().any(|(_, result)| *result == seq)
        })
    }

    /// Returns the first message that is in no finished step, if there is one.
    pub(crate) fn first_open(&self) -> Option<SeqNo> {
        let wave = self.wave.as_ref().map(|wave| wave.said);
        self.asked.first().copied().into_iter().chain(wave).min()
    }

    fn finish(&mut self) -> Option<Step> {
        let Wave { said, mut results, .. } = self.wave.take()?;
        results.sort();
        let results = results.into_iter().map(|(_, seq)| seq);
        Some(self.step(Vec::new(), std::iter::once(said).chain(results).collect()))
    }

    /// Returns the next step, of what has come in so far; `asked` is what came in for the step after
    /// it.
    fn step(&mut self, asked: Vec<SeqNo>, wave: Vec<SeqNo>) -> Step {
        self.finished += 1;
        let asked = std::mem::replace(&mut self.asked, asked);
        Step { number: self.finished, asked, wave, fold: Fold::default() }
    }
}
