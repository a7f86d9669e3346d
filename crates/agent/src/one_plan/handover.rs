//! The message to a model when the work continues step by step.

use super::history::Round;
use crate::Outcome;
use crate::facts::names;
use crate::trajectory::{DegradeReason, Degraded};
use foldback_core::{Estimate, excerpt};
use foldback_planner::{Action, StepId, StepResult};
use foldback_tool::FailureKind;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The most tokens of the reason.
const DETAIL_TOKENS: usize = 500;

/// The most tokens of the open decisions.
const DECISIONS_TOKENS: usize = 2_000;

/// Returns one message that says why there are no more plans, what is still to be decided, and what went wrong.
pub(super) fn handover(
    degraded: &Degraded,
    undecided: &BTreeSet<StepId>,
    rounds: &[Round],
    outcome: &Outcome,
) -> String {
    // The faults of a plan do not help a model that makes none, and would be imitated.
    let why = match degraded.because {
        DegradeReason::InvalidPlan => sentence(reason(degraded).to_owned()),
        _ => sentence(why(degraded)),
    };
    let mut text = format!("[{why} There are no more plans; from here, work step by step.]\n");
    let open = decisions(undecided, rounds, outcome);
    if !open.is_empty() {
        let open = excerpt(&open, DECISIONS_TOKENS, &Estimate).text;
        let _ = write!(text, "Still to be decided:\n{open}");
    }
    for (which, steps, advice) in [
        ("Failed", ended(outcome, |kind| !not_run(kind) && kind != FailureKind::Denied), ""),
        ("Refused", ended(outcome, |kind| kind == FailureKind::Denied), "; do not work around it"),
        ("Not run", ended(outcome, not_run), ""),
    ] {
        if !steps.is_empty() {
            let _ = writeln!(text, "{which}: {}{advice}.", names(&steps));
        }
    }
    text.push_str("Call what you need now, look at the results, and answer when you are done.");
    text
}

/// Returns why there are no more plans.
pub(super) fn why(degraded: &Degraded) -> String {
    let why = reason(degraded);
    match excerpt(degraded.detail.trim(), DETAIL_TOKENS, &Estimate).text {
        detail if detail.is_empty() => why.to_owned(),
        detail => format!("{why}: {detail}"),
    }
}

/// Returns the reason without its detail.
fn reason(degraded: &Degraded) -> &'static str {
    match degraded.because {
        DegradeReason::Declared => "The steps of this task cannot be planned ahead",
        DegradeReason::InvalidPlan => "Neither the plan nor its repair can be run",
        DegradeReason::ReplansSpent => "No further plan is made",
        DegradeReason::NoSteps => "There is nothing to plan",
    }
}

/// Adds a full stop, unless the words already end as a sentence.
fn sentence(words: String) -> String {
    let ends = ['.', '!', '?', '。', '！', '？'];
    if words.ends_with(ends) { words } else { words + "." }
}

/// Lists the decisions that no plan has made, one per line.
fn decisions(undecided: &BTreeSet<StepId>, rounds: &[Round], outcome: &Outcome) -> String {
    let mut text = String::new();
    for step in rounds.iter().flat_map(|round| &round.steps) {
        let Action::Anchor { task } = &step.action else { continue };
        let is_made = matches!(outcome.results.get(&step.id), Some(StepResult::Success { .. }));
        if !is_made || undecided.contains(&step.id) {
            let _ = writeln!(text, "- {}: {task}", step.id);
        }
    }
    text
}

/// Returns the steps that ended with a failure of certain kinds, ascending.
fn ended(outcome: &Outcome, of: impl Fn(FailureKind) -> bool) -> Vec<StepId> {
    let failed = outcome.results.iter().filter_map(|(step, result)| match result {
        StepResult::Error { failure } if of(failure.kind) => Some(*step),
        _ => None,
    });
    failed.collect()
}

fn not_run(kind: FailureKind) -> bool {
    kind == FailureKind::Cancelled
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reason_ends_with_one_full_stop() {
        for (words, sentence) in [
            ("要看了结果才能决定。", "要看了结果才能决定。"),
            ("Who knows?", "Who knows?"),
            ("It depends...", "It depends..."),
            ("It depends", "It depends."),
            ("看情况", "看情况."),
        ] {
            assert_eq!(super::sentence(words.to_owned()), sentence);
        }
    }
}
