//! Tests of the measurements: small tasks, stores and plans whose figures can be counted by hand.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod agent;
mod index;
mod load;
mod plans;
mod recall;
