//! The pictures of `docs/inspector.md`: pages of the inspector in Chromium, over a store of the examples.

use std::io::{self, Error};
use std::path::Path;
use std::process::Command;

/// The folder of the browser's tests, which has the script and the versions of the packages that it needs.
const FOLDER: &str = "crates/inspector/tests/browser";

/// Builds the command, installs the packages if they are not there, and writes the pictures, whose paths are printed.
///
/// # Errors
/// When the command cannot be built, there is no Node or no Chromium, or a picture is too large.
pub(crate) fn make(root: &Path) -> io::Result<()> {
    let root = root.canonicalize()?;
    let folder = root.join(FOLDER);
    finished(Command::new(env!("CARGO")).current_dir(&root).args([
        "build",
        "-q",
        "-p",
        "foldback-cli",
        "--locked",
    ]))?;
    if !folder.join("node_modules").is_dir() {
        let mut npm = Command::new("npm");
        // Nothing that was downloaded is run to install it.
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        finished(npm.current_dir(&folder))?;
    }
    // The command is built beside this program.
    let foldback = std::env::current_exe()?.with_file_name("foldback");
    let mut node = Command::new("node");
    finished(node.current_dir(&folder).arg("screenshots.js").env("FOLDBACK", foldback))
}

fn finished(command: &mut Command) -> io::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(|error| Error::new(error.kind(), format!("{program}: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::other(format!("{program} ended with {status}")))
}
