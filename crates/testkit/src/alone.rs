//! Runs one test of a test binary in a process of its own.

use std::process::Command;

/// Returns the command that runs the test of this binary with this name (`module::test`) alone, and shows what it
/// prints.
///
/// A test that needs another process starts itself in this way, with an environment variable that tells it to play
/// the other part. No test is for the other part only: started by hand, it would do nothing and pass.
///
/// # Panics
/// When the system does not say where this program is.
#[must_use]
#[expect(clippy::panic, reason = "it ends the test")]
pub fn alone(test: &str) -> Command {
    let binary = std::env::current_exe().unwrap_or_else(|error| panic!("{test}: {error}"));
    let mut command = Command::new(binary);
    // A long test may be one that is run on demand only.
    command.args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"]);
    command
}
