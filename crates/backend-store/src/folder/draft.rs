//! A file of the folder that has no name yet.

use super::{Folder, Temp};
use crate::Error;
use crate::payload_files::{Draft, Good, Sealed, Stored};
use std::io::{self, Write};
use std::path::PathBuf;

/// A file of the folder that has no name yet.
pub(super) struct FolderDraft<'a> {
    folder: &'a Folder,
    todo: u32,
    temp: Temp,
}

impl<'a> FolderDraft<'a> {
    pub(super) fn new(folder: &'a Folder, todo: u32, temp: Temp) -> Self {
        Self { folder, todo, temp }
    }
}

impl Write for FolderDraft<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temp.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temp.file()?.flush()
    }
}

impl Draft for FolderDraft<'_> {
    fn address(&self) -> PathBuf {
        self.temp.path.clone()
    }

    fn put_if_absent(
        self: Box<Self>,
        hash: &[u8; 32],
        written: Sealed,
        good: Good<'_>,
    ) -> Result<Stored, Error> {
        let Self { folder, todo, temp } = *self;
        let found = folder.publish(temp, todo, hash, good)?;
        Ok(Stored { sealed: found.unwrap_or(written), copy: None })
    }
}
