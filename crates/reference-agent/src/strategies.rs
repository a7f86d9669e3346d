//! The strategies by name.

use crate::ReferenceAgentError;
use foldback_agent::{Adaptive, OnePlan, React, Strategy, StrategyName};
use std::sync::Arc;

pub(crate) use foldback_deep_search::{DeepSearch, research};
pub(crate) use foldback_flow::{Flow, FlowSettings};

/// The names of the strategies, the default first.
pub static STRATEGIES: [StrategyName; 5] =
    [Adaptive::NAME, React::NAME, OnePlan::NAME, Flow::NAME, DeepSearch::NAME];

/// The strategy's name that is written so: one of [`STRATEGIES`].
///
/// # Errors
/// When there is none; the error names those there are.
pub fn strategy_name(name: &str) -> Result<StrategyName, ReferenceAgentError> {
    let known = STRATEGIES.iter().find(|strategy| strategy.as_str() == name);
    known.cloned().ok_or_else(|| ReferenceAgentError::Strategy(name.to_owned()))
}

/// The strategy of this name. A flow has these settings; a deep search looks into `documents`.
pub(crate) fn strategy(
    name: &str,
    flow: FlowSettings,
    documents: Option<&DeepSearch>,
) -> Result<Arc<dyn Strategy>, ReferenceAgentError> {
    let name = strategy_name(name)?;
    if name == React::NAME {
        return Ok(Arc::new(React::default()));
    }
    if name == OnePlan::NAME {
        return Ok(Arc::new(OnePlan::default()));
    }
    if name == Flow::NAME {
        return Ok(Arc::new(Flow::new(flow)));
    }
    if name == DeepSearch::NAME {
        let documents = documents.ok_or(ReferenceAgentError::NoDocuments)?;
        return Ok(Arc::new(documents.clone()));
    }
    Ok(Arc::new(Adaptive::default()))
}
