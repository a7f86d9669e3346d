//! Chooses where the files of a store's payloads are.

use crate::folder::Folder;
use crate::payload_files::PayloadFiles;
use crate::place_note::PlaceNote;
use crate::{Error, PayloadPlace};
use foldback_kv::{Kv, Mode};
use std::path::PathBuf;

/// Returns where the files of a store's payloads are: in its own `folder`, or at `place`.
pub(crate) fn files_of(
    kv: &dyn Kv,
    note: Option<PlaceNote>,
    folder: PathBuf,
    place: Option<&PayloadPlace>,
    mode: Mode,
) -> Result<Box<dyn PayloadFiles>, Error> {
    let is_copy = note.as_ref().is_some_and(|note| note.is_copied_in(&folder));
    let wrong = |what: String| Err(Error::Config { what });
    match (place, note) {
        (None, None) => Ok(Box::new(Folder::new(folder))),
        (None, Some(_)) if is_copy => Ok(Box::new(Folder::new(folder))),
        (None, Some(note)) => wrong(format!(
            "the large payloads of this store are kept at {0}; name that place (--payloads {0})",
            note.at
        )),
        (Some(place), Some(_)) if is_copy => wrong(format!(
            "this store is a copy whose large payloads are in its folder; open it without {place} (--payloads store)"
        )),
        (Some(place), note) => elsewhere::files_at(kv, folder, place, note, mode),
    }
}

#[cfg(not(feature = "objects"))]
mod elsewhere {
    use super::*;

    /// No place can be read without the feature, so none comes here.
    pub(super) fn files_at(
        _: &dyn Kv,
        _: PathBuf,
        place: &PayloadPlace,
        _: Option<PlaceNote>,
        _: Mode,
    ) -> Result<Box<dyn PayloadFiles>, Error> {
        Err(Error::Config { what: format!("this build keeps no payloads at {place}") })
    }
}

#[cfg(feature = "objects")]
mod elsewhere {
    use super::*;
    use crate::connect::connect;
    use crate::place_and_folder::PlaceAndFolder;
    use foldback_kv::{Batch, Error as KvError, Expect, Key};

    /// No todo has this number. Its head counts the notes that were made, so that of two processes that open a new
    /// store at once, one makes it.
    const MAKER: u32 = Key::TODO_END - 5;

    pub(super) fn files_at(
        kv: &dyn Kv,
        folder: PathBuf,
        place: &PayloadPlace,
        note: Option<PlaceNote>,
        mode: Mode,
    ) -> Result<Box<dyn PayloadFiles>, Error> {
        let scratch = folder.parent().map(ToOwned::to_owned);
        let own = Folder::new(folder);
        let note = match note {
            Some(note) => note,
            // Nothing has been kept elsewhere so far.
            None if mode == Mode::ReadOnly => return Ok(Box::new(own)),
            None => make_note(kv, place, scratch.clone())?,
        };
        let files = connect(place, &note.id, scratch)?;
        // Under another address it may be the same place: a bucket or a folder that was moved. A folder may be one that
        // is not mounted now.
        let is_moved = note.at != place.to_string();
        if (is_moved || place.is_folder()) && !files.is_claimed()? {
            let what = format!(
                "the large payloads of this store are kept at {}, and there are none of it at {place}",
                note.at
            );
            return Err(Error::Config { what });
        }
        if is_moved && mode == Mode::ReadWrite {
            write_note(kv, &PlaceNote { at: place.to_string(), ..note }, kv.head(MAKER)?)?;
        }
        Ok(Box::new(PlaceAndFolder::new(files, own)))
    }

    /// Writes the note of a store, if no other process has written one since `head`.
    fn write_note(kv: &dyn Kv, note: &PlaceNote, head: u64) -> Result<(), Error> {
        let expect = Some(Expect { todo: MAKER, head, next: head + 1 });
        Ok(kv.commit(Batch { expect, put: note.puts()?, ..Batch::default() })?)
    }

    /// Makes the note of a store that has none. If another process comes first, that one's note is the store's.
    fn make_note(
        kv: &dyn Kv,
        place: &PayloadPlace,
        scratch: Option<PathBuf>,
    ) -> Result<PlaceNote, Error> {
        loop {
            let head = kv.head(MAKER)?;
            if let Some(note) = PlaceNote::read(kv)? {
                return Ok(note);
            }
            let mut note = PlaceNote { id: [0; 16], at: place.to_string() };
            let random = getrandom::fill(&mut note.id);
            random.map_err(|error| Error::Config { what: format!("no random bytes: {error}") })?;
            // The place is marked first: what a record says is there.
            connect(place, &note.id, scratch.clone())?.claim()?;
            match write_note(kv, &note, head) {
                Ok(()) => return Ok(note),
                Err(Error::Kv(KvError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
