//! The description of a payload, which is known without reading it.

use crate::Fault;
use crate::payload_files::CopyId;
use foldback_core::{Check, PayloadKind, PayloadRef};
use serde::{Deserialize, Serialize};

/// The description of a payload, which is known without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// Its number in its todo, from 1.
    pub n: u64,
    /// The first characters of its hash, as references carry them.
    pub check: Check,
    /// The BLAKE3 hash of its bytes.
    pub hash: [u8; 32],
    /// The kind of its content.
    pub kind: PayloadKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its lines: its line feeds, and one more when bytes follow the last of them.
    pub lines: u64,
    /// The bytes that it takes on disk.
    pub stored: u64,
    /// Where its bytes first came from: the number that was passed to
    /// [`Pending::set_origin`](crate::Pending::set_origin); `None` if there was none.
    pub origin: Option<u64>,
    /// For a payload in a file: the hash that binds the file's table, so that a part of it is
    /// checked as well as the whole.
    pub(crate) seal: Option<[u8; 32]>,
    /// For a payload in an object store: the random part of the object's name.
    pub(crate) copy: Option<CopyId>,
}

impl Meta {
    /// Returns the reference by which the payload is loaded, inside its own todo.
    #[must_use]
    pub fn reference(&self) -> PayloadRef {
        PayloadRef::local(self.n, self.check)
    }

    /// Returns whether it is a separate file, rather than a record.
    #[must_use]
    pub fn in_file(&self) -> bool {
        self.seal.is_some()
    }

    /// Encodes its record.
    pub(crate) fn write(&self) -> Result<Vec<u8>, Fault> {
        let record = Record {
            hash: self.hash,
            kind: self.kind,
            bytes: self.bytes,
            lines: self.lines,
            stored: self.stored,
            seal: self.seal,
            origin: self.origin,
            copy: self.copy,
        };
        rmp_serde::to_vec(&record)
            .map_err(|error| Fault::Damaged(format!("its record cannot be written: {error}")))
    }

    pub(crate) fn read(n: u64, value: &[u8]) -> Result<Self, Fault> {
        let record: Record = rmp_serde::from_slice(value)
            .map_err(|error| Fault::Damaged(format!("its record cannot be read: {error}")))?;
        let Record { hash, kind, bytes, lines, stored, seal, origin, copy } = record;
        let check = Check::of_hash(&blake3::Hash::from_bytes(hash));
        Ok(Self { n, check, hash, kind, bytes, lines, stored, origin, seal, copy })
    }
}

/// The record as MessagePack: an array of these fields in this order. New fields come last and have
/// a default.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(with = "serde_bytes")]
    hash: [u8; 32],
    kind: PayloadKind,
    bytes: u64,
    lines: u64,
    stored: u64,
    #[serde(with = "serde_bytes")]
    seal: Option<[u8; 32]>,
    #[serde(default)]
    origin: Option<u64>,
    /// Left out where there is none, so that the record of a payload in a folder is what it always was.
    #[serde(default, with = "serde_bytes", skip_serializing_if = "Option::is_none")]
    copy: Option<CopyId>,
}
