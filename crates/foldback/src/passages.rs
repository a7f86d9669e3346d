//! What payloads say, for the search.

use foldback_backend_store::{BackendStore, Error as PayloadError};
use foldback_blockstore::{PayloadTexts, ReadError};
use foldback_kv::Todo;
use std::ops::Range;
use std::sync::Arc;

/// The payload store as the search reads it. What is missing or damaged is not searched; `verify`
/// and `doctor` name it. What cannot be read now is tried again.
pub(crate) struct StoredTexts(pub(crate) Arc<BackendStore>);

impl PayloadTexts for StoredTexts {
    fn read(&self, todo: &Todo, n: u64, bytes: Range<u64>) -> Result<Option<Vec<u8>>, ReadError> {
        match self.0.read_range(todo, n, bytes) {
            Ok(text) => Ok(Some(text)),
            Err(
                PayloadError::NotFound { .. }
                | PayloadError::Corrupt { .. }
                | PayloadError::BadRange { .. }
                | PayloadError::Refused { .. },
            ) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
