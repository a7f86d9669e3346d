//! One attempt at a step, and how its ending is read.

use crate::requests::{blocked, lines, one_line};
use foldback_agent::{Purpose, Report, Stop, TerminateStatus};
use foldback_core::{Estimate, ItemState, excerpt};
use foldback_llm::ModelErrorKind;

/// The most tokens of the reason why an attempt failed.
const REASON_TOKENS: usize = 200;

/// The most tokens of a summary that are recorded and reported to observers.
const TOLD_TOKENS: usize = 2_000;

/// The outcome of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The step is done; its summary.
    Done(String),
    /// It is not, for this reason. The flow notes that: with other limits or another model, a resumed run would
    /// come to another result.
    Failed(String),
    /// The model did not accept a request, for this reason.
    Refused(String),
    /// The whole flow has to end.
    Over(Stop),
}

impl Attempt {
    /// Reads how a run of the agent ended. An attempt that failed in an earlier process stays failed for the
    /// `known` reason, unless it could not be repeated to its end.
    pub(crate) fn of(report: &Report, known: Option<&str>) -> Self {
        match (known, Self::read(report)) {
            (None, read) | (_, read @ Self::Over(Stop::Cancelled)) => read,
            (Some(reason), _) => Self::Failed(reason.to_owned()),
        }
    }

    /// Reads how a run of the agent ended. A step is done only if the run says so.
    fn read(report: &Report) -> Self {
        let ending = &report.trajectory.outcome;
        let words = ending.told();
        let words = words.trim();
        // A reason is one line of the plan.
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
            // A flow worked on the step.
            stop @ Stop::StepFailed { .. } => Self::Failed(bounded(&stop.to_string())),
            Stop::MaxSteps | Stop::Stuck => {
                Self::Failed(format!("{} ({})", ending.stop, steps(report)))
            }
            Stop::ModelFailed { message } => match last_error(report) {
                // The answer cannot be used, and the journal has recorded it.
                None | Some(ModelErrorKind::Response) => Self::Failed(bounded(message)),
                Some(ModelErrorKind::ContextLength | ModelErrorKind::Request) => {
                    Self::Refused(bounded(message))
                }
                // Such a failure says nothing about the step; a resumed run asks again.
                Some(_) => Self::Over(ending.stop.clone()),
            },
            over => Self::Over(over.clone()),
        }
    }

    /// Returns the state of the step's item, and the text that reports it.
    pub(crate) fn handed_back(&self) -> (ItemState, String) {
        match self {
            Self::Done(summary) => (ItemState::Completed, told_of(summary)),
            Self::Failed(reason) | Self::Refused(reason) => (ItemState::Failed, reason.clone()),
            Self::Over(stop) => (ItemState::Cancelled, stop.to_string()),
        }
    }
}

/// Returns the part of a summary that is recorded and reported to observers.
pub(crate) fn told_of(summary: &str) -> String {
    excerpt(&lines(summary), TOLD_TOKENS, &Estimate).text
}

/// Returns the number of requests in the step-by-step loop.
fn steps(report: &Report) -> usize {
    report.trajectory.model_calls().filter(|call| call.purpose == Purpose::REACT).count()
}

/// Returns how the last request to the model failed, if it did.
fn last_error(report: &Report) -> Option<ModelErrorKind> {
    let last = report.trajectory.model_calls().last()?;
    ModelErrorKind::from_name(&last.error.as_ref()?.kind)
}
