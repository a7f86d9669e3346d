//! Tests of the public behaviour of flows and their plans.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by stopping")]

mod planning;
mod resumed;
mod runs;
mod settings;

use foldback_testkit::agent::{keeping, script, toolkit};
