//! What the agent lends the tools that it calls.

use crate::{Observer, SpendTracker, Watch};
use foldback_tool::{CallContext, ContextHandle};
use std::fmt;
use std::sync::Arc;

/// What stands around a run, beside its context: who watches, and what may be spent.
///
/// Each call has it among its [extensions](CallContext::extensions). A tool that runs an agent itself
/// begins below it: with a context that is a child of the [caller's](CallContext::context), the same
/// watcher, and a [share](SpendTracker::share) of what may be spent.
#[derive(Clone, Default)]
pub struct Host {
    /// Who is told of what happens.
    pub observer: Option<Arc<dyn Observer>>,
    /// What was spent, and what may be.
    pub spend: SpendTracker,
}

impl Host {
    /// What stands around the run that makes a call: nothing where no agent makes it.
    #[must_use]
    pub fn of(call: &CallContext) -> Self {
        call.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Who watches the run whose loop this context belongs to.
    #[must_use]
    pub fn watch(&self, context: &ContextHandle) -> Watch {
        Watch::new(context.todo().clone(), self.observer.clone())
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("observed", &self.observer.is_some())
            .field("spend", &self.spend)
            .finish()
    }
}
