//! The text of payloads, for the search.

use foldback_backend_store::{BackendStore, Error as PayloadError};
use foldback_blockstore::{PayloadTexts, WhyUnsearched};
use foldback_kv::Todo;
use std::ops::Range;
use std::sync::Arc;

/// The payload store as the search reads it. Answers name what it cannot read.
pub(crate) struct StoredTexts(pub(crate) Arc<BackendStore>);

impl PayloadTexts for StoredTexts {
    fn read(&self, todo: &Todo, n: u64, bytes: Range<u64>) -> Result<Vec<u8>, WhyUnsearched> {
        self.0.read_range(todo, n, bytes).map_err(|error| match error {
            error if error.is_missing() => WhyUnsearched::Missing,
            PayloadError::Corrupt { .. } | PayloadError::BadRange { .. } => WhyUnsearched::Damaged,
            error => WhyUnsearched::Unreadable(error.to_string()),
        })
    }
}
