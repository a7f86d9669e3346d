//! Replacing a file, all of it or nothing.

use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Replaces a file with one of this content. It keeps its permissions, and its owner and group where the system
/// allows that.
///
/// # Errors
/// When the system does not allow it, or the file there is read-only.
pub(super) fn replace(dir: &Dir, within: &Path, content: &[u8]) -> io::Result<()> {
    let parent = within.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        dir.create_dir_all(parent)?;
    }
    let old = dir.symlink_metadata(within).ok().filter(Metadata::is_file);
    if let Some(old) = &old {
        check_writable(dir, within, old)?;
    }
    // A name that nobody else uses; if a file has it all the same, that file is not touched.
    let name = format!(".foldback-{:016x}.tmp", RandomState::new().hash_one(within));
    let temporary = parent.map_or_else(|| PathBuf::from(&name), |parent| parent.join(&name));
    let mut file = dir.open_with(&temporary, OpenOptions::new().write(true).create_new(true))?;
    let mut write = || {
        if let Some(old) = &old {
            // A change of the owner may take permissions away, so they come after it.
            give_to_owner(&file, old);
            file.set_permissions(old.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        dir.rename(&temporary, dir, within)
    };
    write().inspect_err(|_| {
        // No temporary file is left; the first error is the one to report.
        let _ = dir.remove_file(&temporary);
    })
}

/// Checks that the file itself may be written. A rename needs no such right, but a file that is read-only is meant
/// to stay as it is, also where the user is root.
fn check_writable(dir: &Dir, within: &Path, old: &Metadata) -> io::Result<()> {
    if old.permissions().readonly() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    match dir.open_with(within, OpenOptions::new().write(true)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        // A program that runs cannot be opened for writing and can be replaced.
        _ => Ok(()),
    }
}

/// Gives a file to the owner and the group of the one that it replaces. Most users may give files only to their own
/// groups, so a failure changes nothing.
#[cfg(unix)]
fn give_to_owner(file: &File, old: &Metadata) {
    use cap_std::fs::MetadataExt;
    let is_theirs = |new: Metadata| (new.uid(), new.gid()) == (old.uid(), old.gid());
    if file.metadata().is_ok_and(is_theirs) {
        return;
    }
    if std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        let _ = std::os::unix::fs::fchown(file, None, Some(old.gid()));
    }
}

#[cfg(not(unix))]
fn give_to_owner(_file: &File, _old: &Metadata) {}
