//! Feeding a recorded conversation through a live session, message by message, as if it happened
//! now: measuring what a model would be sent, and proving that everything comes back.

mod beside;
mod meter;
mod proof;
mod report;
mod run;
mod sample;
mod screen;
mod summary;

pub(crate) use beside::{Beside, BesideUsage, Forgot, replay_baseline};
pub(crate) use meter::Counts;
pub(crate) use report::Report;
pub(crate) use run::{Event, Run, Stop, replay};
pub(crate) use sample::{Sample, samples};
pub(crate) use screen::{Many, Screen};
pub(crate) use summary::{Totals, summary};

use foldback_baselines::{BASELINES, Baseline, baseline};

/// A policy that decides what a model is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Policy {
    /// The memory: a window of constant size.
    Foldback,
    /// What others do.
    Baseline(&'static Baseline),
}

impl Policy {
    /// The names there are, the memory's own first.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        let baselines = BASELINES.iter().map(|baseline| baseline.name);
        std::iter::once(Self::Foldback.as_str()).chain(baselines)
    }

    /// The policy of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        if name == Self::Foldback.as_str() {
            return Some(Self::Foldback);
        }
        baseline(name).map(Self::Baseline)
    }

    /// The name as it is given and reported.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Foldback => "foldback",
            Self::Baseline(baseline) => baseline.name,
        }
    }

    /// Whether it is the memory itself.
    pub(crate) fn is_foldback(self) -> bool {
        matches!(self, Self::Foldback)
    }
}

/// The greatest number of messages that the live view shows of the latest block and the open tail,
/// but for a single unit that is larger: the default of the library.
pub(crate) const WINDOW_BOUND: usize = 12;
