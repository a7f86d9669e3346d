//! Journeys across crates: what a user does, from the first message to the proof.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

mod story;

mod lossless;
mod laws;
mod resume;
mod recall;
mod isolation;
mod crash;
mod processes;
mod indexes;
mod large;
mod golden;
mod paths;

mod floors;
mod readme;
