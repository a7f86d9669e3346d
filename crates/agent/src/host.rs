//! What stands around a run, lent to the tools that it calls.

use crate::{ContextHandle, Observer, SpendTracker, Watch};
use std::fmt;
use std::sync::Arc;

/// What stands around a run: the context of whoever calls, who watches, and what may be spent.
///
/// A tool that runs an agent itself begins below it: with a context that is a child of this one, the
/// same watcher, and a [share](SpendTracker::share) of what may be spent.
#[derive(Clone, Default)]
pub struct Host {
    /// The way to the context of the loop that makes the calls. A run without a loop has none.
    pub context: Option<ContextHandle>,
    /// Who is told of what happens.
    pub observer: Option<Arc<dyn Observer>>,
    /// What was spent, and what may be.
    pub spend: SpendTracker,
}

impl Host {
    /// Who watches the run that makes the call; `None` where no loop does.
    #[must_use]
    pub fn watch(&self) -> Option<Watch> {
        let todo = self.context.as_ref()?.todo().clone();
        Some(Watch::new(todo, self.observer.clone()))
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("context", &self.context)
            .field("observed", &self.observer.is_some())
            .field("spend", &self.spend)
            .finish()
    }
}
