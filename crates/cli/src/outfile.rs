//! A file that appears when it is whole.

use crate::error::CliError;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// Writes a file by way of a temporary one beside it, so that nobody ever sees a part of it, and
/// what was there before stays until then. What is no plain file (a pipe, a device) is written to as
/// it is.
pub(crate) fn write<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn io::Write) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let failed =
        |source| CliError::Io { what: format!("{} could not be written", path.display()), source };
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path).map_err(failed)?);
        let filled = fill(&mut out)?;
        out.flush().map_err(failed)?;
        return Ok(filled);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    let mut out = BufWriter::new(file.as_file_mut());
    let filled = fill(&mut out)?;
    out.flush().map_err(failed)?;
    drop(out);
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(filled)
}
