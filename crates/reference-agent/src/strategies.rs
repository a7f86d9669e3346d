//! The strategies by name.

use crate::ReferenceAgentError;
use foldback_agent::{Adaptive, OnePlan, React, StrategyName};
use foldback_deep_search::DeepSearch;
use foldback_flow::Flow;

/// The names of the strategies, the default first.
pub static STRATEGIES: [StrategyName; 5] =
    [Adaptive::NAME, React::NAME, OnePlan::NAME, Flow::NAME, DeepSearch::NAME];

/// Returns the strategy name that is written this way: one of [`STRATEGIES`].
///
/// # Errors
/// When there is none; the error names those that exist.
pub fn strategy_name(name: &str) -> Result<StrategyName, ReferenceAgentError> {
    let known = STRATEGIES.iter().find(|strategy| strategy.as_str() == name);
    known.cloned().ok_or_else(|| ReferenceAgentError::Strategy(name.to_owned()))
}
