//! One attempt at a step, and what is made of how it ended.

use crate::requests::{blocked, lines, one_line};
use foldback_agent::{Purpose, Report, Stop, TerminateStatus};
use foldback_core::{Estimate, ItemState, excerpt};
use foldback_llm::ModelErrorKind;

/// How much is told of why an attempt failed.
const REASON_TOKENS: usize = 200;

/// How much of a summary is recorded, and told to whoever watches.
const TOLD_TOKENS: usize = 2_000;

/// What an attempt came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The step is done; its summary.
    Done(String),
    /// It is not, and why. A run that is resumed comes to the same.
    Failed(String),
    /// The model does not take what it was asked there, and why. No journal has that.
    Refused(String),
    /// The whole flow has to end with it.
    Over(Stop),
}

impl Attempt {
    /// What is made of how a run of the agent ended. Only what says that it is done is done.
    pub(crate) fn of(report: &Report) -> Self {
        let ending = &report.trajectory.outcome;
        let words = ending.told();
        let words = words.trim();
        // A reason stands in the plan, on a line of its own.
        let bounded = |reason: &str| excerpt(&one_line(reason), REASON_TOKENS, &Estimate).text;
        match &ending.stop {
            stop @ (Stop::Answered | Stop::CutOff) => match blocked(words) {
                Some("") => Self::Failed("it was given up without a reason".to_owned()),
                Some(reason) => Self::Failed(bounded(reason)),
                None if *stop == Stop::CutOff => {
                    Self::Done(format!("{words}\n(the summary was cut off here)"))
                }
                None => Self::Done(words.to_owned()),
            },
            Stop::Terminated { status: TerminateStatus::Success } => Self::Done(words.to_owned()),
            Stop::Terminated { status: TerminateStatus::Failure } => Self::Failed(bounded(words)),
            Stop::MaxSteps | Stop::Stuck => {
                Self::Failed(format!("{} ({})", ending.stop, steps(report)))
            }
            Stop::ModelFailed { message } => match last_error(report) {
                // It answered what cannot be used, and the journal has that.
                None | Some(ModelErrorKind::Response) => Self::Failed(bounded(message)),
                Some(ModelErrorKind::ContextLength | ModelErrorKind::Request) => {
                    Self::Refused(bounded(message))
                }
                // That says nothing about the step; a resumed run asks again.
                Some(_) => Self::Over(ending.stop.clone()),
            },
            over => Self::Over(over.clone()),
        }
    }

    /// Where the step's item stands, and what is told of it.
    pub(crate) fn handed_back(&self) -> (ItemState, String) {
        match self {
            Self::Done(summary) => (ItemState::Completed, told_of(summary)),
            Self::Failed(reason) | Self::Refused(reason) => (ItemState::Failed, reason.clone()),
            Self::Over(stop) => (ItemState::Cancelled, stop.to_string()),
        }
    }
}

/// A summary as far as it is recorded, and told to whoever watches.
pub(crate) fn told_of(summary: &str) -> String {
    excerpt(&lines(summary), TOLD_TOKENS, &Estimate).text
}

/// How often the model was asked step by step.
fn steps(report: &Report) -> usize {
    report.trajectory.model_calls().filter(|call| call.purpose == Purpose::REACT).count()
}

/// How the last call of the model failed, if it did.
fn last_error(report: &Report) -> Option<ModelErrorKind> {
    let last = report.trajectory.model_calls().last()?;
    ModelErrorKind::from_name(&last.error.as_ref()?.kind)
}
