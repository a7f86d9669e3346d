//! How much memory a piece of work takes, seen from outside of it.
//!
//! Tests of one binary share a process, so a test that weighs something runs in a process of its own:
//! [`grown`] starts the test binary again for one test, whose body is inside [`weigh`] there and does nothing
//! elsewhere.

use std::fs;
use std::process::Command;

/// Set for a test that was started by [`grown`].
const CHILD: &str = "FOLDBACK_TEST_WEIGHED";

/// By how many kilobytes the memory of a process peaks above where it began, while the test of this binary with
/// this name (`module::test`) runs in it; `None` where the system does not tell.
///
/// # Panics
/// When the test fails.
#[must_use]
pub fn grown(test: &str) -> Option<u64> {
    told(test).iter().filter_map(|line| line.strip_prefix("grown ")?.parse().ok()).max()
}

/// The lines that such a test has printed.
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

/// Whether this process was started for one test that is weighed.
#[must_use]
pub fn is_weighed() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Does the work where the test was started by [`grown`], and prints by how many kilobytes the peak of the
/// process's memory lies above where it was before.
pub fn weigh(work: impl FnOnce()) {
    if is_weighed()
        && let Some(grown) = growth(work)
    {
        println!("\ngrown {grown}");
    }
}

/// Does the work; by how many kilobytes the peak of this process's memory lay above where it was before, where
/// the system tells.
pub fn growth(work: impl FnOnce()) -> Option<u64> {
    // The peak begins anew where that is allowed; elsewhere an earlier one may hide this.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    work();
    Some(peak()?.saturating_sub(before?))
}

/// The peak of this process's memory in kilobytes.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
