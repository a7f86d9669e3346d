//! OnePlan JSON: `{"action_plan": {"step1": {"function": .., "args": .., "dependence": [..]}}}`.
//!
//! Around the JSON there may be text and code fences; in it comments (`//`, `/* */`) and trailing
//! commas. Steps are ordered by number, not by where they stand. What is read leniently is noted;
//! what is ambiguous (a key that stands twice, a second plan) is an error and never a choice.
//!
//! An object is looked at where a `{` and a key stand. One without `action_plan` or `mode` is text
//! like any other, so is one that breaks off before them.

mod reader;
mod step_object;
mod writer;

pub use reader::{OnePlanEvent, OnePlanReader};
pub use writer::{WriteError, write_one_plan};

use crate::{Findings, ParseError, Plan, Position, StepId};
use std::collections::BTreeMap;

/// What a model answered that was asked for a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct OnePlan {
    /// What it wants.
    pub intent: Intent,
    /// What was noticed. With an error among it, the plan must not run.
    pub findings: Findings,
    /// Where the key of each step stands in the text.
    pub places: BTreeMap<StepId, Position>,
}

/// What a model wants that was asked for a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Intent {
    /// To carry out a plan.
    Plan(Plan),
    /// To go step by step, because the task is open-ended: `{"mode": "react", "reason": ".."}`.
    React {
        /// Why; empty where it gave no reason.
        reason: String,
    },
}

/// Reads a whole answer. [`OnePlanReader`] reads one that is still being written.
///
/// # Errors
/// When there is no plan in the text, or it breaks off, or is no JSON even when read leniently.
pub fn parse_one_plan(text: &str) -> Result<OnePlan, ParseError> {
    let mut reader = OnePlanReader::new();
    reader.push(text);
    reader.finish()
}
