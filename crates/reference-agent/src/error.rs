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
    /// Something was said of a tool that is not there.
    #[error("there is no tool {name:?}; there are {names}")]
    NoTool {
        /// The name.
        name: String,
        /// The tools that there are.
        names: String,
    },
    /// A tool was to be handed the whole context as an argument that it does not have.
    #[error("the tool {tool:?} has no argument {argument:?} that the whole context could be")]
    Argument {
        /// The tool.
        tool: String,
        /// The argument.
        argument: String,
    },
    /// A deep search has nothing to search.
    #[error("deep-search needs documents to look into, and the agent was given none")]
    NoDocuments,
    /// No tool, and no family of tools, has this name.
    #[error("there is no tool and no family of tools {name:?}; there are {known}")]
    ToolFamily {
        /// The name.
        name: String,
        /// The tools that there are.
        known: String,
    },
}

fn names() -> String {
    STRATEGIES.iter().map(StrategyName::as_str).collect::<Vec<_>>().join(", ")
}
