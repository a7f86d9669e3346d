//! The space left on a disk.

use crate::SandboxError;
use rustix::fs::statvfs;
use std::path::Path;

/// The number of files that it must still be possible to create.
const FILES: u64 = 1_000;

/// Checks that there is enough space to begin with.
///
/// # Errors
/// [`SandboxError::Room`].
pub(super) fn check(path: &Path, needed: u64) -> Result<(), SandboxError> {
    match left(path) {
        Some((bytes, files)) if bytes < needed || files < FILES => {
            let path = path.to_owned();
            Err(SandboxError::Room { path, bytes, needed, files })
        }
        _ => Ok(()),
    }
}

/// Whether less than this is left on a file system, or hardly another file can be created.
pub(super) fn is_short(path: &Path, needed: u64) -> bool {
    check(path, needed).is_err()
}

/// The bytes and files left. If files are not counted, there is no limit on them.
fn left(path: &Path) -> Option<(u64, u64)> {
    let at = statvfs(path).ok()?;
    let files = if at.f_files > 0 { at.f_favail } else { u64::MAX };
    Some((at.f_bavail.saturating_mul(at.f_frsize), files))
}
