//! The place of an open file, to check whether its path still leads to that file.
//!
//! A file that was deleted, moved or replaced can still be written while it is open, but what is written can never
//! be found again.

use std::io;
use std::path::{Path, PathBuf};

/// A path, and the file that it led to.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    file: Option<FileId>,
}

impl Place {
    /// Remembers the file that the path leads to now; if there is none, the first one that is found there.
    pub(crate) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), file: FileId::of(path).ok() }
    }

    /// Remembers the first file that is found at the path.
    #[cfg(feature = "sqlite")]
    pub(crate) fn yet_to_be(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Returns whether the path still leads to the same file.
    pub(crate) fn is_kept(&mut self) -> bool {
        let Ok(found) = FileId::of(&self.path) else { return false };
        *self.file.get_or_insert(found) == found
    }

    /// Replaces the remembered file with the one that the path leads to now.
    #[cfg(any(feature = "redb", feature = "sled"))]
    pub(crate) fn renew(&mut self) {
        self.file = FileId::of(&self.path).ok();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    #[cfg(unix)]
    fn of(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let found = std::fs::metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }

    /// On systems where files have no numbers, only the existence of a file is known.
    #[cfg(not(unix))]
    fn of(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|_| Self { device: 0, inode: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_was_replaced_has_lost_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "1").unwrap();
        fs::write(&other, "1").unwrap();
        let held = fs::File::open(&path).unwrap();
        let mut place = Place::of(&path);
        assert!(place.is_kept());
        fs::write(&path, "more").unwrap();
        assert!(place.is_kept(), "it is the same file");
        fs::rename(&other, &path).unwrap();
        assert!(!place.is_kept());
        fs::remove_file(&path).unwrap();
        assert!(!place.is_kept());
        drop(held);
        // A missing file does not count; the first one that appears does.
        let mut place = Place::of(&path);
        assert!(!place.is_kept());
        fs::write(&path, "1").unwrap();
        assert!(place.is_kept());
        fs::write(&other, "1").unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!place.is_kept());
    }
}
