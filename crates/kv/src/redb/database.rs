//! The open database: how it is created, opened, copied and read.

use super::blocks::{Blocks, take_damaged};
use crate::error::writing;
use crate::guard::unpanicked;
use crate::{Engine, Error, Mode, ordered};
use ::redb::{Database, ReadOnlyTable, ReadableTable, TableDefinition};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The table that holds everything in a store.
pub(super) const RECORDS: TableDefinition<'_, &ordered::Bytes, &[u8]> =
    TableDefinition::new("records");

/// A snapshot of the records.
pub(super) type Records = ReadOnlyTable<&'static ordered::Bytes, &'static [u8]>;

/// redb's own default is 1 GiB.
const CACHE_BYTES: usize = 64 << 20;

/// Creates a database without records, replacing any file of that name.
pub(super) fn create(file: &Path) -> Result<Database, Error> {
    remove(file)?;
    let database = open(file, Blocks::create(file)?)?;
    guarded(file, || {
        let transaction = database.begin_write()?;
        drop(transaction.open_table(RECORDS)?);
        Ok(transaction.commit()?)
    })?;
    Ok(database)
}

/// Opens a database. For reading, nothing on the disk changes.
pub(super) fn connect(file: &Path, mode: Mode) -> Result<Database, Error> {
    open(file, Blocks::open(file, mode == Mode::ReadOnly)?)
}

fn open(file: &Path, blocks: Blocks) -> Result<Database, Error> {
    guarded(file, || {
        Ok(Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(blocks)?)
    })
}

/// Closes a database. If that fails, the next opening repairs what is missing.
pub(super) fn close(database: Database) {
    let _ = unpanicked(|| database.close());
}

/// Copies every record of the database in `from`, as it is stored, into a new one, durably.
pub(super) fn copy(records: &Records, from: &Path, to: &Path) -> Result<(), Error> {
    let mut target = create(to)?;
    // Whatever fails while copying, the database is closed where a panic from that is caught. A page of the source is
    // read separately, so that a fault in it is reported for the source.
    guarded(to, move || {
        let transaction = target.begin_write()?;
        let mut copied = transaction.open_table(RECORDS)?;
        let mut items = match guarded(from, || Ok(records.iter()?)) {
            Ok(items) => items,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            match guarded(from, || Ok(items.next().transpose()?)) {
                Ok(Some((key, stored))) => copied.insert(key.value(), stored.value())?,
                Ok(None) => break,
                Err(error) => return Ok(Err(error)),
            };
        }
        drop(copied);
        transaction.commit()?;
        target.compact()?;
        target.close()?;
        Ok(Ok(()))
    })?
}

/// Removes a file, if it is there.
pub(super) fn remove(file: &Path) -> Result<(), Error> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(writing("remove", file)(error)),
        _ => Ok(()),
    }
}

/// Calls redb. Its panics become errors like the others.
pub(super) fn guarded<T>(
    file: &Path,
    ask: impl FnOnce() -> Result<T, ::redb::Error>,
) -> Result<T, Error> {
    let path = file.to_owned();
    take_damaged();
    let answer = unpanicked(ask);
    let damaged = |words: String| {
        let place =
            take_damaged().map(|at| format!("; the page at byte {at} has a different checksum"));
        let detail = format!(
            "one of its pages is not what was written: {words}{}",
            place.unwrap_or_default()
        );
        Err(Error::Damaged { path: file.to_owned(), detail })
    };
    let error = match answer {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(::redb::Error::Corrupted(words))) => return damaged(words),
        Ok(Err(error)) => error,
        Err(words) => return damaged(words),
    };
    Err(match error {
        ::redb::Error::Io(source) => writing("use", &path)(source),
        ::redb::Error::PreviousIo => Error::Poisoned { path },
        error => Error::Engine { engine: Engine::Redb.name(), path, source: Box::new(error) },
    })
}
