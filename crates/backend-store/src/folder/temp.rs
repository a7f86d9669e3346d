//! A file that is being written.

use crate::Error;
use std::fs;
use std::fs::File;
use std::path::PathBuf;

/// A file that is being written.
pub(crate) struct Temp {
    pub(super) file: Option<File>,
    pub(crate) path: PathBuf,
    pub(super) kept: bool,
}

impl Temp {
    pub(crate) fn file(&mut self) -> Result<&mut File, Error> {
        let path = &self.path;
        self.file
            .as_mut()
            .ok_or_else(|| Error::Refused { path: path.clone(), what: "it is closed already" })
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
