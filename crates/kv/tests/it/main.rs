//! The public face of the crate, one binary.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by stopping")]

mod conformance;
#[cfg(all(unix, any(feature = "redb", feature = "sled")))]
mod disk_errors;
mod model;
mod sealed;
#[cfg(all(feature = "sqlite", feature = "sled"))]
mod upgrade;

#[cfg(feature = "sqlite")]
mod damage;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod folder;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod forget;
#[cfg(all(unix, feature = "sqlite"))]
mod full_disk;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod golden;
#[cfg(any(feature = "sqlite", feature = "redb"))]
mod group;
#[cfg(all(unix, feature = "sqlite"))]
mod lost;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod processes;
#[cfg(all(unix, feature = "sqlite"))]
mod refusals;
#[cfg(all(unix, feature = "sqlite"))]
mod silence;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod syncs;
#[cfg(any(feature = "sqlite", feature = "redb", feature = "sled"))]
mod together;
#[cfg(all(unix, any(feature = "sqlite", feature = "redb", feature = "sled")))]
mod unwritten;
