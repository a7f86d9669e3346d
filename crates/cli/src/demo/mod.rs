//! The demo: recorded turns of a model against real tools, in a small invented project.

mod project;
mod script;

pub(crate) use project::write_project;

use crate::error::CliError;
use foldback_agent::{Adaptive, StrategyName, TokenPrices};
use foldback_core::ToolDefinition;
use foldback_llm::ChatModel;
use foldback_tool::{FunctionTool, Tool, ToolError, ToolSpec};
use script::Script;
use std::sync::Arc;
use std::time::Duration;

/// The task of the demo's agent.
pub(crate) const TASK: &str = "The tide report shows impossible lows. Find out why, mend the report, have the docs \
                               tell of the cause, and write down which correction the gauge at Holm needs.";

/// The demo's strategy.
pub(crate) const STRATEGY: StrategyName = Adaptive::NAME;

/// The demo's context policy.
pub(crate) const CONTEXT: &str = "foldback";

/// The recorded turns.
const TURNS: &str = include_str!("turns.json");

/// The price of a million tokens, so that there is something to save.
pub(crate) const MONEY: TokenPrices =
    TokenPrices { input: 3.0, output: 15.0, cached_read: 3.0, cached_write: 3.0 };

/// The tool that runs commands.
const SHELL: &str = "shell_run";

/// A shell that refuses: it takes the place of the real one if no sandbox is available, so that the demo shows that
/// case.
pub(crate) fn refused_shell() -> Arc<dyn Tool> {
    let spec = ToolSpec::new(ToolDefinition {
        name: SHELL.to_owned(),
        description: "Runs a command in a sandbox.".to_owned(),
        parameters: r#"{"type": "object", "required": ["command"]}"#.to_owned(),
    });
    Arc::new(FunctionTool::new(spec, |_, _| async {
        Err(ToolError::permanent("commands cannot be run here: no sandbox is available"))
    }))
}

/// How long the model thinks before a turn if somebody watches.
const PACE: Duration = Duration::from_millis(900);

/// The model of the demo. It thinks for a moment if somebody watches.
pub(crate) fn model(is_watched: bool) -> Result<Arc<dyn ChatModel>, CliError> {
    let pace = if is_watched { PACE } else { Duration::ZERO };
    let script = Script::parse(TURNS, pace).map_err(|error| {
        CliError::Usage(format!("the recorded turns of the demo cannot be read: {error}"))
    })?;
    Ok(Arc::new(script))
}
