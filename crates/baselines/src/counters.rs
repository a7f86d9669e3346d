//! Who counts tokens.

use foldback_core::TokenCounter;
use std::sync::Arc;

/// What counts the tokens of a policy: one counter for both ends, made of an `Arc` of it, or two.
#[derive(Clone)]
pub struct Counters {
    /// Decides where a policy acts on a size. It is asked often, so an estimate serves well.
    pub sizes: Arc<dyn TokenCounter>,
    /// Counts what a call of the policy's own is sent and writes, as it is billed. It is asked once
    /// for each message that leaves.
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
