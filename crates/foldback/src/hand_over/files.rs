//! Files and buffers that one call is handed, bounded and private.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A writer that takes so many bytes and no more.
pub(super) struct Bounded<W> {
    pub(super) out: W,
    pub(super) left: u64,
    /// Whether there was more than it takes.
    pub(super) is_full: bool,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full = bytes.len() as u64 > self.left;
        if self.is_full {
            return Err(io::Error::other("there is no room left"));
        }
        let written = self.out.write(bytes)?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Makes a file that nobody else can open.
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Lets the file be read only.
pub(super) fn seal(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions)
}
