//! A copy of a store.

use super::Maintenance;
use crate::Error;
use crate::audit::AuditLog;
use foldback_kv::Error as KvError;
use std::path::Path;

impl Maintenance<'_> {
    /// Writes a consistent copy of the store into `dir`, which must be empty or new. Others may
    /// go on writing meanwhile; the copy is of one moment. Indexes are not copied: they come back
    /// by themselves.
    ///
    /// Only a todo that is forgotten meanwhile may be there by half: its records, and not the files
    /// of its large payloads. `verify` of the copy names those; forget the todo there too.
    ///
    /// # Errors
    /// When a file cannot be written; then `dir` holds no store that opens.
    pub fn backup(self, dir: &Path) -> Result<(), Error> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| Error::from(KvError::Io { doing, path, source })
        };
        if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(KvError::NotEmpty { path: dir.to_owned() }.into());
        }
        // The copy gets its name when it is whole.
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let partial = dir.with_file_name(format!(".{name}.partial-{}", std::process::id()));
        let copied = self.copy_into(&partial).and_then(|()| {
            std::fs::rename(&partial, dir).map_err(failed("finish the backup in", dir))
        });
        if copied.is_err() {
            // What is left of a failed copy is of no use; that it cannot be removed is no news.
            drop(std::fs::remove_dir_all(&partial));
        }
        copied?;
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let synced = std::fs::File::open(parent).and_then(|folder| folder.sync_all());
        synced.map_err(failed("make durable", parent))
    }

    fn copy_into(self, dir: &Path) -> Result<(), Error> {
        self.memory.kv.backup(dir)?;
        // Payload files never change, and each is there before the record that names it and until
        // that is gone: copied after the records, none is missing.
        self.memory.payloads.backup(&dir.join("payloads"))?;
        // The records know how far the log goes at least: copied after them, it goes that far.
        AuditLog::of(self.memory).copy_into(dir)
    }
}
