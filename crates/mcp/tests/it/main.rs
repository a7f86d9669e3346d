//! Tests of the public interface.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod config;
mod contents;
mod hostile;
mod in_process;
mod programs;
mod python;
