//! A step of a plan.

use crate::Template;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a step, counted from 1, whatever the form of the plan. For a model, `<execute_tools>`
/// and native calls count from 0; here their first is 1 as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(pub u32);

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step{}", self.0)
    }
}

/// A step: what it does, and which steps must end before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number; unique in the plan.
    pub id: StepId,
    /// What it does.
    pub action: Action,
    /// The steps that must end before it, ascending, each once: those that are declared and those that
    /// its arguments refer to.
    pub after: Vec<StepId>,
    /// What its failure means for the others.
    pub on_failure: FailurePolicy,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Calls a tool.
    Call {
        /// The tool's name.
        function: String,
        /// Its arguments, with references that are filled in when it starts.
        arguments: Template,
    },
    /// Calls no tool: once its dependences have ended, a new plan is made.
    Anchor {
        /// What is to be decided then, in the model's words.
        task: String,
    },
}

/// What the failure of a step means for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailurePolicy {
    /// Steps that wait for it, directly or not, are skipped; the others continue.
    #[default]
    SkipDependents,
    /// No further step is started.
    FailFast,
    /// Steps that wait for it run, and see the error in place of the result.
    ContinueWithError,
}
