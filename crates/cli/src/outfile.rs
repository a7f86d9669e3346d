//! A file that appears only once it is complete.

use crate::error::CliError;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file through a temporary one beside it, so that nobody ever sees part of it and the old contents stay until
/// the new ones are complete. A replaced file keeps its permissions, and a new one gets the usual ones; a link stays,
/// and its target is written. Anything other than a plain file (a pipe, a device) is written to directly.
pub(crate) fn write<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn io::Write) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let failed =
        |source| CliError::Io { what: format!("{} could not be written", path.display()), source };
    if path == Path::new("-") {
        let what = "- is not a file; name a file (for a file named -, write ./-)";
        return Err(CliError::Usage(what.to_owned()));
    }
    let found = path.metadata().ok();
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path).map_err(failed)?);
        let filled = fill(&mut out)?;
        out.flush().map_err(failed)?;
        return Ok(filled);
    }
    let path = target(path).map_err(failed)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let permissions = found.map(|found| found.permissions());
    let mut file = beside(folder, permissions.is_none()).map_err(failed)?;
    let mut out = BufWriter::new(file.as_file_mut());
    let filled = fill(&mut out)?;
    out.flush().map_err(failed)?;
    drop(out);
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    // A crash may lose the name but never leaves half a file; some systems cannot sync a folder.
    drop(File::open(folder).and_then(|folder| folder.sync_all()));
    Ok(filled)
}

/// Creates a temporary file in the folder, either private or with the permissions of any new file.
fn beside(folder: &Path, is_public: bool) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    if is_public {
        // The process's umask applies, as it does to the user's other files.
        builder.permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Follows the links of `path`, even if nothing exists at their end yet.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // The limit that systems use.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of links"))
}
