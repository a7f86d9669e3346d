//! Which todos a search over all of them looks into.

use crate::error::CliError;
use crate::walk;
use foldback::Memory;
use std::path::Path;

/// Returns whether no todo is of this source with work in or below this folder.
pub(super) fn excludes_all(
    memory: &Memory,
    source: Option<&str>,
    folder: Option<&Path>,
) -> Result<bool, CliError> {
    if source.is_none() && folder.is_none() {
        return Ok(false);
    }
    for todo in walk::todos(memory) {
        // The origin of a todo that cannot be read is unknown.
        let origin = memory.conversations().info(&todo?).unwrap_or_default().origin;
        let is_meant = source.is_none_or(|source| origin.is_of_source(source))
            && folder.is_none_or(|folder| origin.is_in_folder(folder));
        if is_meant {
            return Ok(false);
        }
    }
    Ok(true)
}
