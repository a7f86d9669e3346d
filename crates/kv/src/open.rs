//! Opening a store.

use std::path::Path;
use std::sync::Arc;

use crate::memory::Memory;
use crate::sealed::seal_as;
use crate::{EncryptionKey, Engine, Error, Kv, Mode, Truth};

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
/// returns a new, empty store. For a [`Server`](crate::Server) the records are in its database, whose tables are made
/// if there are none; the folder is tied to that database, and a store that is only read needs none.
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
/// store is encrypted; [`Error::Address`], [`Error::Unreachable`] and [`Error::Refused`] when there is no way to a
/// server's database, and [`Error::Unfit`] when it would not keep what it acknowledges.
pub fn open(dir: &Path, truth: impl Into<Truth>, mode: Mode) -> Result<Arc<dyn Kv>, Error> {
    open_with(dir, truth, mode, None)
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
    truth: impl Into<Truth>,
    mode: Mode,
    key: Option<&EncryptionKey>,
) -> Result<Arc<dyn Kv>, Error> {
    let truth = truth.into();
    let says = match truth {
        #[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
        Truth::Folder(Engine::Sqlite | Engine::Redb | Engine::Sled) => {
            Some(crate::folder::is_encrypted(dir)?)
        }
        _ => None,
    };
    if key.is_none() && says == Some(true) {
        return Err(Error::NoKey { path: dir.to_owned() });
    }
    let kv = open_truth(dir, &truth, mode)?;
    let is_kept = !matches!(truth, Truth::Folder(Engine::Memory));
    match key {
        Some(key) => seal_as(kv, is_kept.then_some(dir), mode, key, says),
        // Its records show it even if its folder does not: the folder of a database says nothing about it.
        None if is_kept && crate::sealed::is_sealed(kv.as_ref()) => {
            Err(Error::NoKey { path: dir.to_owned() })
        }
        None => Ok(kv),
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
    truth: impl Into<Truth>,
    key: &EncryptionKey,
    new: &EncryptionKey,
) -> Result<(), Error> {
    let kv = open_truth(dir, &truth.into(), Mode::ReadWrite)?;
    crate::sealed::change_key(kv.as_ref(), dir, key, new)
}

/// Opens the records of a store, sealed or not.
fn open_truth(dir: &Path, truth: &Truth, mode: Mode) -> Result<Arc<dyn Kv>, Error> {
    match truth {
        Truth::Folder(engine) => open_engine(dir, *engine, mode),
        #[cfg(feature = "postgres")]
        Truth::Server(server) => Ok(Arc::new(crate::postgres::Postgres::open(dir, server, mode)?)),
        #[cfg(not(feature = "postgres"))]
        Truth::Server(_) => open_engine(dir, truth.engine(), mode),
    }
}

/// Opens the store of an engine in a folder, sealed or not.
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
        #[cfg(feature = "postgres")]
        Engine::Postgres => Err(Error::Address { detail: "it was not given".to_owned() }),
        #[cfg(not(all(
            feature = "sqlite",
            feature = "redb",
            feature = "sled",
            feature = "postgres"
        )))]
        engine => Err(Error::Unsupported { engine: engine.name(), what: left_out(engine) }),
    }
}

/// Says that an engine was left out of this build.
#[cfg(not(all(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres")))]
pub(crate) const fn left_out(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgres => "was left out of this build; build it with the feature postgres",
        _ => "was left out of this build",
    }
}
