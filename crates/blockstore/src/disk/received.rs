//! The files of an index on their way from one folder to another.

use super::writer::index_error;
use super::{DiskIndex, Folder, Lock};
use crate::Error;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;

/// A file of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexFile {
    /// Its path below the index's folder, with `/`.
    pub(crate) name: String,
    /// How many of its bytes belong to the index, from the first one on.
    pub(crate) bytes: u64,
    pub(crate) changes: Changes,
}

/// How a file changes when the index grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// At its end alone.
    Grows,
    Never,
    IsReplaced,
}

const VECTORS: &str = "vectors.i8";
/// The file that makes an index valid.
const META: &str = "tantivy/meta.json";
/// tantivy's list of the files that it removes once they are merged.
const MANAGED: &str = "tantivy/.managed.json";

impl Folder {
    /// Returns the files of the index in the folder, which is this one. The caller holds its lock. A graph is not among
    /// them.
    pub(crate) fn index_files(&self, disk: &DiskIndex) -> Result<Vec<IndexFile>, Error> {
        let metas = self.open_index().and_then(|index| index.load_metas());
        let metas = metas.map_err(|error| index_error(self, "read", &error))?;
        let segments = metas.list_segment_files().into_iter();
        let mut names: Vec<String> =
            segments.filter_map(|path| Some(format!("tantivy/{}", path.to_str()?))).collect();
        names.sort();
        let vectors = (VECTORS.to_owned(), Changes::Grows);
        let others = [MANAGED, META].map(|name| (name.to_owned(), Changes::IsReplaced));
        let all = names.into_iter().map(|name| (name, Changes::Never));
        let mut files = Vec::new();
        for (name, changes) in std::iter::once(vectors).chain(all).chain(others) {
            let bytes = match fs::metadata(self.root().join(&name)) {
                Ok(_) if changes == Changes::Grows => disk.manifest.vector_bytes,
                Ok(found) => found.len(),
                // A segment need not have every file that it may have.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(index_error(self, "read", &error)),
            };
            files.push(IndexFile { name, bytes, changes });
        }
        Ok(files)
    }
}

/// An index that is being received, in a folder beside the one whose place it takes.
pub(crate) struct Received<'a> {
    folder: &'a Folder,
    root: PathBuf,
}

impl<'a> Received<'a> {
    /// Makes room for it. The caller holds the folder's lock.
    pub(crate) fn begin(_lock: &'a Lock, folder: &'a Folder) -> std::io::Result<Self> {
        let root = folder.root().join("new");
        match fs::remove_dir_all(&root) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(root.join("tantivy"))?,
        }
        Ok(Self { folder, root })
    }

    /// Creates a file by its name, which must be one that a file of an index may have.
    pub(crate) fn create(&self, name: &str) -> std::io::Result<File> {
        let is_plain = |name: &str| {
            let is_known = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
            name.chars().all(is_known) && name.chars().any(|c| c != '.')
        };
        let is_known = name == VECTORS || name.strip_prefix("tantivy/").is_some_and(is_plain);
        if !is_known {
            let what = format!("an index has no file {name:?}");
            return Err(std::io::Error::new(ErrorKind::InvalidData, what));
        }
        File::create(self.root.join(name))
    }

    /// Puts the files, which are whole, in the place of those in the folder. What is read from these meanwhile stays
    /// readable.
    pub(crate) fn finish(self, files: &[File]) -> std::io::Result<()> {
        sync_all(files)?;
        // Without this file there is no index.
        let meta = self.folder.root().join(META);
        remove(&meta)?;
        remove(&self.folder.graph())?;
        let kept = self.root.join("meta.json");
        fs::rename(self.root.join(META), &kept)?;
        let tantivy = self.folder.tantivy();
        remove(&tantivy)?;
        fs::rename(self.root.join("tantivy"), tantivy)?;
        let vectors = self.root.join(VECTORS);
        if vectors.exists() {
            fs::rename(vectors, self.folder.vectors())?;
        }
        self.folder.sync()?;
        foldback_core::failpoint!("blockstore.copy.received");
        fs::rename(kept, meta)
    }
}

impl Drop for Received<'_> {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.root));
    }
}

/// Makes files durable. Some of them wait for the disk together.
fn sync_all(files: &[File]) -> std::io::Result<()> {
    files.chunks(16).try_for_each(|files| {
        thread::scope(|scope| {
            let synced: Vec<_> = files.iter().map(|file| scope.spawn(|| file.sync_all())).collect();
            synced.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    })
}

fn remove(path: &Path) -> std::io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
