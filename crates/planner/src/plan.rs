//! A plan: steps and their dependences.

use crate::{Action, FailurePolicy, Spelling, Step, StepId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A plan, lowered from the form in which it was written. Its steps are in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The form in which it was written.
    pub form: Form,
    /// The steps, ascending by number; each number occurs once.
    pub steps: Vec<Step>,
}

/// A form in which models write plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// OnePlan JSON: `action_plan` with `stepN` and `dependence`.
    OnePlan,
    /// `<execute_tools>` with `<parallel>` and `<sequential>`.
    ExecuteTools,
    /// Tool calls of a chat API.
    Native,
}

impl Plan {
    /// Returns the step with this number.
    #[must_use]
    pub fn step(&self, id: StepId) -> Option<&Step> {
        let at = self.steps.binary_search_by_key(&id, |step| step.id).ok()?;
        self.steps.get(at)
    }
}

impl Form {
    /// Returns the name of a step for a model that writes this form.
    #[must_use]
    pub fn label(self, id: StepId) -> String {
        match self {
            Self::OnePlan => id.to_string(),
            Self::ExecuteTools | Self::Native => {
                format!("the call at index {}", id.0.saturating_sub(1))
            }
        }
    }

    /// Returns the spelling of references in this form.
    #[must_use]
    pub fn spelling(self) -> Spelling {
        match self {
            Self::OnePlan | Self::Native => Spelling::OnePlan,
            Self::ExecuteTools => Spelling::ExecuteTools,
        }
    }
}

/// Prints a line for each step: its number, what it does, its dependences, and its policy if that is
/// not the default.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Call { function, arguments } => {
                let mut text = String::new();
                arguments.write(Spelling::OnePlan, &mut text);
                write!(f, "{} = {function} {text}", self.id)?;
            }
            Action::Anchor { task } => write!(f, "{} = anchor {task:?}", self.id)?,
        }
        for (place, on) in self.after.iter().enumerate() {
            write!(f, "{}{on}", if place == 0 { " after " } else { ", " })?;
        }
        match self.on_failure {
            FailurePolicy::SkipDependents => Ok(()),
            FailurePolicy::FailFast => f.write_str(" (fail_fast)"),
            FailurePolicy::ContinueWithError => f.write_str(" (continue_with_error)"),
        }
    }
}
