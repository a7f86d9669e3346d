//! A context under measurement.

use crate::{BenchError, Driven};
use foldback::{CacheAware, FoldPolicy, KNOWN_SECRET, Memory, Options};
use foldback_core::{ContextManager, Prices, Timestamp, TodoId};
use foldback_policies::{Policy, Summaries};
use std::time::Duration;

/// Returns an empty context of a policy, for a provider with these prices, which keeps a prefix that is not read for
/// `life`, or for ever. The memory's context has these options, except for the fold policy, which the policy determines.
/// The same input gives the same figures: it has no secret of its own, and no other clock than `now`.
///
/// # Errors
/// When a memory cannot be created, or the prices are not valid.
pub fn measured_context(
    policy: Policy,
    todo: TodoId,
    (prices, life): (Prices, Option<Duration>),
    summaries: &Summaries,
    options: &Options,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
) -> Result<Box<dyn ContextManager>, BenchError> {
    let view = options.view.clone().unwrap_or_default();
    let view = match policy {
        Policy::Baseline(baseline) => {
            return Ok(baseline.start_with(todo, Driven::counters(), summaries));
        }
        Policy::Foldback => view.with_fold_policy(FoldPolicy::Strict),
        Policy::CacheAware => {
            let marks = match *view.fold_policy() {
                FoldPolicy::CacheAware(marks) => marks,
                _ => CacheAware::default(),
            };
            let priced = marks.with_cache_life(life).with_prices(prices);
            let priced = priced.map_err(|error| BenchError::Input(error.to_string()))?;
            view.with_fold_policy(FoldPolicy::CacheAware(priced))
        }
    };
    let options = options.clone().with_view(view).with_clock(now).with_secret(KNOWN_SECRET);
    Ok(Box::new(Memory::in_memory(options)?.session(&todo)?))
}
