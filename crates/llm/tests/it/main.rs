//! What the port to models promises, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails; helpers of tests are tests"
)]

mod affinity;
mod cache;
mod cassette;
mod clocks;
mod diversity;
mod hermes_parser;
mod hermes_prompt;
mod mask;
mod model;
mod recorded;
mod retry;
mod scripted;
mod tool_names;
