//! Feeding a recorded conversation through a live session, message by message, as if it happened
//! now: measuring what a model would be sent, and proving that everything comes back.

mod full;
mod meter;
mod proof;
mod report;
mod run;
mod sample;
mod screen;
mod summary;

pub(crate) use full::replay_full;
pub(crate) use report::Report;
pub(crate) use run::{Event, Run, Stop, replay};
pub(crate) use sample::{Sample, samples};
pub(crate) use screen::{Many, Screen};
pub(crate) use summary::{Totals, summary};

/// A policy that decides what a model is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The memory: a window of constant size.
    Foldback,
    /// Everything, at each call.
    Full,
}

impl Policy {
    pub(crate) const ALL: [Self; 2] = [Self::Foldback, Self::Full];

    /// The name as it is given and reported.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Foldback => "foldback",
            Self::Full => "full",
        }
    }
}

/// The greatest number of messages that the live view shows of the latest block and the open tail,
/// but for a single unit that is larger: the default of the library.
pub(crate) const WINDOW_BOUND: usize = 12;
