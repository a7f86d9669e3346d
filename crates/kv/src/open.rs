//! Opening a store.

use std::path::Path;
use std::sync::Arc;

use crate::memory::Memory;
use crate::sealed::seal_as;
use crate::{EncryptionKey, Engine, Error, Kv, Mode};

/// The version of the store's layout on disk that this crate writes. It reads every earlier one, and
/// brings a store that it opens for writing up to this one.
///
/// | version | what it added |
/// |---|---|
/// | 1 | the first |
/// | 2 | the spaces `grant` and `plan` |
/// | 3 | the spaces `sent` and `parked` |
/// | 4 | the number and digest of the last commit, in the engine and in the file `WITNESS`; the engine `redb` |
/// | 5 | only for encrypted stores: the line `encrypted`, and sealed values |
pub const FORMAT_VERSION: u64 = 4;

/// Opens the store in a folder, and with [`Mode::ReadWrite`] creates it if there is none.
///
/// Any number of processes may create and open one SQLite store at once. The folder is created for
/// its owner alone (mode 0700). For [`Engine::Memory`] the folder is not touched, and every call
/// returns a new, empty store.
///
/// A store of an earlier format is read as it is, and upgraded to the present format when it is opened for writing. The
/// upgrade only adds and rewrites no existing data, so if it is interrupted, the next process that opens the store
/// repeats it. From then on, programs of the earlier format refuse the store.
///
/// # Errors
///
/// [`Error::FormatVersion`] and [`Error::FormatEngine`] when the folder's store is not the expected
/// one, naming both; [`Error::Format`] when the folder is not a complete store; [`Error::NotFound`]
/// when there is none to read; [`Error::Locked`] within a second when a store of redb or sled is in
/// use; [`Error::ReadOnly`] when the folder cannot be written and [`Mode::ReadWrite`] was asked for;
/// [`Error::Unsupported`] when the engine was left out of this build; [`Error::NoKey`] when the
/// store is encrypted.
pub fn open(dir: &Path, engine: Engine, mode: Mode) -> Result<Arc<dyn Kv>, Error> {
    open_with(dir, engine, mode, None)
}

/// Like [`open`], with the key of an encrypted store. A new store is encrypted if a key is given; an existing store
/// stays as it is.
///
/// # Errors
///
/// As [`open`]; [`Error::WrongKey`] when the store is encrypted with another key, and [`Error::NotEncrypted`] when it is
/// not encrypted at all.
pub fn open_with(
    dir: &Path,
    engine: Engine,
    mode: Mode,
    key: Option<&EncryptionKey>,
) -> Result<Arc<dyn Kv>, Error> {
    let says = match engine {
        #[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
        Engine::Sqlite | Engine::Redb | Engine::Sled => Some(crate::folder::is_encrypted(dir)?),
        _ => None,
    };
    match key {
        Some(key) => {
            let kv = open_engine(dir, engine, mode)?;
            seal_as(kv, says.map(|_| dir), mode, key, says)
        }
        None if says == Some(true) => Err(Error::NoKey { path: dir.to_owned() }),
        None => {
            let kv = open_engine(dir, engine, mode)?;
            // Its records show it even if its folder does not.
            match says.is_some() && crate::sealed::is_sealed(kv.as_ref()) {
                true => Err(Error::NoKey { path: dir.to_owned() }),
                false => Ok(kv),
            }
        }
    }
}

/// Seals the keys of an encrypted store with a new key of the caller. Data that is sealed with those keys stays as it
/// is, and processes that have the store open are not disturbed. [Compact](Kv::compact) it afterwards, so that none of
/// its files holds anything that the old key opens.
///
/// # Errors
///
/// As [`open_with`]; [`Error::Conflict`] when another process changes the key at the same time.
pub fn rekey(
    dir: &Path,
    engine: Engine,
    key: &EncryptionKey,
    new: &EncryptionKey,
) -> Result<(), Error> {
    let kv = open_engine(dir, engine, Mode::ReadWrite)?;
    crate::sealed::change_key(kv.as_ref(), dir, key, new)
}

/// Opens the store of an engine, sealed or not.
pub(crate) fn open_engine(dir: &Path, engine: Engine, mode: Mode) -> Result<Arc<dyn Kv>, Error> {
    match engine {
        #[cfg(feature = "sqlite")]
        Engine::Sqlite => Ok(Arc::new(crate::sqlite::Sqlite::open(dir, mode)?)),
        #[cfg(feature = "redb")]
        Engine::Redb => Ok(Arc::new(crate::redb::Redb::open(dir, mode)?)),
        #[cfg(feature = "sled")]
        Engine::Sled => Ok(Arc::new(crate::sled::Sled::open(dir, mode)?)),
        Engine::Memory => {
            let _ = dir;
            Ok(Arc::new(Memory::new(mode)))
        }
        #[cfg(not(all(feature = "sqlite", feature = "redb", feature = "sled")))]
        engine => {
            Err(Error::Unsupported { engine: engine.name(), what: "was left out of this build" })
        }
    }
}
