//! What can go wrong, cut by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Engine, Key, Lost, Space};

/// The error of every function in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another writer came first. Read the todo's tail again and retry with its head.
    #[error("todo {todo} has moved on: its head is {found}, and the batch expected {expected}")]
    Conflict {
        /// The todo.
        todo: u32,
        /// The head that the batch expected.
        expected: u64,
        /// The head that the store has.
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
    /// The engine's own structures are damaged, so what was asked for could not be reached.
    #[error("the store at {} is damaged: {detail}", path.display())]
    Damaged {
        /// The damaged file or folder.
        path: PathBuf,
        /// The engine's words.
        detail: String,
    },
    /// Another program's file could not be read.
    #[error("{} could not be read as an SQLite database: {detail}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The engine's words.
        detail: String,
    },
    /// A key has a number that no store can hold.
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
        /// The key it was for.
        key: Key,
        /// Its length.
        bytes: usize,
        /// The greatest length.
        most: usize,
    },
    /// Another process has the store, and this engine serves one at a time.
    #[error(
        "the store at {} is in use by another process, and its engine serves one at a time; try again \
         when that one has ended",
        path.display()
    )]
    Locked {
        /// The store's folder.
        path: PathBuf,
    },
    /// Others kept the store busy for too long. Nothing was changed; try again.
    #[error("the store at {} stayed busy while {doing}", path.display())]
    Busy {
        /// The store's folder.
        path: PathBuf,
        /// What was waited for.
        doing: &'static str,
    },
    /// Commits that were acknowledged are gone, so nothing may be written behind what is left until that is
    /// [accepted](crate::Kv::accept_loss). Reading goes on.
    #[error(
        "the store at {} has lost writes: {lost}; it can be read, and takes no writes until the loss is accepted",
        path.display()
    )]
    Lost {
        /// The store's folder.
        path: PathBuf,
        /// What is gone.
        lost: Lost,
    },
    /// The store was deleted, moved or replaced while it was open. What was acknowledged before went with it;
    /// this write may have, too, and is not acknowledged.
    #[error(
        "the store at {} was deleted, moved or replaced while it was in use, so this write is not acknowledged",
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
    /// A database of sled is copied before it is opened, and there is no room for the copy.
    #[error(
        "opening a sled store takes a copy of it, and {} has {free} bytes free where {needed} are needed",
        path.display()
    )]
    NoRoom {
        /// The copy.
        path: PathBuf,
        /// How much it takes, in bytes.
        needed: u64,
        /// How much is free, in bytes.
        free: u64,
    },
    /// An earlier write failed in the disk, so what it left is unknown until the store is opened
    /// again. Reading goes on.
    #[error("the store at {} takes no writes after a failed one; open it again", path.display())]
    Poisoned {
        /// The store's folder.
        path: PathBuf,
    },
    /// The store is open for reading only, or its folder cannot be written.
    #[error("the store at {} can only be read", path.display())]
    ReadOnly {
        /// The store's folder.
        path: PathBuf,
    },
    /// The store has commits in its log that a reader without write access cannot reach.
    #[error(
        "the store at {} has commits in its log that cannot be read without write access; open it once for writing",
        path.display()
    )]
    PendingLog {
        /// The store's folder.
        path: PathBuf,
    },
    /// The store is encrypted, and was opened without its key.
    #[error(
        "the store at {} is encrypted; the key that it was encrypted with was expected, and none is given",
        path.display()
    )]
    NoKey {
        /// The store's folder.
        path: PathBuf,
    },
    /// The store is encrypted with another key than the one that was given.
    #[error(
        "the store at {} is encrypted with another key than the one that is given, or the record of its key is damaged",
        path.display()
    )]
    WrongKey {
        /// The store's folder.
        path: PathBuf,
    },
    /// A key was given for a store that is not encrypted.
    #[error(
        "the store at {} is not encrypted, and a key is given; open it without one, or export its todos and import them \
         into a new store, which is encrypted from the beginning",
        path.display()
    )]
    NotEncrypted {
        /// The store's folder.
        path: PathBuf,
    },
    /// Something could not be sealed.
    #[error("a record could not be sealed: {0}")]
    Cipher(#[from] foldback_cipher::Error),
    /// There is no store in the folder, and it was opened for reading.
    #[error("there is no store at {}", path.display())]
    NotFound {
        /// The folder.
        path: PathBuf,
    },
    /// The store has a format that this program does not know.
    #[error(
        "the store at {} has format version {found}, and this program reads versions 1 to {expected}",
        path.display()
    )]
    FormatVersion {
        /// The store's folder.
        path: PathBuf,
        /// The version that the folder states.
        found: u64,
        /// The version that this program writes; it reads the earlier ones too.
        expected: u64,
    },
    /// The store was made with another engine.
    #[error("the store at {} was made with the engine {found}, and {expected} was asked for", path.display())]
    FormatEngine {
        /// The store's folder.
        path: PathBuf,
        /// The engine that the folder states.
        found: String,
        /// The engine that was asked for.
        expected: Engine,
    },
    /// The folder's format file is missing beside a database, or is not one.
    #[error("the folder {} is not a whole store: {detail}", path.display())]
    Format {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A backup was asked for into a folder that has something in it.
    #[error("the folder {} is not empty", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// This engine cannot do that, or was left out of this build.
    #[error("the engine {engine} {what}")]
    Unsupported {
        /// The engine's name.
        engine: &'static str,
        /// What it cannot do, as the rest of a sentence.
        what: &'static str,
    },
    /// A name that is no engine's.
    #[error("{name:?} is not an engine; expected sqlite, redb, sled or memory")]
    UnknownEngine {
        /// The name.
        name: String,
    },
    /// The file system refused.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The engine failed in a way that none of the others describes.
    #[error("the engine {engine} failed at {}", path.display())]
    Engine {
        /// The engine's name.
        engine: &'static str,
        /// The store's folder.
        path: PathBuf,
        /// The engine's words.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[cfg(any(feature = "sqlite", feature = "redb"))]
impl Error {
    /// The error once more, for another batch of the transaction that failed: what the store holds of it is not known.
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
            // No other one poisons.
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

#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
/// Names what could not be read.
pub(crate) fn reading<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Io { doing, path: path.to_owned(), source }
}
