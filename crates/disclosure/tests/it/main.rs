//! The public face of the live view and the recall tools.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails; helpers of tests are tests"
)]

mod aware;
mod laws;
mod library;
mod once;
mod pages;
mod payload_search;
mod play;
mod prompt;
mod provenance;
mod tools;
