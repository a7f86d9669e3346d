//! What remote models promise, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails; helpers of tests are tests"
)]

mod aimock;
mod config;
mod failures;
mod hermes;
mod malformed;
mod pace;
mod provider_anthropic;
mod provider_openai;
mod roles;
mod servers;
mod tool_choice;
mod wire;
mod workers;
