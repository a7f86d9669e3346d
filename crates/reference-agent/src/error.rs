//! The error of building an agent.

use crate::strategies::STRATEGIES;
use foldback_agent::{SettingError, StrategyName};
use foldback_tool::DuplicateTool;
use foldback_tools::PermissionsError;

/// The reason why an agent cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceAgentError {
    /// The permissions of its tools cannot be used.
    #[error(transparent)]
    Permissions(#[from] PermissionsError),
    /// Two of its tools have the same name.
    #[error(transparent)]
    Tools(#[from] DuplicateTool),
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// No strategy has this name.
    #[error("there is no strategy {0:?}; the strategies are {names}", names = names())]
    Strategy(String),
    /// A setting names a tool that does not exist.
    #[error("there is no tool {name:?}; the tools are {names}")]
    NoTool {
        /// The name.
        name: String,
        /// The tools that there are.
        names: String,
    },
    /// A tool was to be handed the whole context in an argument that it does not have.
    #[error("the tool {tool:?} has no argument {argument:?} for the whole context")]
    Argument {
        /// The tool.
        tool: String,
        /// The argument.
        argument: String,
    },
    /// A deep search has nothing to search.
    #[error("deep-search needs documents to search, and the agent was given none")]
    NoDocuments,
    /// No tool and no family of tools has this name.
    #[error("there is no tool or family of tools {name:?}; the tools are {known}")]
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
