//! What the interface to models promises, from outside.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails; helpers of tests are tests"
)]

mod cache;
mod clocks;
mod mask;
mod model;
mod recorded;
mod retry;
mod scripted;
mod tool_names;
