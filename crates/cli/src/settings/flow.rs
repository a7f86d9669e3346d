//! `[flow]`: how a flow runs, and who works on its steps.

use super::Wrong;
use crate::error::CliError;
use crate::run::{NamedModel, NamedModels};
use foldback_agent::{React, ReactSettings};
use foldback_flow::{FlowSettings, PlanShown, StepContext};
use foldback_reference_agent::FlowExecutor;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a flow runs, and who works on its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FlowSection {
    /// The executors of steps; if there are none, the agent itself.
    pub(crate) executors: Vec<ExecutorSettings>,
    /// The context in which a step is worked on.
    pub(crate) context: Context,
    /// How much of the plan a step sees.
    pub(crate) shown: Shown,
    /// How often a step that failed is tried again.
    pub(crate) max_retries: u32,
    /// How often the rest of the plan is rebuilt after a failure.
    pub(crate) max_replans: u32,
    /// Whether the model looks at the rest of the plan after each step.
    pub(crate) replan_after_each: bool,
    /// Whether executors have the tool `planning`.
    pub(crate) planning_tool: bool,
}

/// An executor of steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutorSettings {
    /// The name by which steps call it: `[NAME] ..`.
    pub(crate) name: String,
    /// What it is good at, for the model that makes the plan.
    #[serde(default)]
    pub(crate) description: String,
    /// Standing instructions that follow the agent's.
    #[serde(default)]
    pub(crate) instructions: String,
    /// Its tools, by name, or by a prefix and `*`; all if none are given.
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    /// The model of `[models]` that it works with.
    #[serde(default)]
    pub(crate) model: Option<String>,
}

/// The context in which a step is worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Context {
    /// In a context of its own.
    #[default]
    Isolated,
    /// In the flow's.
    Shared,
}

/// How much of the plan a step sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shown {
    /// All of it.
    #[default]
    Whole,
    /// The steps up to its own.
    UpToStep,
}

impl ExecutorSettings {
    /// The executor, with its model.
    pub(crate) fn of(&self, models: &NamedModels) -> Result<FlowExecutor, CliError> {
        let executor = FlowExecutor::new(&self.name, &self.description)
            .with_instructions(&self.instructions)
            .with_tools(&self.tools);
        Ok(match models.of(self.model.as_deref())? {
            Some(NamedModel { model, window }) => executor.with_model(model, window),
            None => executor,
        })
    }
}

impl Default for FlowSection {
    fn default() -> Self {
        let FlowSettings { max_retries, max_replans, replan_after_each, .. } =
            FlowSettings::default();
        Self {
            executors: Vec::new(),
            context: Context::default(),
            shown: Shown::default(),
            max_retries,
            max_replans,
            replan_after_each,
            planning_tool: true,
        }
    }
}

impl FlowSection {
    /// The settings of a flow whose steps are worked on in this way. The executors come with the agent.
    pub(crate) fn settings(&self, react: ReactSettings) -> FlowSettings {
        let context = match self.context {
            Context::Isolated => StepContext::Isolated,
            Context::Shared => StepContext::Shared,
        };
        let shown = match self.shown {
            Shown::Whole => PlanShown::Whole,
            Shown::UpToStep => PlanShown::UpToStep,
        };
        FlowSettings::default()
            .with_strategy(Arc::new(React::new(react)))
            .with_context(context)
            .with_shown(shown)
            .with_max_retries(self.max_retries)
            .with_max_replans(self.max_replans)
            .with_replan_after_each(self.replan_after_each)
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        let blank = self.executors.iter().any(|executor| executor.name.trim().is_empty());
        match blank {
            true => Err(("flow.executors", "an executor without a name; one was expected".into())),
            false => Ok(()),
        }
    }
}
