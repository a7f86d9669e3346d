//! Measures how much memory a piece of work takes, from the outside.
//!
//! Tests of one binary share a process, so a test that measures memory starts the test binary again for itself
//! alone, by [`grown`] with its own name. There [`is_weighed`] holds, and the test does the work inside [`weigh`]
//! instead.

use crate::alone;
use std::fs;
use std::path::{Path, PathBuf};

/// Set for a test that was started by [`grown`], to the folder that it reads.
const CHILD: &str = "FOLDBACK_TEST_WEIGHED";

/// Returns by how many kilobytes the memory of a process peaks above its starting point while the test
/// of this binary with this name (`module::test`) runs in it; `None` if the system does not report it, which Linux
/// always does.
///
/// # Panics
/// When the test fails, or measures nothing.
#[must_use]
pub fn grown(test: &str) -> Option<u64> {
    grown_over(test, Path::new(""))
}

/// Does the same for a test that reads what its caller has put into a folder: [`folder`] returns it there.
///
/// # Panics
/// When the test fails, or measures nothing.
#[must_use]
pub fn grown_over(test: &str, folder: &Path) -> Option<u64> {
    let told = run(test, folder);
    let grown = told.iter().filter_map(|line| line.strip_prefix("grown ")?.parse().ok()).max();
    assert!(grown.is_some() || !cfg!(target_os = "linux"), "{test} measures nothing: {told:?}");
    grown
}

/// Returns the lines that such a test has printed.
///
/// # Panics
/// When the test fails.
#[must_use]
pub fn told(test: &str) -> Vec<String> {
    run(test, Path::new(""))
}

#[expect(clippy::panic, reason = "it ends the test")]
fn run(test: &str, folder: &Path) -> Vec<String> {
    let output = alone(test).env(CHILD, folder).output();
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

/// Returns the folder that this process was started to read; empty if there is none.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::var_os(CHILD).map(PathBuf::from).unwrap_or_default()
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
