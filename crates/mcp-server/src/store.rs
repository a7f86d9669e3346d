//! The store that a server reads: opened at the first request.

use foldback::{Error, ErrorKind, Memory};
use parking_lot::Mutex;

/// Opens the store; otherwise returns why it cannot be opened.
type Open = dyn Fn() -> Result<Memory, String> + Send + Sync;

/// The store that a server reads: opened at the first request, and again after a failure, so that a store
/// that is created or repaired later is found.
pub(crate) struct Store {
    open: Box<Open>,
    memory: Mutex<Option<Memory>>,
}

impl Store {
    pub(crate) fn new(open: impl Fn() -> Result<Memory, String> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), memory: Mutex::new(None) }
    }

    /// Works with the store; otherwise returns a sentence that says what was wrong with it.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&Memory) -> Result<T, Error>,
    ) -> Result<T, String> {
        let memory = {
            let mut opened = self.memory.lock();
            match opened.as_ref() {
                Some(memory) => memory.clone(),
                None => opened.insert((self.open)()?).clone(),
            }
        };
        work(&memory).map_err(|error| {
            if error.kind() != ErrorKind::NotFound {
                *self.memory.lock() = None;
            }
            error.sentence()
        })
    }
}
