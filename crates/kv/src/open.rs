//! Opening a store.

use std::path::Path;
use std::sync::Arc;

use crate::memory::Memory;
use crate::{Engine, Error, Kv, Mode};

/// The version of the store's layout on disk that this crate writes. It reads every earlier one, and
/// brings a store that it opens for writing up to this one.
///
/// | version | what came with it |
/// |---|---|
/// | 1 | the first |
/// | 2 | the spaces `grant` and `plan` |
/// | 3 | the spaces `sent` and `parked` |
/// | 4 | the number and digest of the last commit, in the engine and in the file `WITNESS`; the engine `redb` |
pub const FORMAT_VERSION: u64 = 4;

/// Opens the store in a folder, and with [`Mode::ReadWrite`] creates it if there is none.
///
/// Any number of processes may create and open one SQLite store at once. The folder is made for
/// its owner alone (mode 0700). For [`Engine::Memory`] the folder is not touched, and every call
/// gives a new, empty store.
///
/// A store of an earlier format is read as it is, and brought up to the present one when it is
/// opened for writing. That adds and rewrites nothing that was there, so cut short at any point it is
/// done again by the next opener; programs of the earlier format refuse the store from then on.
///
/// # Errors
///
/// [`Error::FormatVersion`] and [`Error::FormatEngine`] when the folder's store is not one that
/// was asked for, naming both; [`Error::Format`] when the folder is not a whole store;
/// [`Error::NotFound`] when there is none to read; [`Error::Locked`] within a second when a store of
/// redb or sled is in use; [`Error::ReadOnly`] when the folder cannot be written and
/// [`Mode::ReadWrite`] was asked for; [`Error::Unsupported`] when the engine was left out of this
/// build.
pub fn open(dir: &Path, engine: Engine, mode: Mode) -> Result<Arc<dyn Kv>, Error> {
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
