//! The place of a store's records.

use crate::{Engine, Error, Server};
use std::fmt;
use std::str::FromStr;

/// The place of a store's records: an engine in the store's folder, or a database on a server.
///
/// ```
/// use foldback_kv::{Engine, Truth};
///
/// let truth: Truth = "redb".parse()?;
/// assert_eq!(truth, Truth::Folder(Engine::Redb));
/// let truth: Truth = "postgres://me:secret@db.example/memory".parse()?;
/// assert_eq!(truth.engine(), Engine::Postgres);
/// assert_eq!(truth.to_string(), "postgres://db.example/memory");
/// # Ok::<(), foldback_kv::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// An engine whose files are in the store's folder, or in memory.
    Folder(Engine),
    /// A database. The store's folder then holds only what can be made again, and the files of large payloads.
    Server(Server),
}

impl Truth {
    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> Engine {
        match self {
            Self::Folder(engine) => *engine,
            Self::Server(_) => Engine::Postgres,
        }
    }
}

impl Default for Truth {
    fn default() -> Self {
        Self::Folder(Engine::default())
    }
}

impl From<Engine> for Truth {
    fn from(engine: Engine) -> Self {
        Self::Folder(engine)
    }
}

impl From<Server> for Truth {
    fn from(server: Server) -> Self {
        Self::Server(server)
    }
}

impl FromStr for Truth {
    type Err = Error;

    /// Reads the name of an engine, or an address, which is not checked: an error here may be printed with the text.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text.contains("://") {
            true => Ok(Self::Server(Server::new(text))),
            false => text.parse().map(Self::Folder),
        }
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(engine) => engine.fmt(f),
            Self::Server(server) => server.fmt(f),
        }
    }
}
