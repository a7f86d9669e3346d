//! Why an agent cannot be put together.

use crate::strategies::STRATEGIES;
use foldback_agent::{SettingError, StrategyName};
use foldback_tool::DuplicateTool;
use foldback_tools::PermissionsError;

/// Why an agent cannot be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceAgentError {
    /// The permissions of its tools cannot be used.
    #[error(transparent)]
    Permissions(#[from] PermissionsError),
    /// Two of its tools have one name.
    #[error(transparent)]
    Tools(#[from] DuplicateTool),
    /// A setting makes no sense.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// No strategy has this name.
    #[error("there is no strategy {0:?}; there are {names}", names = names())]
    Strategy(String),
    /// A deep search has nothing to search.
    #[error("deep-search needs documents to look into, and the agent was given none")]
    NoDocuments,
}

fn names() -> String {
    STRATEGIES.iter().map(StrategyName::as_str).collect::<Vec<_>>().join(", ")
}
