//! The names of objects.

use crate::payload_files::{CopyId, FileName};
use data_encoding::BASE32_DNSSEC as BASE32;
use object_store::ObjectMeta;

/// What the name of one of a todo's objects says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ObjectName {
    /// It is the file of a payload.
    Payload(FileName),
    /// It is a note of an upload in parts.
    UploadNote,
}

/// How the name of a note begins.
const NOTE: &str = "upload-";

impl ObjectName {
    /// Reads the name of an object below a todo's prefix; `None` for one that this store did not give.
    pub(super) fn of(todo: u32, object: &ObjectMeta) -> Option<Self> {
        let name = object.location.filename()?;
        if let Some(id) = name.strip_prefix(NOTE) {
            return bytes::<16>(id).map(|_| Self::UploadNote);
        }
        let (hash, copy) = name.split_once('-')?;
        Some(Self::Payload(FileName { todo, hash: bytes(hash)?, copy: Some(bytes(copy)?) }))
    }
}

/// Writes bytes as they are in names: in base 32 with small letters. That is shorter than in digits, for services that
/// keep objects as files.
pub(super) fn text(bytes: &[u8]) -> String {
    BASE32.encode(bytes)
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE32.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Returns the last part of a payload's name.
pub(super) fn payload_name(name: &FileName) -> String {
    format!("{}-{}", text(&name.hash), text(&name.copy.unwrap_or_default()))
}

/// Returns the last part of a note's name.
pub(super) fn note_name(id: &CopyId) -> String {
    format!("{NOTE}{}", text(id))
}

/// Returns sixteen random bytes.
pub(super) fn random() -> std::io::Result<CopyId> {
    let mut id = CopyId::default();
    getrandom::fill(&mut id).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(id)
}
