//! A file that is being written.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// A file that is being written.
pub(super) struct Temp {
    pub(super) file: Option<File>,
    pub(super) path: PathBuf,
    pub(super) kept: bool,
}

impl Temp {
    pub(super) fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("it is closed already"))
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.kept {
            // If it stays, it is swept later.
            fs::remove_file(&self.path).ok();
        }
    }
}

pub(super) const TEMP: &str = "new-";
