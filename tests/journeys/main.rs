//! Journeys across crates: what a user does, from the first message to the proof.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod story;

mod cjk;
mod context_engineering;
mod crash;
mod golden;
mod grants;
mod hand_over;
mod indexes;
mod injections;
mod isolation;
mod large;
mod laws;
mod lossless;
mod paths;
mod payload_search;
mod planning_rows;
mod processes;
mod rebuild;
mod recall;
mod reembed;
mod resume;

mod floors;
mod readme;
