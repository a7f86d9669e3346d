//! Token counters of a policy.

use foldback_core::TokenCounter;
use std::sync::Arc;

/// The token counters of a policy: one for both purposes, made from an `Arc` of it, or two.
#[derive(Clone)]
pub struct Counters {
    /// Decides when a policy acts on a size. It is called often, so an estimate is good enough.
    pub sizes: Arc<dyn TokenCounter>,
    /// Counts what the policy's own calls are sent and write, as they are billed. It is called once for
    /// each message that leaves.
    pub bills: Arc<dyn TokenCounter>,
}

impl From<Arc<dyn TokenCounter>> for Counters {
    fn from(counter: Arc<dyn TokenCounter>) -> Self {
        Self { sizes: Arc::clone(&counter), bills: counter }
    }
}

impl<T: TokenCounter + 'static> From<Arc<T>> for Counters {
    fn from(counter: Arc<T>) -> Self {
        Self::from(counter as Arc<dyn TokenCounter>)
    }
}
