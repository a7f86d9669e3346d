//! The folders that file tools reach.

mod git;
mod likely;
mod replace;
#[cfg(test)]
mod tests;

use crate::{Permissions, PermissionsError, Refused};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use foldback_core::beginning;
use foldback_tool::ToolError;
use parking_lot::{Mutex, MutexGuard};
use replace::replace;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// The folders that file tools reach, held open.
///
/// Whatever a path says, nothing outside of them is opened: links and `..` are followed first, the place
/// they lead to is located in one of the folders, and then it is opened from the handle of that folder. The
/// handle allows no way out, even when a link was put there meanwhile.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder that relative paths start from.
    base: Option<PathBuf>,
    roots: Vec<Root>,
    writing: Mutex<()>,
}

/// A folder that may be used.
#[derive(Debug)]
struct Root {
    /// Its path, free of links.
    path: PathBuf,
    dir: Dir,
    is_writable: bool,
}

/// The kind of access to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading.
    Read,
    /// Writing.
    Write,
}

/// Where a path leads: into one of the folders.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    root: &'a Root,
    /// The path from the folder, free of links; empty for the folder itself.
    within: PathBuf,
    /// The path as a model reads it: relative inside the workspace, otherwise absolute.
    pub(crate) shown: String,
}

impl Workspace {
    /// Opens the folders that the permissions name.
    ///
    /// # Errors
    /// When one of them is relative and there is no workspace, or cannot be opened.
    pub(crate) fn open(permissions: &Permissions) -> Result<Self, PermissionsError> {
        let files = &permissions.files;
        let readable = files.read.iter().map(|folder| (folder, false));
        let writable = files.write.iter().map(|folder| (folder, true));
        let mut roots = Vec::new();
        for (folder, is_writable) in readable.chain(writable) {
            let folder = permissions.folder(folder)?;
            let path = real(&folder)?;
            let dir = Dir::open_ambient_dir(&path, ambient_authority())
                .map_err(|source| PermissionsError::Folder { path: folder, source })?;
            roots.push(Root { path, dir, is_writable });
        }
        let base = match &permissions.workspace {
            Some(folder) => Some(real(folder)?),
            None => None,
        };
        Ok(Self { base, roots, writing: Mutex::new(()) })
    }

    /// Resolves a path that a model gave.
    ///
    /// # Errors
    /// When it is not a path, or leads out of the folders that may be read or written.
    pub(crate) fn place(&self, asked: &str, access: Access) -> Result<Place<'_>, ToolError> {
        let path = self.absolute(asked)?;
        let mut is_led_out = false;
        let mut place = PathBuf::new();
        for component in path.components() {
            match component {
                Component::Prefix(_) | Component::RootDir => place.push(component),
                Component::CurDir => {}
                // The path so far is free of links.
                Component::ParentDir => drop(place.pop()),
                Component::Normal(name) => {
                    let next = place.join(name);
                    place = match std::fs::canonicalize(&next) {
                        Ok(found) => {
                            is_led_out |= self.root(&next, Access::Read).is_some()
                                && self.root(&found, Access::Read).is_none();
                            found
                        }
                        Err(_) if self.root(&next, Access::Read).is_none() => next,
                        Err(error) if error.kind() == ErrorKind::NotFound => {
                            if std::fs::symlink_metadata(&next).is_ok() {
                                return Err(ToolError::permanent(format!(
                                    "{asked} cannot be used: it goes through a link that leads nowhere"
                                )));
                            }
                            self.same_name(&place, name).unwrap_or(next)
                        }
                        Err(error) => return Err(failed(asked, &error)),
                    };
                }
            }
        }
        let way = if is_led_out { LED_OUT } else { "" };
        let refused = || self.refused(asked, access, way);
        let root = self.root(&place, access).ok_or_else(refused)?;
        let within = place.strip_prefix(&root.path).map_err(|_| refused())?.to_owned();
        if access == Access::Write
            && let Some(way) = self.of_git(&path, root, &within)
        {
            return Err(self.refused(asked, access, way));
        }
        Ok(Place { root, within, shown: self.shown(&place) })
    }

    /// Takes the lock for writing, so that nobody else here writes between reading a file and writing it.
    pub(crate) fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
    }

    /// Returns the absolute form of the path that was asked for.
    fn absolute(&self, asked: &str) -> Result<PathBuf, ToolError> {
        let hint = if asked.is_empty() {
            "a path was expected, but it is empty; \".\" is the workspace"
        } else if asked.contains('\0') {
            "a path has no NUL character"
        } else if asked == "~" || asked.starts_with("~/") {
            "~ is not a folder here; give a path from the workspace on, or one that \
             begins with /"
        } else if asked.starts_with("file:/") {
            "this is a URL; give the path alone"
        } else if asked.len() > LONGEST_PATH {
            "the path is longer than 4,096 bytes"
        } else if let Some(base) = &self.base {
            return Ok(base.join(asked));
        } else if Path::new(asked).is_absolute() {
            return Ok(asked.into());
        } else {
            "there is no workspace; give a path that begins with /"
        };
        Err(ToolError::arguments(format!("{:?} cannot be used: {hint}", shortened(asked))))
    }

    /// Returns the innermost folder around a path, if it allows this access. A folder in both lists is writable.
    fn root(&self, path: &Path, access: Access) -> Option<&Root> {
        let around = self.roots.iter().filter(|root| path.starts_with(&root.path));
        around
            .max_by_key(|root| (root.path.as_os_str().len(), root.is_writable))
            .filter(|root| access == Access::Read || root.is_writable)
    }

    /// Returns the entry of a folder that has this name in another Unicode normal form: an e with an
    /// accent may be one character or two.
    fn same_name(&self, folder: &Path, name: &OsStr) -> Option<PathBuf> {
        let wanted = name.to_str().filter(|name| !name.is_ascii())?;
        let root = self.root(folder, Access::Read)?;
        let dir = open_folder(&root.dir, folder.strip_prefix(&root.path).ok()?).ok()?;
        let mut same: Vec<_> = dir
            .entries()
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.nfc().eq(wanted.nfc()))
            .collect();
        same.sort();
        let found = folder.join(same.first()?);
        // A link of that name is followed like any other.
        std::fs::canonicalize(&found).ok()
    }

    /// Returns the refusal of a path; `way` says what is special about it.
    fn refused(&self, asked: &str, access: Access, way: &str) -> ToolError {
        let doing = if access == Access::Read { "reading" } else { "writing" };
        let usable = self.roots.iter().filter(|root| access == Access::Read || root.is_writable);
        let mut folders: Vec<_> = usable.map(|root| self.shown(&root.path)).collect();
        folders.sort();
        folders.dedup();
        let but = if access == Access::Write { " but .git" } else { "" };
        let folders = folders.into_iter().map(|folder| match folder.as_str() {
            "." => format!("everything in the workspace{but}"),
            _ => format!("everything in {folder}{but}"),
        });
        let what = format!("{doing} {}{way}", shortened(asked));
        Refused { what, permitted: Refused::list(folders) }.into()
    }

    fn shown(&self, path: &Path) -> String {
        let inner = self.base.as_ref().and_then(|base| path.strip_prefix(base).ok());
        match inner {
            Some(inner) if inner.as_os_str().is_empty() => ".".to_owned(),
            Some(inner) => inner.display().to_string(),
            None => path.display().to_string(),
        }
    }
}

impl Place<'_> {
    /// Returns whether something exists there.
    #[must_use]
    pub(crate) fn exists(&self) -> bool {
        self.within.as_os_str().is_empty() || self.root.dir.symlink_metadata(&self.within).is_ok()
    }

    /// Returns whether it is a folder.
    #[must_use]
    pub(crate) fn is_folder(&self) -> bool {
        let within = &self.within;
        within.as_os_str().is_empty()
            || self.root.dir.symlink_metadata(within).is_ok_and(|meta| meta.is_dir())
    }

    /// Returns its absolute path.
    #[must_use]
    pub(crate) fn path(&self) -> PathBuf {
        if self.within.as_os_str().is_empty() {
            self.root.path.clone()
        } else {
            self.root.path.join(&self.within)
        }
    }

    /// Returns the folders from the one that may be used down to this place, each with its path.
    pub(crate) fn above(&self) -> Vec<(PathBuf, Dir)> {
        let mut folders = Vec::new();
        let mut path = self.root.path.clone();
        let Ok(mut dir) = self.root.dir.try_clone() else { return folders };
        for component in self.within.components() {
            let Ok(next) = open_folder(&dir, component.as_ref()) else { break };
            folders.push((path.clone(), std::mem::replace(&mut dir, next)));
            path.push(component);
        }
        folders
    }

    /// Opens the folder.
    ///
    /// # Errors
    /// When it is not a folder, or the system does not allow it.
    pub(crate) fn open_folder(&self) -> Result<Dir, ToolError> {
        open_folder(&self.root.dir, &self.within).map_err(|error| self.missing(&error))
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// When it does not exist, is not a file, or the system does not allow it.
    pub(crate) fn open_file(&self) -> Result<File, ToolError> {
        if self.is_folder() {
            return Err(ToolError::permanent(format!(
                "{} is a folder; a file was expected. file_list shows what is in it.",
                self.shown
            )));
        }
        open_file(&self.root.dir, &self.within).map_err(|error| self.missing(&error))
    }

    /// Returns the error of a failed attempt to open it; if nothing is there, with the path that was likely meant.
    fn missing(&self, error: &io::Error) -> ToolError {
        let is_missing = error.kind() == ErrorKind::NotFound;
        match is_missing.then(|| self.likely()).flatten() {
            Some(likely) => ToolError::permanent(format!(
                "there is no {}; did you mean {}? file_list with a pattern finds files by name.",
                shortened(&self.shown),
                shortened(&likely)
            )),
            None => failed(&self.shown, error),
        }
    }

    /// Writes the file: all of it or nothing, even when the machine stops meanwhile. Missing folders are
    /// made. The permissions of a file that is replaced are kept, and its owner where the system allows that.
    ///
    /// # Errors
    /// When the system does not allow it, or the file there is read-only.
    pub(crate) fn write(&self, content: &[u8]) -> Result<(), ToolError> {
        if self.is_folder() {
            return Err(ToolError::permanent(format!(
                "{} is a folder; the path of a file was expected",
                self.shown
            )));
        }
        replace(&self.root.dir, &self.within, content).map_err(|error| failed(&self.shown, &error))
    }
}

/// What a refusal says of a path that a link leads out.
const LED_OUT: &str = ", which goes through a link that leads out of the workspace,";

/// The longest path that a Unix system accepts, in bytes.
const LONGEST_PATH: usize = 4_096;

/// Returns a folder's path without links.
fn real(folder: &Path) -> Result<PathBuf, PermissionsError> {
    std::fs::canonicalize(folder)
        .map_err(|source| PermissionsError::Folder { path: folder.to_owned(), source })
}

fn open_folder(dir: &Dir, within: &Path) -> io::Result<Dir> {
    if within.as_os_str().is_empty() { dir.try_clone() } else { dir.open_dir(within) }
}

/// Opens a regular file for reading and refuses anything else: a pipe would keep its reader waiting.
pub(crate) fn open_file(dir: &Dir, within: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    let file = dir.open_with(within, &options)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"))
}

/// Returns an error with what the system reported for a path, and what to do next.
pub(crate) fn failed(shown: &str, error: &io::Error) -> ToolError {
    let shown = shortened(shown);
    let message = match error.kind() {
        ErrorKind::NotFound => {
            format!("there is no {shown}. file_list with a pattern finds files by name.")
        }
        ErrorKind::NotADirectory => {
            format!("{shown} cannot be reached: a part of the path is a file, not a folder")
        }
        ErrorKind::PermissionDenied => {
            format!("the system does not allow the use of {shown}; leave it as it is")
        }
        ErrorKind::InvalidFilename => {
            format!("{shown} is not a valid name for a file here; give a shorter one")
        }
        _ => format!("{shown} cannot be used: {error}"),
    };
    ToolError::permanent(message)
}

/// Shortens a path for a sentence to as much as is needed to recognise it.
fn shortened(path: &str) -> Cow<'_, str> {
    beginning(path, LONGEST_SHOWN)
}

/// The most characters of a path in an error.
const LONGEST_SHOWN: usize = 200;
