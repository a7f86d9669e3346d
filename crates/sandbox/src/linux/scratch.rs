//! A folder for a single run.

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, fstat, openat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::CString;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use tempfile::TempDir;

/// A folder for a single run, by the kernel's path for it. It is removed with everything in it.
pub(super) struct Scratch(TempDir);

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir().canonicalize()?;
        tempfile::Builder::new().prefix("sandbox-").tempdir_in(folder).map(Self)
    }
}

impl Deref for Scratch {
    type Target = TempDir;

    fn deref(&self) -> &TempDir {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays: nobody is left to be informed.
        let _ = empty(self.0.path());
    }
}

/// Removes the contents of a folder, however deep it is: with one folder open at a time, and with no path longer than a
/// name. No link is followed.
fn empty(folder: &Path) -> Result<(), Errno> {
    let mut here = enter(CWD, folder)?;
    let mut above = Vec::new();
    loop {
        if let Some(name) = first_folder(&here)? {
            let inner = enter(here.as_fd(), name.as_c_str())?;
            above.push((name, which(&here)?));
            here = inner;
        } else if let Some((name, outer)) = above.pop() {
            here = enter(here.as_fd(), "..")?;
            if which(&here)? != outer {
                // Somebody has moved it: what is here now does not belong to this run.
                return Err(Errno::XDEV);
            }
            unlinkat(&here, &name, AtFlags::REMOVEDIR)?;
        } else {
            return Ok(());
        }
    }
}

/// Opens a folder, and makes it writable for its owner: a command may have forbidden that.
fn enter(at: BorrowedFd<'_>, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let found = openat(at, name, flags | OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)?;
    openat(&found, ".", flags | OFlags::RDONLY, Mode::empty())
}

fn which(folder: &OwnedFd) -> Result<(u64, u64), Errno> {
    fstat(folder).map(|known| (known.st_dev, known.st_ino))
}

/// Removes everything except folders, until there is a folder.
fn first_folder(here: &OwnedFd) -> Result<Option<CString>, Errno> {
    for entry in Dir::read_from(here)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        match unlinkat(here, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ISDIR) => return Ok(Some(name.to_owned())),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
