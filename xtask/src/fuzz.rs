//! Fuzzing without a fuzzer: the targets of `fuzz/`, fed by our own mutator, on any toolchain.

use std::io;
use std::path::Path;
use std::process::Command;

/// The default time for which each target runs, in seconds.
const SECONDS: &str = "60";

/// Runs the named targets, or all; `arguments` may begin with `--seconds N`. Returns whether all
/// passed.
pub(crate) fn run(root: &Path, arguments: &[String]) -> io::Result<bool> {
    let (seconds, targets) = match arguments {
        [option, seconds, targets @ ..] if option == "--seconds" => (seconds.as_str(), targets),
        targets => (SECONDS, targets),
    };
    if seconds.parse::<u64>().is_err() || targets.iter().any(|target| target.starts_with('-')) {
        let why = "expected [--seconds N] [TARGET]...; the targets are in fuzz/src/lib.rs";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--package", "foldback-tests", "--test", "journeys"])
        .args(["--", "--ignored", "--exact", "--nocapture"])
        .arg("fuzzing::r5_fuzz_targets_for_some_time")
        .env("FOLDBACK_FUZZ_SECONDS", seconds)
        .env("FOLDBACK_FUZZ_TARGETS", targets.join(" "))
        .current_dir(root)
        .status()?;
    Ok(status.success())
}
