//! Files that are handed to a command by reference: private, read-only, and removed with the command.

use foldback_core::HandOver;
use foldback_tool::ToolError;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Files in a folder of their own, which nobody else can open and which is removed with the value. If the
/// process is killed, the folder stays behind in the system's temporary folder.
pub(super) struct HandedFiles {
    pub(super) folder: TempDir,
    /// One for each reference, in their order.
    pub(super) paths: Vec<PathBuf>,
}

impl HandedFiles {
    /// Writes the contents that the references name, up to a total number of bytes.
    pub(super) fn write(
        from: &dyn HandOver,
        references: &[String],
        most: u64,
    ) -> Result<Self, ToolError> {
        let folder = tempfile::Builder::new().prefix("foldback-").tempdir().map_err(failed)?;
        let (mut paths, mut left) = (Vec::new(), most);
        for (reference, n) in references.iter().zip(1..) {
            let path = folder.path().join(format!("{n}-{}", file_name(reference)));
            let mut out = BufWriter::new(private_file(&path).map_err(failed)?);
            left -= from.hand_over(reference, left, &mut out)?.min(left);
            out.flush().and_then(|()| seal(&path)).map_err(failed)?;
            paths.push(path);
        }
        Ok(Self { folder, paths })
    }
}

/// Returns the part of a reference that is usable in a file name: letters, digits, `-` and `_`.
fn file_name(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or_default();
    let name = name.split('#').next().unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    name.chars().filter(is_plain).take(60).collect()
}

/// Makes a file that nobody else can open.
fn private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the file read-only.
fn seal(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions)
}

fn failed(error: io::Error) -> ToolError {
    ToolError::transient(format!("the stored content could not be written to a file: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_like_its_reference() {
        for (reference, name) in [
            ("store://2-k4qd", "2-k4qd"),
            ("store://trip.杭州/2-k4qd#lines=1-9", "2-k4qd"),
            ("b_trip_001", "b_trip_001"),
            ("../../etc/passwd", "passwd"),
            ("..", ""),
        ] {
            assert_eq!(file_name(reference), name);
        }
    }
}
