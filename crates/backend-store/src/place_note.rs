//! The note in a store's records of where the files of its payloads are kept, if that is not its folder.
//!
//! The records are the truth, wherever they are, so every machine that opens them finds the same files, and one that
//! names another place is refused before it takes files for missing.

use crate::folder::{hex, sync_folder};
use crate::payload_files::CopyId;
use crate::{Error, Fault};
use foldback_kv::{Error as KvError, Key, Kv, Space};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// Where the files of a store's payloads are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlaceNote {
    /// The part of every file's name that is this store's alone.
    #[serde(with = "serde_bytes")]
    pub(crate) id: CopyId,
    /// The address at which they were last kept, for messages.
    pub(crate) at: String,
}

/// Records of the whole store use the number that no todo has. There are two, in case one is damaged.
pub(crate) const NOTES: [Key; 2] =
    [Key { space: Space::Meta, todo: 0, n: 6 }, Key { space: Space::Meta, todo: 0, n: 7 }];

/// The name, in the folder for payloads of a copied store, of the file that says whose payloads are in it.
const COPY: &str = "COPY";

impl PlaceNote {
    /// Returns the store's note, if it has one.
    pub(crate) fn read(kv: &dyn Kv) -> Result<Option<Self>, Error> {
        let mut damaged = None;
        for key in NOTES {
            match kv.get(key) {
                // Both are written at once, so where the first is missing there is no second.
                Ok(None) => break,
                Ok(Some(value)) => match rmp_serde::from_slice(&value) {
                    Ok(note) => return Ok(Some(note)),
                    Err(error) => damaged = Some(unreadable(&error)),
                },
                Err(error @ KvError::Corrupt { .. }) => damaged = Some(error.into()),
                Err(error) => return Err(error.into()),
            }
        }
        damaged.map_or(Ok(None), Err)
    }

    /// Returns the records of the note.
    #[cfg(feature = "objects")]
    pub(crate) fn puts(&self) -> Result<Vec<(Key, Vec<u8>)>, Error> {
        let value = rmp_serde::to_vec(self).map_err(|error| unreadable(&error))?;
        Ok(NOTES.into_iter().map(|key| (key, value.clone())).collect())
    }

    /// Returns whether this folder holds a copy of the store's payloads.
    pub(crate) fn is_copied_in(&self, folder: &Path) -> bool {
        fs::read_to_string(folder.join(COPY)).is_ok_and(|text| text.trim() == hex(&self.id))
    }
}

/// Marks the folder of a copied store, whose records say that payloads are kept elsewhere: they are in the folder.
pub(crate) fn mark_copy(kv: &dyn Kv, folder: &Path) -> Result<(), Error> {
    let Some(note) = PlaceNote::read(kv)? else { return Ok(()) };
    let path = folder.join(COPY);
    let wrong = |error| Error::io("write", &path, error);
    fs::create_dir_all(folder).map_err(wrong)?;
    match fs::File::create_new(&path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match note.is_copied_in(folder) {
            true => Ok(()),
            false => Err(wrong(std::io::Error::other("it marks a copy of another store"))),
        },
        file => {
            let written = file.and_then(|mut file| {
                file.write_all(hex(&note.id).as_bytes())?;
                file.sync_all()
            });
            written.map_err(wrong)?;
            sync_folder(folder)
        }
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Error {
    let what = format!("the record of where payloads are kept cannot be used: {error}");
    Fault::Damaged(what).of(0, "record")
}
