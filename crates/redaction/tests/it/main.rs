//! Secrets that are found, and text that is left alone.

#![expect(clippy::panic, reason = "a test says so by stopping")]

mod benign;
mod bounds;
mod recall;
mod samples;
mod shown;
