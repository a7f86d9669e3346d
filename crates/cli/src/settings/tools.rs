//! `[tools]`: what an agent has to work with, and what it may do without asking.

use super::Wrong;
use crate::error::CliError;
use crate::run::{NamedModel, NamedModels, host};
use foldback_reference_agent::Calculator;
use foldback_tools::{Permissions, ShellPermissions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What an agent has to work with, and what it may do without asking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolSettings {
    /// Whether everything that changes something is approved.
    pub(crate) approve: bool,
    /// The families and names of the tools that the agent has.
    pub(crate) only: Vec<String>,
    /// Whether files of the workspace may be written.
    pub(crate) write: bool,
    /// Whether commands may be run, in the sandbox.
    pub(crate) shell: bool,
    /// The longest time of a command.
    pub(crate) shell_seconds: u64,
    /// The most memory of a command.
    pub(crate) shell_memory_mib: u64,
    /// The hosts that pages may be fetched from.
    pub(crate) hosts: Vec<String>,
    /// Whether those hosts may be in a private network.
    pub(crate) private_hosts: bool,
    /// The file of MCP servers.
    pub(crate) mcp: Option<PathBuf>,
    /// The folder of documents that deep search reads.
    pub(crate) documents: Option<PathBuf>,
    /// The tools for which a sub-agent works in the agent's place.
    pub(crate) calculators: Vec<CalculatorSettings>,
    /// The tools that are handed the whole context, and the argument for it.
    pub(crate) context_readers: BTreeMap<String, String>,
}

/// A tool for which a sub-agent works in the agent's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalculatorSettings {
    /// The tool.
    pub(crate) tool: String,
    /// What the sub-agent is asked, with `{name}` for an argument and `{arguments}` for all of them.
    #[serde(default)]
    pub(crate) task: Option<String>,
    /// The most tokens of the conclusion.
    #[serde(default = "conclusion_tokens")]
    pub(crate) conclusion_tokens: usize,
    /// The model of `[models]` that it works with.
    #[serde(default)]
    pub(crate) model: Option<String>,
}

fn conclusion_tokens() -> usize {
    Calculator::CONCLUSION_TOKENS
}

impl CalculatorSettings {
    /// The calculator, with its model.
    pub(crate) fn of(&self, models: &NamedModels) -> Result<Calculator, CliError> {
        let mut calculator =
            Calculator::new(&self.tool).with_conclusion_tokens(self.conclusion_tokens);
        if let Some(task) = &self.task {
            calculator = calculator.with_task(task);
        }
        Ok(match models.of(self.model.as_deref())? {
            Some(NamedModel { model, window }) => calculator.with_model(model, window),
            None => calculator,
        })
    }
}

impl Default for ToolSettings {
    fn default() -> Self {
        let shell = ShellPermissions::default();
        Self {
            approve: false,
            only: Vec::new(),
            write: true,
            shell: true,
            shell_seconds: shell.time_s,
            shell_memory_mib: shell.memory_mib,
            hosts: Vec::new(),
            private_hosts: false,
            mcp: None,
            documents: None,
            calculators: Vec::new(),
            context_readers: BTreeMap::new(),
        }
    }
}

impl ToolSettings {
    /// What tools may do in a workspace.
    pub(crate) fn permissions(&self, workspace: PathBuf) -> Permissions {
        let mut permissions = match self.write {
            true => Permissions::in_workspace(workspace),
            false => Permissions::default().workspace(workspace).with_read("."),
        };
        if self.shell {
            permissions = permissions.with_shell();
        }
        permissions.shell.time_s = self.shell_seconds;
        permissions.shell.memory_mib = self.shell_memory_mib;
        permissions
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        for name in &self.hosts {
            host(name).map_err(|what| ("tools.hosts", format!("{name:?}: {what}")))?;
        }
        let bounds = [
            ("tools.shell_seconds", self.shell_seconds),
            ("tools.shell_memory_mib", self.shell_memory_mib),
        ];
        match bounds.into_iter().find(|(_, bound)| *bound == 0) {
            Some((key, _)) => {
                Err((key, "0 leaves nothing to do; at least 1 was expected".to_owned()))
            }
            None => Ok(()),
        }
    }
}
