//! Tests of the measurements: small conversations whose figures can be counted by hand.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod cases;
mod gateway;
mod retrieval;
mod savings;
mod segmentation;
