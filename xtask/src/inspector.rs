//! The pages of the inspector in Chromium: the pictures of `docs/inspector.md`, and how quick the pages are.

use std::io::{self, Error};
use std::path::Path;
use std::process::Command;

/// The folder of the browser's tests, which has the scripts and the versions of the packages that they need.
const FOLDER: &str = "crates/inspector/tests/browser";

/// The script that writes the pictures, whose paths are printed.
pub(crate) const SCREENSHOTS: &str = "screenshots.js";

/// The script that prints how quickly long sessions open, scroll and are searched.
pub(crate) const SPEED: &str = "speed.js";

/// Runs a script with the command that `FOLDBACK` names or, without it, one that is built first. Installs the packages
/// if they are not there.
///
/// # Errors
/// When the command cannot be built, there is no Node or no Chromium, or the script fails.
pub(crate) fn run(root: &Path, script: &str) -> io::Result<()> {
    let root = root.canonicalize()?;
    let folder = root.join(FOLDER);
    let foldback = match std::env::var_os("FOLDBACK") {
        Some(named) => Path::new(&named).canonicalize()?,
        None => {
            finished(Command::new(env!("CARGO")).current_dir(&root).args([
                "build",
                "-q",
                "-p",
                "foldback-cli",
                "--locked",
            ]))?;
            // It is built beside this program.
            std::env::current_exe()?.with_file_name("foldback")
        }
    };
    if !folder.join("node_modules").is_dir() {
        let mut npm = Command::new("npm");
        // Nothing that was downloaded is run to install it.
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        finished(npm.current_dir(&folder))?;
    }
    let mut node = Command::new("node");
    finished(node.current_dir(&folder).arg(script).env("FOLDBACK", foldback))
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
