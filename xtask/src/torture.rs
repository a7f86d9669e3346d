//! Breaks stores on purpose, for some time.

use std::io;
use std::path::Path;
use std::process::Command;

/// Runs `crates/torture` with these arguments: `--minutes N`, `--seed N`, `--only KIND`. Returns
/// whether nothing was found.
pub(crate) fn run(root: &Path, arguments: &[String]) -> io::Result<bool> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--release", "--package", "foldback-torture", "--features", "postgres", "--"])
        .args(arguments)
        .current_dir(root)
        .status()?;
    Ok(status.success())
}
