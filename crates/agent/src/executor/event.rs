//! The events of an executor's run, and their trace.

use foldback_planner::StepId;
use std::fmt;
use std::time::Duration;

/// An event in an executor's run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A step's call was started.
    Started {
        /// The step.
        step: StepId,
        /// The tool.
        function: String,
        /// The arguments, with references filled in.
        arguments: String,
    },
    /// A step's call has ended, or was refused; the run has its result.
    Ended {
        /// The step.
        step: StepId,
        /// Whether it succeeded.
        success: bool,
    },
    /// A step will not run because of another.
    Skipped {
        /// The step.
        step: StepId,
        /// The step whose failure is the root cause, or the anchor that a new plan answered.
        because: StepId,
    },
    /// Something happened that may need a new plan.
    ReplanWanted {
        /// The step where it happened.
        step: StepId,
        /// What happened.
        trigger: Trigger,
    },
}

/// The reason why a new plan should be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// An anchor was reached.
    Anchor,
    /// A call failed, took too long, or could not be made.
    Failure,
    /// A tool answered `status=fail`.
    StatusFail,
}

impl Event {
    /// Returns the step that it is about.
    #[must_use]
    pub fn step(&self) -> StepId {
        match self {
            Self::Ended { step, .. }
            | Self::Skipped { step, .. }
            | Self::ReplanWanted { step, .. }
            | Self::Started { step, .. } => *step,
        }
    }

    /// Returns the order of events of one step at the same moment.
    fn rank(&self) -> u8 {
        match self {
            Self::Started { .. } => 0,
            Self::Ended { .. } => 1,
            Self::Skipped { .. } => 2,
            Self::ReplanWanted { .. } => 3,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { step, success: true } => write!(f, "{step} succeeded"),
            Self::Ended { step, success: false } => write!(f, "{step} failed"),
            Self::Skipped { step, because } => write!(f, "{step} skipped because of {because}"),
            Self::ReplanWanted { step, trigger } => write!(f, "{step} wants a new plan: {trigger}"),
            Self::Started { step, function, arguments } => {
                write!(f, "{step} started {function} {arguments}")
            }
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anchor => "anchor reached",
            Self::Failure => "execution failed",
            Self::StatusFail => "status=fail",
        })
    }
}

/// The events of a run, with the time since its beginning.
///
/// Events of the same moment are in the order of the steps, so that two runs with the same calls and the same
/// latencies have equal traces, whatever form their plans were written in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    events: Vec<(Duration, Event)>,
}

impl Trace {
    pub(super) fn push(&mut self, at: Duration, event: Event) {
        self.events.push((at, event));
    }

    /// Puts the trace in its fixed order.
    pub(super) fn in_order(mut self) -> Self {
        self.events.sort_by_key(|(at, event)| (*at, event.step(), event.rank()));
        self
    }

    /// Iterates over the events, in order.
    pub fn iter(&self) -> impl Iterator<Item = &(Duration, Event)> {
        self.events.iter()
    }
}

impl fmt::Display for Trace {
    /// Writes one line per event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, event) in &self.events {
            writeln!(f, "{:>8.3} s  {event}", at.as_secs_f64())?;
        }
        Ok(())
    }
}
