//! The choice of an engine.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Engine {
    /// One SQLite file; any number of processes. The default.
    #[default]
    Sqlite,
    /// One redb file, without any C code; one writing process at a time, or any number of readers.
    Redb,
    /// A sled folder; one writing process at a time. For existing sled stores: the folder is copied whenever it is
    /// opened.
    Sled,
    /// A PostgreSQL database, or one that speaks its language; any number of processes on any number of machines. It
    /// needs the address of its [`Server`](crate::Server), and the feature `postgres`.
    Postgres,
    /// Nothing on disk; gone when the last handle is dropped. For tests.
    Memory,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 5] = [Self::Sqlite, Self::Redb, Self::Sled, Self::Postgres, Self::Memory];

    /// Returns whether a process that writes has the store to itself.
    #[cfg(any(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres"))]
    pub(crate) const fn is_exclusive(self) -> bool {
        matches!(self, Self::Redb | Self::Sled)
    }

    /// Returns the engine's name, as on the command line and in the store's format file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Redb => "redb",
            Self::Sled => "sled",
            Self::Postgres => "postgres",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| Error::UnknownEngine { name: name.to_owned() })
    }
}

/// Whether a store is opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reading and writing. The store is created if the folder has none.
    #[default]
    ReadWrite,
    /// Reading only. The store must exist; every write returns [`Error::ReadOnly`].
    ReadOnly,
}
