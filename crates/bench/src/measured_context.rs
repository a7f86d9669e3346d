//! A context under measurement.

use crate::{BenchError, Driven};
use foldback::{CacheAware, FoldPolicy, KNOWN_SECRET, Memory, Options};
use foldback_core::{ContextManager, Prices, Timestamp, TodoId};
use foldback_policies::{Policy, Summaries};

/// A context of a policy that holds nothing yet, for a provider with these prices. Same input, same
/// figures: it has no clock and no secret of its own.
///
/// # Errors
/// When a memory cannot be made, or the prices are none.
pub fn measured_context(
    policy: Policy,
    todo: TodoId,
    prices: Prices,
    summaries: &Summaries,
) -> Result<Box<dyn ContextManager>, BenchError> {
    let view = match policy {
        Policy::Baseline(baseline) => {
            return Ok(baseline.start_with(todo, Driven::counters(), summaries));
        }
        Policy::Foldback => policy.view(),
        Policy::CacheAware => {
            let priced = CacheAware::default().with_prices(prices);
            let priced = priced.map_err(|error| BenchError::Input(error.to_string()))?;
            policy.view().with_fold_policy(FoldPolicy::CacheAware(priced))
        }
    };
    // A message without a time gets no time of today.
    let options =
        Options::default().with_view(view).with_clock(|| Timestamp(0)).with_secret(KNOWN_SECRET);
    Ok(Box::new(Memory::in_memory(options)?.session(&todo)?))
}
