//! The names of the runs that are going on.

use crate::Journal;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The runs of this process that are going on: where their journal is, and their name.
static GOING_ON: Mutex<BTreeSet<(usize, String)>> = Mutex::new(BTreeSet::new());

/// A run's name in a journal, until this is dropped: two runs under one name would each do
/// everything.
pub(super) struct Claim {
    name: (usize, String),
    /// As long as it is held, no other journal has its address.
    _journal: Arc<dyn Journal>,
}

impl Claim {
    /// `None` when a run of that name is going on with this journal.
    pub(super) fn new(journal: &Arc<dyn Journal>, run: &str) -> Option<Self> {
        let name = (Arc::as_ptr(journal).addr(), run.to_owned());
        let is_free = GOING_ON.lock().insert(name.clone());
        is_free.then(|| Self { name, _journal: Arc::clone(journal) })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        GOING_ON.lock().remove(&self.name);
    }
}
