//! A new database in the place of the old one.

use super::Sled;
use super::copies::SPARE_FOLDER;
use super::database::connect;
use crate::Error;
use crate::error::writing;
use crate::folder;
use crate::folder::SLED_FOLDER;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

impl Sled {
    /// Copies every record, as it is stored, into a new database.
    pub(super) fn read_copy(&self, to: &Path) -> Result<(), Error> {
        let target = connect(to)?;
        let copied = self.read(|database| {
            let (mut step, mut bytes) = (::sled::Batch::default(), 0);
            for item in database.iter() {
                let (key, stored) = item?;
                bytes += key.len() + stored.len();
                step.insert(key, stored);
                if bytes >= COPY_BYTES {
                    target.sled.apply_batch(std::mem::take(&mut step))?;
                    bytes = 0;
                }
            }
            target.sled.apply_batch(step)?;
            target.sync()
        });
        target.close();
        copied
    }
}

/// Finishes or undoes an interrupted compaction. The old database is moved aside, the new one is moved in, and the old
/// one is removed. So if the database is missing, the one that was moved aside takes its place, and if it is present,
/// the others are remains. An opening that failed is undone in the same way, with the copy that was made before it.
pub(super) fn mend(dir: &Path) -> Result<(), Error> {
    let (place, old) = (dir.join(SLED_FOLDER), dir.join(OLD_FOLDER));
    if !place.exists() {
        let others = [old.clone(), dir.join(SPARE_FOLDER)];
        let Some(other) = others.iter().find(|other| other.exists()) else {
            let detail = folder::without(SLED_FOLDER);
            return Err(Error::Format { path: dir.to_owned(), detail });
        };
        fs::rename(other, &place).map_err(writing("rename", other))?;
        folder::sync(dir)?;
    }
    remove(&old)?;
    remove(&dir.join(NEW_FOLDER))
}

pub(super) const NEW_FOLDER: &str = "store.sled.new";

pub(super) const OLD_FOLDER: &str = "store.sled.old";

/// How much is copied at once: the bytes that a copy holds in memory.
const COPY_BYTES: usize = 1 << 20;

pub(super) fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(writing("remove", folder)(error)),
        _ => Ok(()),
    }
}
