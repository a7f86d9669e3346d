//! A provider's counts of the messages, if known.

use foldback_core::SeqNo;
use serde::{Deserialize, Serialize};

/// Messages are counted together until their estimate reaches this many tokens.
const PER_STEP: u64 = 1_000;

/// No text deviates this much from its estimate; a larger deviation is not due to texts.
const FURTHEST: f64 = 4.0;

/// A provider's bill for the last prompt, and the one it would have sent if nothing had ever left. Costs are in
/// tokens at the plain price.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Billed {
    /// The tokens of the prompt.
    pub tokens: u64,
    /// Those of them before the messages: instructions, and the caller's tools.
    pub front: u64,
    /// The amount spent.
    pub cost: f64,
    /// The tokens of everything.
    pub whole_tokens: u64,
    /// The cost that this would have had.
    pub whole_cost: f64,
}

/// A provider's counts of the messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// The tokens before everything that the view knows of.
    pub(crate) front: u64,
    /// The tokens of the prompt that was counted last; 0 for none.
    total: u64,
    /// The first message that was not in it.
    pub(crate) next: SeqNo,
    /// Whether prompts have since changed elsewhere than at their end.
    pub(crate) has_moved: bool,
    /// Messages in view, the newest last.
    steps: Vec<Step>,
}

/// Messages that were counted together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Step {
    from: SeqNo,
    estimate: u64,
    tokens: u64,
}

impl Step {
    fn ratio(self) -> f64 {
        (self.tokens as f64 / self.estimate.max(1) as f64).clamp(1.0 / FURTHEST, FURTHEST)
    }
}

impl Counted {
    /// Returns whether no prompt was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the tokens of a message with this estimate: one that was not counted is assumed to be like those that
    /// were.
    pub(crate) fn of(&self, seq: SeqNo, estimate: u64) -> u64 {
        let ratio = match self.steps.partition_point(|step| step.from <= seq).checked_sub(1) {
            Some(n) if seq < self.next => self.steps.get(n).map_or(1.0, |step| step.ratio()),
            _ => self.ratio(),
        };
        (estimate as f64 * ratio).round() as u64
    }

    /// Returns how many tokens one estimated token amounts to.
    fn ratio(&self) -> f64 {
        let sum = |sum: Step, step: &Step| Step {
            from: sum.from,
            estimate: sum.estimate + step.estimate,
            tokens: sum.tokens + step.tokens,
        };
        let none = Step { from: SeqNo(0), estimate: 0, tokens: 0 };
        let all = self.steps.iter().fold(none, sum);
        if all.estimate == 0 { 1.0 } else { all.ratio() }
    }

    /// Takes the count of a prompt that was estimated at `taken` tokens; `estimate` was the estimate of what is new in
    /// it, up to `next`. `own` are the tokens before the messages that the view knows of.
    pub(crate) fn count(
        &mut self,
        billed: &Billed,
        taken: u64,
        own: u64,
        estimate: u64,
        next: SeqNo,
    ) {
        let from = self.next;
        let grown = billed.tokens.checked_sub(self.total).filter(|_| !self.has_moved);
        match grown {
            _ if self.is_empty() => {
                self.front = billed.front.saturating_sub(own);
                let tokens = billed.tokens.saturating_sub(billed.front.max(own));
                self.push(Step { from, estimate, tokens });
            }
            Some(tokens) => self.push(Step { from, estimate, tokens }),
            // What left was replaced by other text, about which nothing more is known.
            None => self.front = (self.front + billed.tokens).saturating_sub(taken),
        }
        (self.total, self.next, self.has_moved) = (billed.tokens, next, false);
    }

    fn push(&mut self, step: Step) {
        match self.steps.last_mut().filter(|last| last.estimate < PER_STEP) {
            Some(last) => {
                last.estimate += step.estimate;
                last.tokens += step.tokens;
            }
            None if step.estimate > 0 => self.steps.push(step),
            None => {}
        }
    }

    /// Drops the messages before this one, which are not in view.
    pub(crate) fn leave(&mut self, first: SeqNo) {
        let gone = self.steps.partition_point(|step| step.from <= first).saturating_sub(1);
        self.steps.drain(..gone);
    }
}
