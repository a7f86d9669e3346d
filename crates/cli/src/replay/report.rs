//! The measurements of a replay, with the keys that scripts read.

use super::proof::Proof;
use super::{Beside, BesideUsage};
use crate::output::text;
use crate::sources::Sourced;
use foldback_bench::Usage;
use foldback_core::{TodoId, thousands};
use foldback_policies::Policy;
use serde::Serialize;
use std::collections::BTreeMap;

/// The baseline for all comparisons.
const FULL: &str = "full";

/// The measurements of one conversation. The first twelve keys are a contract.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) id: String,
    pub(crate) messages: u64,
    pub(crate) blocks: u64,
    pub(crate) policy: &'static str,
    pub(crate) calls: u64,
    pub(crate) input_tokens: u64,
    pub(crate) peak_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) cost_units: f64,
    pub(crate) lossless: bool,
    pub(crate) orphans: u64,
    pub(crate) window_max_messages: usize,
    /// The bound on the window, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window_bound: Option<usize>,
    /// The todo that it was recorded in.
    pub(crate) todo_id: String,
    /// Messages that another replay into the same store had recorded.
    pub(crate) resumed_at: u64,
    /// The tokens of the whole conversation.
    pub(crate) tokens: u64,
    /// What the same calls would have been sent by keeping everything.
    pub(crate) full: Usage,
    /// What the same calls would have been sent under each baseline, by its name.
    pub(crate) baselines: BTreeMap<&'static str, BesideUsage>,
    /// Blocks by why they closed.
    pub(crate) close_reasons: BTreeMap<&'static str, u64>,
    /// Parts that are stored outside.
    pub(crate) payloads: u64,
    /// Their bytes.
    pub(crate) payload_bytes: u64,
    /// Calls whose prompt did not begin with the whole stable part of the one before.
    pub(crate) prefix_moves: u64,
    /// Calls that a block boundary separates from their results.
    pub(crate) units_cut: u64,
    /// The bytes that the proof compared.
    pub(crate) compared_bytes: u64,
    /// Calls by how many open messages they showed.
    pub(crate) loose_messages: BTreeMap<usize, u64>,
    /// Calls after the first closed block, by whether they showed the latest one whole.
    pub(crate) latest_block: LatestBlock,
    /// What is odd about the source, in sentences.
    pub(crate) findings: Vec<String>,
    /// The problems found, in sentences.
    pub(crate) problems: Vec<String>,
}

/// In how many calls the latest block was shown whole, and in how many by its line.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct LatestBlock {
    pub(crate) whole: u64,
    pub(crate) line: u64,
}

impl Report {
    pub(crate) fn new(sourced: &Sourced, todo: &TodoId, policy: Policy) -> Self {
        Self {
            id: sourced.id(),
            messages: sourced.conversation.messages.len() as u64,
            blocks: 0,
            policy: policy.name(),
            calls: 0,
            input_tokens: 0,
            peak_tokens: 0,
            cached_tokens: 0,
            cost_units: 0.0,
            // Nothing is known to have come back before it is compared.
            lossless: false,
            orphans: 0,
            window_max_messages: 0,
            window_bound: None,
            todo_id: todo.to_string(),
            resumed_at: 0,
            tokens: 0,
            full: Usage::default(),
            baselines: BTreeMap::new(),
            close_reasons: BTreeMap::new(),
            payloads: 0,
            payload_bytes: 0,
            prefix_moves: 0,
            units_cut: 0,
            compared_bytes: 0,
            loose_messages: BTreeMap::new(),
            latest_block: LatestBlock::default(),
            findings: sourced.findings(),
            problems: Vec::new(),
        }
    }

    /// Adds what the same calls would have been sent under the baselines.
    pub(crate) fn used_beside(&mut self, besides: &[Beside]) {
        for beside in besides {
            self.baselines.insert(beside.baseline.name, beside.usage());
        }
        self.full = self.baselines.get(FULL).map(|full| full.usage).unwrap_or_default();
    }

    /// Adds what the calls were sent.
    pub(crate) fn used(&mut self, usage: Usage) {
        let usage = usage.rounded();
        self.calls = usage.calls;
        self.input_tokens = usage.input_tokens;
        self.peak_tokens = usage.peak_tokens;
        self.cached_tokens = usage.cached_tokens;
        self.cost_units = usage.cost_units;
    }

    /// Adds the outcome of the proof.
    pub(crate) fn proved(&mut self, proof: Proof) {
        self.lossless = proof.holds();
        self.payloads = proof.payloads;
        self.payload_bytes = proof.payload_bytes;
        self.units_cut = proof.units_cut;
        self.compared_bytes = proof.bytes;
        self.problems.extend(proof.problems);
        if proof.untold > 0 {
            self.problems.push(format!("and {} more", thousands(proof.untold)));
        }
        if proof.units_cut > 0 {
            let cut = text::count(proof.units_cut, "result");
            self.problems.push(format!("{cut} separated from the call by a block boundary"));
        }
    }

    /// What the calls were sent.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            calls: self.calls,
            input_tokens: self.input_tokens,
            peak_tokens: self.peak_tokens,
            cached_tokens: self.cached_tokens,
            cost_units: self.cost_units,
        }
    }

    /// Whether everything came back, every prompt was valid, no unit was cut, and the window kept
    /// its bound.
    pub(crate) fn is_clean(&self) -> bool {
        let kept_bound = self.window_bound.is_none_or(|bound| self.window_max_messages <= bound);
        self.lossless && self.orphans == 0 && self.units_cut == 0 && kept_bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::Message;
    use foldback_transcript::{Conversation, Envelope};

    #[test]
    fn nothing_is_lossless_before_it_is_proved_and_no_problem_is_hidden() {
        let messages = vec![Message::user("好")];
        let conversation = Conversation::from_parts(None, messages, Envelope::default());
        let sourced = Sourced::new(conversation, "a.json".to_owned(), 1);
        let mut report = Report::new(&sourced, &sourced.todo(), Policy::Foldback);
        assert!(!report.lossless && !report.is_clean());
        report.proved(Proof { units_cut: 2, ..Proof::default() });
        assert!(report.lossless && !report.is_clean());
        assert_eq!(report.problems, ["2 results separated from the call by a block boundary"]);
        let problems = vec!["one".to_owned()];
        report.proved(Proof { problems, untold: 1_234, ..Proof::default() });
        assert!(!report.lossless);
        assert_eq!(report.problems[1..], ["one", "and 1,234 more"]);
    }
}
