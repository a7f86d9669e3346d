//! The names of the runs that are going on.

use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The runs of this process that are going on: where their journal is (or, without one, their executor), and their name.
static GOING_ON: Mutex<BTreeSet<(usize, String)>> = Mutex::new(BTreeSet::new());

/// A run's name, until this is dropped: two runs under one name would each do everything.
pub(crate) struct Claim {
    name: (usize, String),
    /// As long as it is held, no other has its address.
    _place: Box<dyn Any + Send + Sync>,
}

impl Claim {
    /// `None` when a run of that name is going on at this place.
    pub(super) fn new<P: ?Sized + Send + Sync + 'static>(
        place: &Arc<P>,
        run: &str,
    ) -> Option<Self> {
        let name = Self::name(place, run);
        let is_free = GOING_ON.lock().insert(name.clone());
        is_free.then(|| Self { name, _place: Box::new(Arc::clone(place)) })
    }

    /// Whether a run of that name is going on at this place.
    pub(super) fn is_held<P: ?Sized>(place: &Arc<P>, run: &str) -> bool {
        GOING_ON.lock().contains(&Self::name(place, run))
    }

    fn name<P: ?Sized>(place: &Arc<P>, run: &str) -> (usize, String) {
        (Arc::as_ptr(place).addr(), run.to_owned())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        GOING_ON.lock().remove(&self.name);
    }
}
