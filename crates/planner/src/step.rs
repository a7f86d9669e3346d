//! A step of a plan.

use crate::Template;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a step, from 1 on, in whatever form the plan was written. `<execute_tools>` and
/// native calls count from 0 where a model reads them; here their first is 1 as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(pub u32);

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step{}", self.0)
    }
}

/// One step: what it does, and what has to end before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number; unique in the plan.
    pub id: StepId,
    /// What it does.
    pub action: Action,
    /// The steps that have to end before it, ascending, each once. Holds those that are declared and
    /// those that its arguments refer to.
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
    /// Calls no tool: once what it waits for has ended, the plan is made anew.
    Anchor {
        /// What is to be decided then, as the model wrote it.
        task: String,
    },
}

/// What the failure of a step means for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailurePolicy {
    /// What waits for it, directly or not, is skipped; the others go on.
    #[default]
    SkipDependents,
    /// Nothing is started any more.
    FailFast,
    /// What waits for it runs, and sees the error where it refers to the result.
    ContinueWithError,
}
