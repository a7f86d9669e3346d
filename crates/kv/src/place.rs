//! The place of an open file: whether its path still leads to it.
//!
//! A file that was deleted, moved or replaced can be written for as long as it is open, and nothing of that is ever
//! found again.

use std::io;
use std::path::{Path, PathBuf};

/// A path, and the file that it led to.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    file: Option<FileId>,
}

impl Place {
    /// What the path leads to now; where there is nothing, the first that is found there.
    pub(crate) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), file: FileId::of(path).ok() }
    }

    /// What is found first where the path leads.
    #[cfg(feature = "sqlite")]
    pub(crate) fn yet_to_be(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Whether the path leads to the same file.
    pub(crate) fn is_kept(&mut self) -> bool {
        let Ok(found) = FileId::of(&self.path) else { return false };
        *self.file.get_or_insert(found) == found
    }

    /// Forgets the file for the one that the path leads to now.
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

    /// Where files have no numbers, only that there is one is known.
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
        // Nothing is no file, and the first that comes counts.
        let mut place = Place::of(&path);
        assert!(!place.is_kept());
        fs::write(&path, "1").unwrap();
        assert!(place.is_kept());
        fs::write(&other, "1").unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!place.is_kept());
    }
}
