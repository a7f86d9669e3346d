//! What is found, and what is not.

#![expect(clippy::panic, reason = "a test says so by stopping")]

mod benign;
mod bounds;
mod recall;
mod samples;
