//! Keeps large tool inputs and outputs outside the conversation, byte for byte.
//!
//! A **payload** is a run of bytes that is too large for a conversation. It belongs to one todo,
//! has a number there and a [`PayloadRef`](foldback_core::PayloadRef) by which a model asks for it,
//! and can be read whole, by range, by lines or around a pattern, within a budget and with a place
//! to continue from. Every byte is verified on every read; damage is an error of that one payload.
//! Small payloads are records of the transactional store, larger ones are files of their own, in a
//! folder or (with the feature `objects-s3`, `objects-gcs` or `objects-azure`) in an object store.
//! Equal bytes of one todo are stored once; between todos nothing is shared.
//!
//! It does **not** decide what is large, and it commits nothing: it makes payloads durable and
//! returns the records, which the caller commits together with the message that refers to them. So
//! a crash may leave a file that is swept later, but never a dangling reference.
//!
//! The main types are [`BackendStore`], [`Meta`], which describes a payload without reading it, and
//! [`Excerpt`], a part of one. [`kind_of`] and [`preview()`] are pure functions.
//!
//! ```
//! use foldback_backend_store::{BackendConfig, BackendStore, kind_of, preview};
//! use foldback_core::{Estimate, PayloadKind, TodoId};
//! use foldback_kv::{Batch, Expect, Registry};
//!
//! let kv = foldback_kv::memory();
//! let todo = Registry::new(kv.clone()).create(&TodoId::new("todo001")?, b"")?;
//! let store = BackendStore::open(kv.clone(), None, BackendConfig::default())?;
//!
//! // A tool answered with a log. Its record is committed together with the message.
//! let log: String = (0..500).map(|i| format!("10:00:{:02} INFO step {i}\n", i % 60)).collect();
//! let mut pending = store.begin(&todo)?;
//! let prepared = store.prepare(&mut pending, log.as_bytes())?;
//! let expect = Some(Expect { todo: todo.no(), head: 0, next: 1 });
//! kv.commit(Batch { expect, put: pending.into_puts(), delete: vec![] })?;
//!
//! let reference = prepared.meta.reference();
//! assert!(reference.to_string().starts_with("store://1-"));
//! assert_eq!(prepared.meta.kind, PayloadKind::Log);
//! assert!(preview(log.as_bytes(), PayloadKind::Log, 200, &Estimate).contains("step 0"));
//!
//! // Later a model asks for what it saw a reference to.
//! let meta = store.resolve(&todo, &reference)?;
//! let around = store.matching(&todo, meta.n, "step 321$", 1, 500, 1)?;
//! assert_eq!((around.first_line(), around.last_line()), (321, 323));
//! assert_eq!(store.get(&todo, meta.n)?, log.as_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backup;
mod store;
mod upkeep;

mod meta;
mod pending;

mod excerpt;
mod finding;

mod kind;
mod preview;

mod config;
mod error;

mod body;
#[cfg(feature = "objects")]
mod connect;
mod file;
mod folder;
mod names;
#[cfg(feature = "objects-cloud")]
mod objects;
mod payload_files;
mod place;
#[cfg(feature = "objects")]
mod place_and_folder;
mod place_note;
mod place_of_store;
mod sniff;

pub use crate::config::BackendConfig;
pub use crate::error::Error;
pub use crate::excerpt::{Excerpt, Position, PositionError, Run};
pub use crate::finding::{Finding, Usage};
pub use crate::kind::kind_of;
pub use crate::meta::Meta;
pub use crate::pending::{Pending, Prepared};
pub use crate::place::PayloadPlace;
pub use crate::preview::preview;
pub use crate::store::BackendStore;

use crate::error::Fault;
