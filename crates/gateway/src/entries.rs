//! The entries of a ledger's file, in the order in which they were written.

use crate::ledger::Entry;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

/// The entries of a ledger's file. A line that is no entry is skipped: a process that was killed may have left part of
/// one. A line that is still being written is not read yet: the next call reads it once it is complete.
#[derive(Debug)]
pub struct Entries {
    file: BufReader<File>,
    start: u64,
    /// The byte after the last line that was read.
    end: u64,
}

impl Entries {
    /// Reads from this byte on, at which a line begins.
    pub(crate) fn open(path: &Path, from: u64) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        file.seek(SeekFrom::Start(from))?;
        Ok(Self { file, start: from, end: from })
    }

    /// Returns the byte at which the line of the last entry begins.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Goes on at this byte, at which a line begins.
    ///
    /// # Errors
    /// When there is no such place.
    pub fn go_to(&mut self, start: u64) -> io::Result<()> {
        // What is in the buffer is not read again.
        self.file.seek_relative(start.wrapping_sub(self.end).cast_signed())?;
        self.end = start;
        Ok(())
    }
}

impl Iterator for Entries {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if let Err(error) = self.file.read_until(b'\n', &mut line) {
                return Some(Err(error));
            }
            let length = line.len() as u64;
            let entry = serde_json::from_slice(&line).ok();
            if entry.is_none() && !line.ends_with(b"\n") {
                return self.file.seek_relative(-length.cast_signed()).err().map(Err);
            }
            self.start = self.end;
            self.end += length;
            if let Some(entry) = entry {
                return Some(Ok(entry));
            }
        }
    }
}
