//! The crate's error, divided by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Engine, Key, Lost, Space};

/// The error that every function of this crate returns.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another writer came first. Read the end of the todo again and retry with its new head.
    #[error("todo {todo} has moved on: its head is {found}, and the batch expected {expected}")]
    Conflict {
        /// The todo.
        todo: u32,
        /// The head that the batch expected.
        expected: u64,
        /// The head in the store.
        found: u64,
    },
    /// One record is damaged. Others stay readable.
    #[error("the record {key} is damaged: {detail}")]
    Corrupt {
        /// The record.
        key: Key,
        /// What is wrong with it.
        detail: String,
    },
    /// The head of a todo is damaged. Its records stay readable.
    #[error("the head of todo {todo} is damaged: {detail}")]
    CorruptHead {
        /// The todo.
        todo: u32,
        /// What is wrong with it.
        detail: String,
    },
    /// The engine's own structures are damaged, so the requested data could not be reached.
    #[error("the store at {} is damaged: {detail}", path.display())]
    Damaged {
        /// The damaged file or folder.
        path: PathBuf,
        /// The engine's message.
        detail: String,
    },
    /// Another program's file could not be read.
    #[error("{} could not be read as an SQLite database: {detail}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The engine's message.
        detail: String,
    },
    /// A number in the key is too large for any store.
    #[error(
        "the key {space} {todo}/{n} is out of range: the todo must be below {}, the number below {}",
        Key::TODO_END,
        Key::N_END
    )]
    KeyOutOfRange {
        /// The key's space.
        space: Space,
        /// The key's todo.
        todo: u32,
        /// The key's number.
        n: u64,
    },
    /// A value is larger than a record may be.
    #[error("the value of {key} has {bytes} bytes, and a record holds at most {most}")]
    ValueTooLarge {
        /// The key that the value was for.
        key: Key,
        /// Its length in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        most: usize,
    },
    /// Another process has the store open, and this engine allows one process at a time.
    #[error(
        "the store at {} is in use by another process, and its engine allows one at a time; try again \
         when that process has ended",
        path.display()
    )]
    Locked {
        /// The store's folder.
        path: PathBuf,
    },
    /// Other processes kept the store busy for too long. Nothing was changed; try again.
    #[error("the store at {} stayed busy while {doing}", path.display())]
    Busy {
        /// The store's folder.
        path: PathBuf,
        /// What the store was waiting for.
        doing: &'static str,
    },
    /// Acknowledged commits are gone, so nothing may be written after what is left until the loss is
    /// [accepted](crate::Kv::accept_loss). Reading still works.
    #[error(
        "the store at {} has lost writes: {lost}; it can be read, but takes no writes until the loss is accepted",
        path.display()
    )]
    Lost {
        /// The store's folder.
        path: PathBuf,
        /// The commits that are gone.
        lost: Lost,
    },
    /// The store was deleted, moved or replaced while it was open. Earlier commits went with it. A write
    /// may have gone too, and is not acknowledged.
    #[error(
        "the store at {} was deleted, moved or replaced while it was in use, so no write to it is acknowledged",
        path.display()
    )]
    Gone {
        /// The store's folder.
        path: PathBuf,
    },
    /// The disk is full. Nothing was changed.
    #[error("the disk that holds {} is full", path.display())]
    Full {
        /// The store's folder.
        path: PathBuf,
    },
    /// A sled database is copied before it is opened, and there is no room for the copy.
    #[error(
        "a sled store is copied before it is opened, and there is no room for the copy at {}: \
         it needs {needed} bytes, and {free} are free",
        path.display()
    )]
    NoRoom {
        /// Where the copy was to be written.
        path: PathBuf,
        /// The size of the copy, in bytes.
        needed: u64,
        /// The free space, in bytes.
        free: u64,
    },
    /// The disk failed during an earlier write, so what that write left is unknown until the store
    /// is opened again. Reading still works.
    #[error("the store at {} takes no more writes after one that failed; open it again", path.display())]
    Poisoned {
        /// The store's folder.
        path: PathBuf,
    },
    /// The store was opened for reading only, or its folder or a file of it cannot be written.
    #[error("the store cannot be written: {} can only be read", path.display())]
    ReadOnly {
        /// The store's folder, or the file in it.
        path: PathBuf,
    },
    /// The store's log holds commits that a reader without write access cannot reach.
    #[error(
        "the log of the store at {} holds commits that cannot be read without write access; open it once for writing",
        path.display()
    )]
    PendingLog {
        /// The store's folder.
        path: PathBuf,
    },
    /// The store is encrypted, and was opened without its key.
    #[error(
        "the store at {} is encrypted, and no key was given; give the key that it was encrypted with",
        path.display()
    )]
    NoKey {
        /// The store's folder.
        path: PathBuf,
    },
    /// The store is encrypted with a different key from the one that was given.
    #[error(
        "the store at {} is encrypted with a different key from the one given, or the record of its key is damaged",
        path.display()
    )]
    WrongKey {
        /// The store's folder.
        path: PathBuf,
    },
    /// A key was given for a store that is not encrypted.
    #[error(
        "the store at {0} is not encrypted, but a key was given; open it without one, or make an encrypted copy of it \
         (`foldback --store NEW restore {0}`)",
        path.display()
    )]
    NotEncrypted {
        /// The store's folder.
        path: PathBuf,
    },
    /// A record could not be sealed.
    #[error("a record could not be sealed: {0}")]
    Cipher(#[from] foldback_cipher::Error),
    /// The folder was opened for reading and holds no store.
    #[error("there is no store at {}", path.display())]
    NotFound {
        /// The folder.
        path: PathBuf,
    },
    /// The store holds as many todos as it may.
    #[error(
        "the store may hold at most {most} {} (memory.max_todos; of a tenant, `foldback tenant limit NAME --max-todos`), \
         and holds as many; forget one, or raise the limit",
        if *most == 1 { "todo" } else { "todos" }
    )]
    TooManyTodos {
        /// How many it may hold.
        most: u32,
    },
    /// A database holds no tenant of this name.
    #[error(
        "there is no tenant {name}{}",
        if *was_forgotten { ": it was forgotten, and its name is not given again" } else { "" }
    )]
    NoTenant {
        /// The name.
        name: String,
        /// Whether there was one.
        was_forgotten: bool,
    },
    /// The store's format is unknown to this program.
    #[error(
        "the store at {} has format version {found}, but this program reads versions 1 to {expected}",
        path.display()
    )]
    FormatVersion {
        /// The store's folder.
        path: PathBuf,
        /// The version stated in the folder.
        found: u64,
        /// The version that this program writes; it reads the earlier ones too.
        expected: u64,
    },
    /// The store was created with another engine.
    #[error("the store at {} was created with the engine {found}, but {expected} was requested", path.display())]
    FormatEngine {
        /// The store's folder.
        path: PathBuf,
        /// The engine stated in the folder.
        found: String,
        /// The requested engine.
        expected: Engine,
    },
    /// The folder holds a database whose format file is missing or invalid.
    #[error("the folder {} is not a complete store: {detail}", path.display())]
    Format {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The folder for a backup is not empty.
    #[error("the folder {} is not empty", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The engine cannot do this, or was left out of this build.
    #[error("the engine {engine} {what}")]
    Unsupported {
        /// The engine's name.
        engine: &'static str,
        /// What it cannot do, as the rest of a sentence.
        what: &'static str,
    },
    /// The address of a database is not one. It is not repeated, because it may hold a password.
    #[error(
        "the address of the database is not valid: {detail}; expected postgres://USER@HOST:PORT/DATABASE"
    )]
    Address {
        /// What is wrong with it.
        detail: String,
    },
    /// A server, or the way to it, is down. What was read or written can be repeated.
    #[error("the database {} could not be reached: {detail}", path.display())]
    Unreachable {
        /// The database's name.
        path: PathBuf,
        /// The system's or the server's message.
        detail: String,
    },
    /// The server refuses the operation: its message says which right or which database is missing.
    #[error("the database {} refused: {detail}", path.display())]
    Refused {
        /// The database's name.
        path: PathBuf,
        /// The server's message.
        detail: String,
    },
    /// The server answers, but a store in it would not keep the store's promises, or is not the one that was opened.
    #[error("the database {} cannot be used: {detail}", path.display())]
    Unfit {
        /// The database's name.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The server went away while a batch was committed, and did not come back in time, so it is unknown whether the
    /// batch is stored. The store goes on: read the todo again before writing to it.
    #[error(
        "the database {} went away while it was written to, so it is unknown whether that write is stored; read the \
         todo again before repeating it ({detail})",
        path.display()
    )]
    Unknown {
        /// The database's name.
        path: PathBuf,
        /// The system's or the server's message.
        detail: String,
    },
    /// The record that a batch was built on has changed. Nothing was written; read it again.
    #[error("the record {key} was changed by another writer")]
    Changed {
        /// The record.
        key: Key,
    },
    /// The name is not that of an engine.
    #[error("{name:?} is not an engine; expected sqlite, redb, sled, postgres or memory")]
    UnknownEngine {
        /// The name.
        name: String,
    },
    /// The file system refused an operation.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The engine failed in a way that no other variant describes.
    #[error("the engine {engine} failed at {}", path.display())]
    Engine {
        /// The engine's name.
        engine: &'static str,
        /// The store's folder.
        path: PathBuf,
        /// The engine's message.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[cfg(any(feature = "sqlite", feature = "redb"))]
impl Error {
    /// Repeats the error for another batch of the transaction that failed, when it is unknown what the store holds of
    /// that batch.
    pub(crate) fn repeated(&self, dir: &Path) -> Self {
        match self {
            Self::Io { doing, path, source } => {
                let source = io::Error::new(source.kind(), source.to_string());
                Self::Io { doing, path: path.clone(), source }
            }
            Self::Engine { engine, path, source } => {
                Self::Engine { engine, path: path.clone(), source: source.to_string().into() }
            }
            Self::Damaged { path, detail } => {
                Self::Damaged { path: path.clone(), detail: detail.clone() }
            }
            Self::Gone { path } => Self::Gone { path: path.clone() },
            Self::Full { path } => Self::Full { path: path.clone() },
            // No other error poisons the store.
            _ => Self::Poisoned { path: dir.to_owned() },
        }
    }
}

/// Turns a failed change of the file system into the error that says what to do about it.
pub(crate) fn writing<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::Full { path: path.to_owned() }
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly { path: path.to_owned() }
        }
        _ => Error::Io { doing, path: path.to_owned(), source },
    }
}

#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres"))]
/// Turns a failed read of the file system into an error that names the file.
pub(crate) fn reading<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Io { doing, path: path.to_owned(), source }
}
