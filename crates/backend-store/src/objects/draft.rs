//! A payload's file before it is put.

use super::object_name::random;
use super::{Objects, PutLately};
use crate::Error;
use crate::payload_files::{Draft, FileName, Good, Sealed, Stored};
use object_store::PutPayload;
use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::path::PathBuf;
use std::time::Instant;

/// Files of up to this size are put with one request. Larger ones are put in parts of at least this size.
pub(super) const PART: usize = 8 << 20;

/// A payload's file before it is put. Its name follows from its contents, which are complete only at its end: so it
/// waits in memory, or, if it is large, in a file without a name.
pub(super) struct ObjectDraft<'a> {
    objects: &'a Objects,
    todo: u32,
    waiting: Waiting,
}

enum Waiting {
    InMemory(Vec<u8>),
    OnDisk(File),
}

impl<'a> ObjectDraft<'a> {
    pub(super) fn new(objects: &'a Objects, todo: u32) -> Self {
        Self { objects, todo, waiting: Waiting::InMemory(Vec::new()) }
    }

    /// Creates a file without a name, which is gone when the process ends.
    fn scratch(&self) -> io::Result<File> {
        match &self.objects.scratch {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        }
    }
}

impl Write for ObjectDraft<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.waiting {
            Waiting::InMemory(waiting) if waiting.len() + bytes.len() <= PART => {
                waiting.extend_from_slice(bytes);
                return Ok(bytes.len());
            }
            Waiting::OnDisk(file) => return file.write(bytes),
            Waiting::InMemory(_) => {}
        }
        let mut file = self.scratch()?;
        if let Waiting::InMemory(waiting) = &self.waiting {
            file.write_all(waiting)?;
        }
        file.write_all(bytes)?;
        self.waiting = Waiting::OnDisk(file);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Draft for ObjectDraft<'_> {
    fn address(&self) -> PathBuf {
        self.objects.client.address(&self.objects.client.todo(self.todo))
    }

    fn put_if_absent(
        self: Box<Self>,
        hash: &[u8; 32],
        written: Sealed,
        _good: Good<'_>,
    ) -> Result<Stored, Error> {
        let address = self.address();
        let Self { objects, todo, waiting } = *self;
        if let Some(stored) = objects.put_lately(todo, hash)? {
            return Ok(stored);
        }
        let copy = random().map_err(|error| Error::io("name a file at", &address, error))?;
        let name = FileName { todo, hash: *hash, copy: Some(copy) };
        let begun = Instant::now();
        let tag = match waiting {
            Waiting::InMemory(bytes) => {
                let bytes = PutPayload::from(bytes);
                objects.client.put_new(&objects.client.path(&name), bytes)?
            }
            Waiting::OnDisk(mut file) => {
                file.rewind().map_err(|error| Error::io("read what goes to", &address, error))?;
                objects.client.upload(&name, file, written.stored)?
            }
        };
        let stored = Stored { sealed: written, copy: Some(copy) };
        objects.remember(todo, hash, PutLately { stored, tag, begun });
        Ok(stored)
    }
}
