//! A plan: steps and what they wait for.

use crate::{Action, FailurePolicy, Spelling, Step, StepId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A plan, lowered from the form that it was written in. Its steps stand in the order of their
/// numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The form it was written in.
    pub form: Form,
    /// The steps, ascending by number, each number once.
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
    /// The step of a number.
    #[must_use]
    pub fn step(&self, id: StepId) -> Option<&Step> {
        let at = self.steps.binary_search_by_key(&id, |step| step.id).ok()?;
        self.steps.get(at)
    }
}

impl Form {
    /// A step as a model knows it that writes this form.
    #[must_use]
    pub fn label(self, id: StepId) -> String {
        match self {
            Self::OnePlan => id.to_string(),
            Self::ExecuteTools | Self::Native => {
                format!("the call at index {}", id.0.saturating_sub(1))
            }
        }
    }

    /// How references are written in this form.
    #[must_use]
    pub fn spelling(self) -> Spelling {
        match self {
            Self::OnePlan | Self::Native => Spelling::OnePlan,
            Self::ExecuteTools => Spelling::ExecuteTools,
        }
    }
}

/// A line for each step: its number, what it does, what it waits for, and its policy where that is
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
