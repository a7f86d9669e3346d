//! Opens plain files and folders, never what a link points to.

use crate::Error;
use std::fs;
use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Opens a plain file, and never what a link points to. `None` when there is none.
pub(super) fn open_file(path: &Path, options: &OpenOptions) -> Result<Option<File>, Error> {
    let refuse = |what| Err(Error::Refused { path: path.to_owned(), what });
    let before = match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return refuse("it is a link or not a plain file"),
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("look at", path, error)),
    };
    match options.open(path) {
        // It may have become a link between the check and the opening.
        Ok(file) if !same_file(&file, &before) => refuse("it changed while it was opened"),
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("open", path, error)),
    }
}

#[cfg(unix)]
pub(super) fn same_file(file: &File, found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|opened| (opened.dev(), opened.ino()) == (found.dev(), found.ino()))
}

#[cfg(not(unix))]
pub(super) fn same_file(file: &File, found: &Metadata) -> bool {
    found.is_file() && file.metadata().is_ok_and(|opened| opened.is_file())
}

pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

pub(super) fn real_folder(path: &Path, found: &Metadata) -> Result<(), Error> {
    if found.is_dir() {
        Ok(())
    } else {
        Err(Error::Refused { path: path.to_owned(), what: "it is a link or not a folder" })
    }
}

/// Returns whether there is a folder. A link is an error.
pub(super) fn is_real_folder(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Ok(found) => real_folder(path, &found).map(|()| true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("look at", path, error)),
    }
}

/// Returns the entries of a folder, by name; links are not followed. Names that are not Unicode are
/// not from this store and are left out, as is anything that vanishes meanwhile; if that is the
/// folder itself, as when its todo is forgotten, there are no entries.
pub(super) fn list(folder: &Path) -> Result<Vec<(PathBuf, String, Metadata)>, Error> {
    let wrong = |error| Error::io("list", folder, error);
    let mut out = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(out),
        entries => entries.map_err(wrong)?,
    };
    for entry in entries {
        let entry = entry.map_err(wrong)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        match fs::symlink_metadata(entry.path()) {
            Ok(found) => out.push((entry.path(), name, found)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("look at", entry.path(), error)),
        }
    }
    out.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(out)
}

pub(super) fn older(
    path: &Path,
    found: &Metadata,
    age: Duration,
    now: SystemTime,
) -> Result<bool, Error> {
    let modified = found.modified().map_err(|error| Error::io("look at", path, error))?;
    // A file with a time in the future counts as young.
    Ok(now.duration_since(modified).is_ok_and(|been| been >= age))
}

pub(super) fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("remove", path, error)),
    }
}

pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    #[cfg(unix)]
    File::open(folder)
        .and_then(|opened| opened.sync_all())
        .map_err(|error| Error::io("sync", folder, error))?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
