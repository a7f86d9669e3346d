//! The reading of a planner's answer.

use foldback_planner::{
    Action, Catalog, Finding, FindingKind, Form, Intent, Plan, Position, Progress, StepId,
    Validator, parse_one_plan,
};
use std::collections::{BTreeMap, BTreeSet};

/// The reading of a planner's answer.
pub(super) enum Reading {
    /// A plan that may run beside the existing steps, which are not in it.
    Plan(Plan),
    /// The task is open-ended, for this reason.
    StepByStep(String),
    /// Nothing that may run: the plan as far as it goes, all its faults, and the faulty steps as they
    /// were written.
    Unsound { plan: Plan, findings: Vec<String>, faulty: Vec<String> },
}

/// Reads an answer, and checks its plan against the tools and what was done.
pub(super) fn read(text: &str, progress: &Progress, validator: &Validator<'_>) -> Reading {
    let read = match parse_one_plan(text) {
        Ok(read) => read,
        Err(error) => {
            let plan = Plan { form: Form::OnePlan, steps: Vec::new() };
            let findings = vec![error.to_string()];
            return Reading::Unsound { plan, findings, faulty: Vec::new() };
        }
    };
    let plan = match read.intent {
        Intent::Plan(plan) => plan,
        Intent::React { reason } => return Reading::StepByStep(reason),
    };
    // "Nothing (more) to do" is a valid answer, if nothing else is wrong with it.
    let mut errors = read.findings.errors().map(|finding| finding.kind);
    if errors.next() == Some(FindingKind::EmptyPlan) && errors.next().is_none() {
        return Reading::Plan(plan);
    }
    // All faults are reported at once, those of form and those of meaning.
    let merged = progress.merge(plan, validator);
    let places = merged.places(&read.places);
    let meaning = merged.findings.placed(&places);
    let errors: Vec<&Finding> = read.findings.errors().chain(meaning.errors()).collect();
    if errors.is_empty() {
        return Reading::Plan(merged.plan);
    }
    let faulty = faulty(text, &errors, &read.places);
    let mut findings: Vec<String> = errors.into_iter().map(Finding::to_string).collect();
    findings.dedup();
    Reading::Unsound { plan: merged.plan, findings, faulty }
}

/// Returns the plan that a text consists of, with or without a fence around it; `None` if the text is words, even
/// if they quote a plan before or after them.
pub(crate) fn written_plan(text: &str) -> Option<Intent> {
    let text = text.trim();
    let text = match text.strip_prefix("```") {
        Some(rest) => rest.trim_start_matches("json").trim_end_matches("```").trim(),
        None => text,
    };
    let read = (text.starts_with('{') && text.ends_with('}')).then(|| parse_one_plan(text))?;
    read.ok().map(|read| read.intent)
}

/// Returns whether a plan has a step for the executor: one that calls a known tool, or a decision. Any other plan is
/// for somebody else.
pub(crate) fn is_for(plan: &Plan, catalog: &Catalog) -> bool {
    plan.steps.iter().any(|step| match &step.action {
        Action::Call { function, .. } => catalog.get(function).is_some(),
        Action::Anchor { .. } => true,
    })
}

/// Returns the text of each faulty step, from its key to that of the next one.
fn faulty(text: &str, errors: &[&Finding], places: &BTreeMap<StepId, Position>) -> Vec<String> {
    let mut starts: Vec<usize> = places.values().map(|place| place.offset).collect();
    starts.sort_unstable();
    let found = errors.iter().filter_map(|finding| finding.at);
    let blamed: BTreeSet<usize> =
        found.filter_map(|at| starts.partition_point(|s| *s <= at.offset).checked_sub(1)).collect();
    let step = |nth: usize| {
        let from = *starts.get(nth)?;
        let to = starts.get(nth + 1).copied().unwrap_or(text.len());
        Some(text.get(from..to)?.trim().to_owned())
    };
    blamed.into_iter().filter_map(step).collect()
}
