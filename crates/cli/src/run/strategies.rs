//! The strategies that a run can be gone about by.

use super::settings::{Limits, NO_DOCUMENTS};
use crate::error::CliError;
use foldback_agent::deep_search::DeepSearch;
use foldback_agent::{
    Adaptive, Flow, FlowSettings, OnePlan, React, SpendLimits, Strategy, StrategyName,
};
use std::sync::Arc;

/// Their names, the default first.
pub(crate) static STRATEGIES: [StrategyName; 5] =
    [Adaptive::NAME, React::NAME, OnePlan::NAME, Flow::NAME, DeepSearch::NAME];

/// The strategy of this name, as a run goes about it within its limits; a deep search looks into
/// `documents`.
pub(crate) fn strategy(
    name: &StrategyName,
    limits: Limits,
    documents: Option<&DeepSearch>,
) -> Result<Arc<dyn Strategy>, CliError> {
    if *name == React::NAME {
        return Ok(Arc::new(React::default()));
    }
    if *name == OnePlan::NAME {
        return Ok(Arc::new(OnePlan::default()));
    }
    if *name == Flow::NAME {
        return Ok(Arc::new(Flow::new(flow_settings(limits))));
    }
    if *name == DeepSearch::NAME {
        let documents = documents.ok_or_else(|| CliError::Usage(NO_DOCUMENTS.to_owned()))?;
        return Ok(Arc::new(documents.clone()));
    }
    Ok(Arc::new(Adaptive::default()))
}

/// A flow has an hour, unless the run says otherwise: then it may spend whatever the run may.
fn flow_settings(limits: Limits) -> FlowSettings {
    let settings = FlowSettings::default();
    match limits.bounds_time() {
        true => FlowSettings { limits: SpendLimits::default(), ..settings },
        false => settings,
    }
}
