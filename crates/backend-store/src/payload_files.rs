//! The port to where the files of large payloads are kept: a folder, or an object store.

use crate::Error;
use crate::folder::Folder;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Where the files of large payloads are kept. A file is written once, under a name that follows from its contents,
/// and never changes.
///
/// Every implementation passes `payload_files::conformance`.
pub(crate) trait PayloadFiles: Send + Sync {
    /// Returns what a person looks for to find this file: a path, or an address.
    fn address(&self, name: &FileName) -> PathBuf;

    /// Begins a file of a todo. It has no name until it is put, and leaves nothing behind if it is dropped.
    fn draft(&self, todo: u32) -> Result<Box<dyn Draft + '_>, Error>;

    /// Opens a file, if there is one.
    fn open(&self, name: &FileName) -> Result<Option<Box<dyn PayloadFile>>, Error>;

    /// Copies a file into a folder, durably. Returns whether there is one.
    fn copy(&self, name: &FileName, to: &Folder) -> Result<bool, Error> {
        let Some(file) = self.open(name)? else { return Ok(false) };
        match copy_part_by_part(file, name, to) {
            Ok(()) => Ok(true),
            // It may have been removed meanwhile.
            Err(error) => match self.open(name) {
                Ok(None) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Returns the names of a todo's files, ascending. Unfinished ones have no name.
    fn list(&self, todo: u32) -> Result<Vec<FileName>, Error>;

    /// Removes what was last written at least `age` before `now`: unfinished files, and those that are not `wanted`.
    /// Returns how many.
    ///
    /// `wanted` was read after `now`. A file that is put within `age` of the commit that names it is never removed:
    /// either it is younger than `age`, or it was committed before `wanted` was read. An implementation may wait for
    /// a greater age.
    fn sweep(
        &self,
        todo: u32,
        age: Duration,
        now: SystemTime,
        wanted: &dyn Fn(&FileName) -> bool,
    ) -> Result<u64, Error>;

    /// Removes everything of a todo, unfinished files too.
    fn forget(&self, todo: u32) -> Result<(), Error>;

    /// Returns the numbers of the todos that have any files, ascending.
    fn todos(&self) -> Result<Vec<u32>, Error>;

    /// Marks the place as that of a store, so that it is recognised even under another address.
    #[cfg(feature = "objects")]
    fn claim(&self) -> Result<(), Error>;

    /// Returns whether the place is marked.
    #[cfg(feature = "objects")]
    fn is_claimed(&self) -> Result<bool, Error>;
}

/// A file that is being written.
pub(crate) trait Draft: Write {
    /// Returns where it is being written, for messages.
    fn address(&self) -> PathBuf;

    /// Makes the written file durable under the name that follows from `hash`, unless there is one that can be used
    /// in its place: then that one stays. `good` reads such a file and returns its seal, if it is whole.
    ///
    /// When this returns, the file and its name survive a loss of power, and no sweep that waits for the required age
    /// removes the file.
    fn put_if_absent(
        self: Box<Self>,
        hash: &[u8; 32],
        written: Sealed,
        good: Good<'_>,
    ) -> Result<Stored, Error>;
}

/// Reads a file that exists already, and returns its seal if it is whole.
pub(crate) type Good<'a> = &'a mut dyn FnMut(Box<dyn PayloadFile>) -> Option<Sealed>;

/// An open file.
pub(crate) trait PayloadFile: Send {
    /// Returns its length in bytes.
    fn len(&self) -> u64;

    /// Fills `out` with the bytes from `at` on. [`io::ErrorKind::UnexpectedEof`] where the file ends before that.
    fn read_at(&mut self, at: u64, out: &mut [u8]) -> io::Result<()>;
}

/// The name of a payload's file. No text that a model or a user wrote is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileName {
    /// The number of the todo.
    pub(crate) todo: u32,
    /// The hash of the payload's bytes; in an encrypted store a keyed digest of it.
    pub(crate) hash: [u8; 32],
    /// Which of several writings it is, where each has a name of its own.
    pub(crate) copy: Option<CopyId>,
}

/// The random part of an object's name. A name that has one is written once.
pub(crate) type CopyId = [u8; 16];

/// What identifies the bytes of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// See the `file` module.
    pub(crate) seal: [u8; 32],
    /// The file's length.
    pub(crate) stored: u64,
}

/// The file that a payload has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) sealed: Sealed,
    pub(crate) copy: Option<CopyId>,
}

/// Copies an open file into a folder under this name, part by part.
fn copy_part_by_part(
    mut from: Box<dyn PayloadFile>,
    name: &FileName,
    to: &Folder,
) -> Result<(), Error> {
    let mut draft = to.draft(name.todo)?;
    let address = draft.address();
    let len = from.len();
    let mut buffer = vec![0; usize::try_from(len).unwrap_or(STEP).min(STEP)];
    let mut at = 0;
    while at < len {
        let room = usize::try_from(len - at).unwrap_or(STEP).min(buffer.len());
        let part = buffer.get_mut(..room).unwrap_or_default();
        from.read_at(at, part).map_err(|error| Error::io("read", &address, error))?;
        draft.write_all(part).map_err(|error| Error::io("write", &address, error))?;
        at += part.len() as u64;
    }
    // What is there already is replaced. The seal is in the record.
    let sealed = Sealed { seal: [0; 32], stored: len };
    draft.put_if_absent(&name.hash, sealed, &mut |_| None).map(drop)
}

/// How many bytes are copied at once.
const STEP: usize = 1 << 20;

#[cfg(test)]
pub(crate) mod conformance;
