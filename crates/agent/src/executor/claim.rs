//! The names of running runs.

use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The running runs of this process, by the address of their journal (or, without one, of their executor) and
/// their name.
static GOING_ON: Mutex<BTreeSet<(usize, String)>> = Mutex::new(BTreeSet::new());

/// A claim to a run's name until it is dropped: two runs under one name would each do everything.
pub(crate) struct Claim {
    name: (usize, String),
    /// While it is held, nothing else can have its address.
    _place: Box<dyn Any + Send + Sync>,
}

impl Claim {
    /// Claims a name; `None` when a run of that name is running at this place.
    pub(super) fn new<P: ?Sized + Send + Sync + 'static>(
        place: &Arc<P>,
        run: &str,
    ) -> Option<Self> {
        let name = Self::name(place, run);
        let is_free = GOING_ON.lock().insert(name.clone());
        is_free.then(|| Self { name, _place: Box::new(Arc::clone(place)) })
    }

    /// Returns whether a run of that name is running at this place.
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
