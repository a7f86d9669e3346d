//! What the door to models promises, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails; helpers of tests are tests"
)]

mod affinity;
mod aimock;
mod cache;
mod canonical;
mod cassette;
mod clocks;
mod config;
mod diversity;
mod failures;
mod hermes_parser;
mod hermes_prompt;
mod malformed;
mod mask;
mod model;
mod pace;
mod provider_anthropic;
mod provider_openai;
mod recorded;
mod retry;
mod roles;
mod scripted;
mod tool_choice;
mod tool_names;
mod wire;
