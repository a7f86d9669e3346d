//! What flow and its plans promise, from outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by stopping")]

mod planning;
mod resumed;
mod runs;
mod settings;

use foldback_testkit::agent::{keeping, script, toolkit};
