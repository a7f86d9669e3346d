//! OnePlan JSON: `{"action_plan": {"step1": {"function": .., "args": .., "dependence": [..]}}}`.
//!
//! There may be text and code fences around the JSON, and comments (`//`, `/* */`) and trailing commas
//! in it. Steps are ordered by number, not by position. Lenient readings are noted; ambiguity (a
//! duplicate key, a second plan) is always an error and never a choice.
//!
//! An object is examined if a `{` is followed by a key. One without `action_plan` or `mode` is ordinary
//! text, and so is one that breaks off before them.

mod reader;
mod step_object;
mod writer;

pub use reader::{OnePlanEvent, OnePlanReader};
pub use writer::{WriteError, write_one_plan};

use crate::{Findings, ParseError, Plan, Position, StepId};
use std::collections::BTreeMap;

/// The answer of a model that was asked for a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct OnePlan {
    /// The model's intent.
    pub intent: Intent,
    /// The findings. If one of them is an error, the plan must not run.
    pub findings: Findings,
    /// The position of each step's key in the text.
    pub places: BTreeMap<StepId, Position>,
}

/// The intent of a model that was asked for a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Intent {
    /// To carry out a plan.
    Plan(Plan),
    /// To go step by step, because the task is open-ended: `{"mode": "react", "reason": ".."}`.
    React {
        /// The reason; empty if none was given.
        reason: String,
    },
}

/// Parses a whole answer. [`OnePlanReader`] parses one that is still being written.
///
/// # Errors
/// When there is no plan in the text, the plan breaks off, or it is not JSON even when read leniently.
pub fn parse_one_plan(text: &str) -> Result<OnePlan, ParseError> {
    let mut reader = OnePlanReader::new();
    reader.push(text);
    reader.finish()
}
