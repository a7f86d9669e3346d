//! The one door to the storage engines: SQLite, redb, sled, PostgreSQL and memory behind one narrow trait.
//!
//! A store is a folder that holds records, or that goes with a database on a [`Server`]. A record is found by a [`Key`] (a [`Space`] from a
//! closed set, the number of a todo, and a number inside the todo) and is a run of bytes that this
//! crate does not interpret. Every change is a [`Batch`]: it is committed whole or not at all, is
//! durable when [`Kv::commit`] returns, and may name the head of the todo that it [`Expect`]s, so
//! that two processes can write one todo and the one that comes second gets an error. Every record
//! carries a version and a checksum over its key and its value, which is verified on each read.
//!
//! It is **not** a query language, not a cache, and not a place for large files: a value is copied
//! whole on its way in and out. The crate interprets no message and no block, and holds no read
//! transaction while its caller works. It starts no async runtime, but for one thread that drives the connections of a
//! database, with the feature `postgres`.
//!
//! Two things here are deliberately named for their meaning in the crates above. A [`Space`] is a
//! table on disk, so the set of spaces is part of the format, which belongs to this crate. The
//! [`Registry`] of todos is here because the number of a todo is part of every key: only the registry
//! makes a [`Todo`], so that no record can be read without the todo's id, and it assigns and retires
//! the numbers in transactions like any other writer. It reads only its own records.
//!
//! If the caller gives a key ([`open_with`]), every value is sealed before an engine gets it, and opened after the
//! engine returns it.
//!
//! [`ForeignFile`] is separate from all that: it reads the SQLite file of another program. It is here because
//! SQLite enters the workspace through this crate alone.
//!
//! The main types are [`Kv`], [`Key`] and [`Batch`]. [`open()`] opens a store where its [`Truth`] is, and [`retry()`]
//! repeats a write that came second.
//!
//! ```
//! use foldback_kv::{Batch, Error, Expect, Key, Space};
//!
//! let kv = foldback_kv::memory();
//! let key = Key { space: Space::Message, todo: 7, n: 0 };
//! let first = Batch {
//!     expect: Some(Expect { todo: 7, head: 0, next: 1 }),
//!     put: vec![(key, b"hello".to_vec())],
//!     delete: vec![],
//! };
//! kv.commit(first.clone())?;
//! assert_eq!(kv.get(key)?, Some(b"hello".to_vec()));
//!
//! // The head has moved, so a writer that still expects the old one is refused.
//! let again = kv.commit(first);
//! assert!(matches!(again, Err(Error::Conflict { todo: 7, expected: 0, found: 1 })));
//! # Ok::<(), Error>(())
//! ```
//!
//! Do not carry a store across `fork`: SQLite's locks and connections, redb's locks and sled's threads belong
//! to the process that opened them. A child opens the folder again.

mod kv;

mod batch;
mod key;

mod engine;
mod error;
mod finding;
mod lost;
mod open;
mod registry;
mod retry;
mod sealed;
mod server;
mod truth;

#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod acknowledged;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres"))]
mod folder;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod format_repair;
#[cfg(any(feature = "sqlite", feature = "redb"))]
mod group;
#[cfg(any(feature = "redb", feature = "sled"))]
mod guard;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres"))]
mod lock;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod place;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres"))]
mod record;
/// The locks that `group` uses.
#[cfg(any(feature = "sqlite", feature = "redb"))]
mod sync {
    pub(crate) use std::sync::{Condvar, Mutex};
}
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres"))]
mod witness;

#[cfg(feature = "sqlite")]
mod foreign;
mod memory;
mod missing_head;
#[cfg(any(feature = "redb", feature = "sled"))]
mod ordered;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "sled")]
mod sled;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use crate::batch::{Batch, Delete, Expect, MAX_VALUE_BYTES};
pub use crate::engine::{Engine, Mode};
pub use crate::error::Error;
pub use crate::finding::{Finding, is_sound};
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres"))]
pub use crate::folder::{engine_of, is_encrypted};
#[cfg(feature = "sqlite")]
pub use crate::foreign::ForeignFile;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
pub use crate::format_repair::repair_format;
pub use crate::key::{Key, Space};
pub use crate::kv::{DAMAGED_HEAD, Kv, Scans};
pub use crate::lost::Lost;
pub use crate::memory::memory;
pub use crate::missing_head::{FORGOTTEN_HEAD, missing_head};
pub use crate::open::{FORMAT_VERSION, open, open_with, rekey};
#[cfg(feature = "postgres")]
pub use crate::postgres::Console;
pub use crate::registry::{Registry, Todo};
pub use crate::retry::{Contended, retry};
pub use crate::sealed::{change_key, seal};
pub use crate::server::Server;
pub use crate::truth::Truth;
pub use foldback_cipher::{Cipher, EncryptionKey, OVERHEAD_BYTES};
