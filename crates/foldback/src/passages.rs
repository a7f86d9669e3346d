//! What payloads say, for the search.

use foldback_backend_store::BackendStore;
use foldback_blockstore::PayloadTexts;
use foldback_kv::Todo;
use std::ops::Range;
use std::sync::Arc;

/// The payload store as the search reads it. What is missing or damaged is not searched; `verify`
/// and `doctor` name it.
pub(crate) struct StoredTexts(pub(crate) Arc<BackendStore>);

impl PayloadTexts for StoredTexts {
    fn read(&self, todo: &Todo, n: u64, bytes: Range<u64>) -> Option<Vec<u8>> {
        self.0.read_range(todo, n, bytes).ok()
    }
}
