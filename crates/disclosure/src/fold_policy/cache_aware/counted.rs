//! What a provider has counted of the messages, where it is known.

use foldback_core::SeqNo;
use serde::{Deserialize, Serialize};

/// Messages are counted together until they are estimated at so many tokens.
const PER_STEP: u64 = 1_000;

/// No text is so far from its estimate; what is, is no matter of texts.
const FURTHEST: f64 = 4.0;

/// What a provider has billed for the last prompt, and what it would have billed where nothing ever left. Costs are in
/// tokens at the plain price.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Billed {
    /// The tokens of the prompt.
    pub tokens: u64,
    /// Those of them that stand in front of the messages: instructions, and the caller's tools.
    pub front: u64,
    /// What was spent.
    pub cost: f64,
    /// The tokens of everything.
    pub whole_tokens: u64,
    /// What that would have cost.
    pub whole_cost: f64,
}

/// What a provider has counted of the messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// The tokens in front of all that the view knows of.
    pub(crate) front: u64,
    /// The tokens of the prompt that was counted last; 0 for none.
    total: u64,
    /// The first message that was not in it.
    pub(crate) next: SeqNo,
    /// Whether prompts have changed since otherwise than at their end.
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
    /// Whether no prompt was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The tokens of a message that is estimated at so many: of one that was not counted, as those that were.
    pub(crate) fn of(&self, seq: SeqNo, estimate: u64) -> u64 {
        let ratio = match self.steps.partition_point(|step| step.from <= seq).checked_sub(1) {
            Some(n) if seq < self.next => self.steps.get(n).map_or(1.0, |step| step.ratio()),
            _ => self.ratio(),
        };
        (estimate as f64 * ratio).round() as u64
    }

    /// How many tokens an estimated one is.
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

    /// Takes the count of a prompt that was taken for `taken` tokens: of what is new in it, up to `next`, `estimate` was
    /// the estimate. `own` are the tokens that the view knows of in front of the messages.
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
            // What left was written anew in other words, of which no more is known.
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

    /// Messages before this one are not in view.
    pub(crate) fn leave(&mut self, first: SeqNo) {
        let gone = self.steps.partition_point(|step| step.from <= first).saturating_sub(1);
        self.steps.drain(..gone);
    }
}
