//! Journeys across crates: what a user does, from the first message to the proof.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod story;

mod crash;
mod golden;
mod indexes;
mod isolation;
mod large;
mod laws;
mod lossless;
mod paths;
mod processes;
mod recall;
mod resume;

mod floors;
mod readme;
