//! The public face of the formats.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends at the first surprise")]

mod bad_input;
mod findings;
mod requests;
mod round_trip;
