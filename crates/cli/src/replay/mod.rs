//! Feeding a recorded conversation through a live session, message by message, as if it happened
//! now: measuring what a model would be sent, and proving that everything comes back.

mod beside;
mod event;
mod player;
mod proof;
mod recalls;
mod report;
mod run;
mod sample;
mod screen;
mod summary;

pub(crate) use beside::{Beside, BesideUsage, Forgot, replay_baseline, rivals};
pub(crate) use event::Event;
pub(crate) use recalls::recalls;
pub(crate) use report::Report;
pub(crate) use run::{Run, Stop, replay};
pub(crate) use sample::{Sample, samples};
pub(crate) use screen::{Many, Screen};
pub(crate) use summary::{Totals, summary};
