//! The files of tantivy, sealed whole: read into memory when they are opened, and written when they are finished.

use super::sealing::Sealing;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, OwnedBytes,
    TerminatingWrite, WatchCallback, WatchHandle, WritePtr,
};

#[derive(Clone, Debug)]
pub(crate) struct SealedDirectory {
    inner: MmapDirectory,
    sealing: Sealing,
}

impl SealedDirectory {
    pub(crate) fn new(inner: MmapDirectory, sealing: Sealing) -> Self {
        Self { inner, sealing }
    }

    fn opened(&self, path: &Path, sealed: &[u8]) -> Result<Vec<u8>, OpenReadError> {
        let wrong = || {
            let error = io::Error::new(io::ErrorKind::InvalidData, "its file cannot be decrypted");
            OpenReadError::wrap_io_error(error, path.to_owned())
        };
        self.sealing.open(&path.display(), sealed).ok_or_else(wrong)
    }
}

impl Directory for SealedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let sealed = self.inner.open_read(path)?.read_bytes();
        let sealed =
            sealed.map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()))?;
        Ok(Arc::new(OwnedBytes::new(self.opened(path, &sealed)?)))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let out = Some(self.inner.open_write(path)?);
        let (path, sealing) = (path.to_owned(), self.sealing.clone());
        Ok(io::BufWriter::new(Box::new(Sealer { out, path, sealing, bytes: Vec::new() })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.opened(path, &self.inner.atomic_read(path)?)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, &self.sealing.seal(&path.display(), data)?)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}

/// A file that is being written, in memory.
struct Sealer {
    out: Option<WritePtr>,
    path: PathBuf,
    sealing: Sealing,
    bytes: Vec<u8>,
}

impl Write for Sealer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Sealer {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let Some(mut out) = self.out.take() else { return Ok(()) };
        let sealed = self.sealing.seal(&self.path.display(), &self.bytes)?;
        self.bytes = Vec::new();
        out.write_all(&sealed)?;
        out.terminate()
    }
}
