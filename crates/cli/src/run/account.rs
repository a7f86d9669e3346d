//! What a run has sent and spent.

use foldback_agent::Spending;
use foldback_llm::Usage;
use serde::{Deserialize, Serialize};

/// What a run has sent and spent so far, its sub-agents' calls included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Account {
    /// How often the model was asked, calls without a usable answer included.
    pub(crate) calls: u64,
    /// Its tokens, as its provider counts them. Once the run has ended, they are estimated if a limit depends on them
    /// and the provider does not count.
    pub(crate) usage: Usage,
    /// Their cost, if the prices are known.
    pub(crate) cost: Option<f64>,
    /// The estimated tokens of all requests.
    pub(crate) sent: u64,
    /// The tokens of the same work, had every request held everything that was recorded before it. A call in which the
    /// model only looks back would not have been made.
    pub(crate) full: u64,
    /// The part of the calls, tokens and cost for summaries that a model wrote for the context's policy.
    pub(crate) summaries: SummariesAccount,
}

/// The calls, tokens and cost of the summaries of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SummariesAccount {
    pub(crate) calls: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cost: Option<f64>,
}

impl Account {
    /// The account with at least the tokens that count towards the limits: they are estimated where the server reports
    /// none.
    pub(crate) fn at_least(self, spent: &Spending) -> Self {
        let tokens = |usage: &Usage| usage.input.saturating_add(usage.output);
        if tokens(&self.usage) >= tokens(&spent.usage) {
            return self;
        }
        Self { usage: spent.usage, cost: self.cost.map(|cost| cost.max(spent.cost)), ..self }
    }

    /// The sum of both.
    pub(crate) fn plus(mut self, other: &Self) -> Self {
        self.cost = together((self.calls, self.cost), (other.calls, other.cost));
        self.calls += other.calls;
        self.usage += other.usage;
        self.sent += other.sent;
        self.full += other.full;
        self.summaries.add(&other.summaries);
        self
    }
}

impl SummariesAccount {
    fn add(&mut self, other: &Self) {
        self.cost = together((self.calls, self.cost), (other.calls, other.cost));
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

/// The sum of two costs: unknown if it is unknown for one that has any calls.
fn together(one: (u64, Option<f64>), other: (u64, Option<f64>)) -> Option<f64> {
    match (one, other) {
        ((0, _), (_, cost)) | ((_, cost), (0, _)) => cost,
        ((_, one), (_, other)) => Some(one? + other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sum with an unknown part is unknown.
    #[test]
    fn a_cost_is_told_where_that_of_every_call_is_known() {
        let calls = |cost| {
            let summaries = SummariesAccount { calls: 1, cost, ..SummariesAccount::default() };
            Account { calls: 2, cost, summaries, ..Account::default() }
        };
        let (known, unknown) = (calls(Some(0.5)), calls(None));
        let both = known.plus(&known);
        assert_eq!((both.calls, both.cost), (4, Some(1.0)));
        assert_eq!((both.summaries.calls, both.summaries.cost), (2, Some(1.0)));
        assert_eq!(known.plus(&unknown).cost, None);
        assert_eq!(unknown.plus(&known).summaries.cost, None);
        assert_eq!(known.plus(&Account::default()), known);
        assert_eq!(Account::default().plus(&known), known);
    }
}
