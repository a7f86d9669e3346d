//! What the tests of every crate rely on.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails; helpers of tests are tests"
)]

mod cassette;
mod generate;
mod script;
