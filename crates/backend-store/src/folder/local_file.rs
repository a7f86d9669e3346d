//! An open file of the folder.

use crate::payload_files::PayloadFile;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// An open file of the folder.
pub(super) struct LocalFile {
    file: File,
    len: u64,
}

impl LocalFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }
}

impl PayloadFile for LocalFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(out)
    }
}
