//! Measures how much memory a piece of work takes, from the outside.
//!
//! Tests of one binary share a process, so a test that measures memory runs in its own process:
//! [`grown`] starts the test binary again for one test, whose body is inside [`weigh`] there and does
//! nothing elsewhere.

use std::fs;
use std::process::Command;

/// Set for a test that was started by [`grown`].
const CHILD: &str = "FOLDBACK_TEST_WEIGHED";

/// Returns by how many kilobytes the memory of a process peaks above its starting point while the test
/// of this binary with this name (`module::test`) runs in it; `None` if the system does not report it.
///
/// # Panics
/// When the test fails.
#[must_use]
pub fn grown(test: &str) -> Option<u64> {
    told(test).iter().filter_map(|line| line.strip_prefix("grown ")?.parse().ok()).max()
}

/// Returns the lines that such a test has printed.
///
/// # Panics
/// When the test fails.
#[must_use]
#[expect(clippy::panic, reason = "it ends the test")]
pub fn told(test: &str) -> Vec<String> {
    let output = std::env::current_exe().and_then(|binary| {
        let mut command = Command::new(binary);
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, "1").output()
    });
    let output = output.unwrap_or_else(|error| panic!("{test} cannot be started: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}{failed}", output.status);
    assert!(said.contains("1 passed"), "there is no test {test}: {said}");
    said.lines().map(str::to_owned).collect()
}

/// Returns whether this process was started to measure one test.
#[must_use]
pub fn is_weighed() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Does the work if the test was started by [`grown`], and prints by how many kilobytes the peak of the
/// process's memory lies above its previous level.
pub fn weigh(work: impl FnOnce()) {
    if is_weighed()
        && let Some(grown) = growth(work)
    {
        println!("\ngrown {grown}");
    }
}

/// Does the work; returns by how many kilobytes the peak of this process's memory lay above its
/// previous level, if the system reports it.
pub fn growth(work: impl FnOnce()) -> Option<u64> {
    // The peak is reset if that is allowed; otherwise an earlier one may hide this one.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    work();
    Some(peak()?.saturating_sub(before?))
}

/// Returns the peak of this process's memory in kilobytes.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
