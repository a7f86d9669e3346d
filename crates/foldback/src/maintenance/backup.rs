//! A copy of a store.

use super::Maintenance;
use super::partial_copy::{PartialCopy, failed};
use crate::Error;
use crate::audit::AuditLog;
use foldback_kv::Error as KvError;
use std::path::Path;

impl Maintenance<'_> {
    /// Writes a consistent copy of the store into `dir`, which must be empty or new. Others may
    /// keep writing meanwhile; the copy is of one moment. Indexes are not copied: they are rebuilt
    /// automatically.
    ///
    /// Only a todo that is forgotten meanwhile may be incomplete in the copy: its records are there, and the files of
    /// its large payloads are not. `verify` of the copy reports those; forget the todo there too.
    ///
    /// The remains of a backup whose process was killed are removed by the next one to the same place, and by
    /// [`forget`](Self::forget), [`compact`](Self::compact) and [`repair`](Self::repair) of this store.
    ///
    /// # Errors
    /// When a file cannot be written; then `dir` holds no store that opens.
    pub fn backup(self, dir: &Path) -> Result<(), Error> {
        if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(KvError::NotEmpty { path: dir.to_owned() }.into());
        }
        // The copy gets its name when it is complete.
        let partial = PartialCopy::begin(self.memory.dir.as_deref(), dir)?;
        self.copy_into(partial.folder())?;
        partial.finish(dir)?;
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let synced = std::fs::File::open(parent).and_then(|folder| folder.sync_all());
        synced.map_err(failed("make durable", parent))
    }

    fn copy_into(self, dir: &Path) -> Result<(), Error> {
        self.memory.kv.backup(dir)?;
        // Payload files never change, and each exists from before its record until after it: copied
        // after the records, none is missing.
        self.memory.payloads.backup(&dir.join("payloads"))?;
        // The records know the least length of the log: copied after them, it is at least that long.
        AuditLog::of(self.memory).copy_into(dir)
    }
}
