//! What a model asks the planning tool, and what can be wrong with it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The commands, as they are told.
pub(super) const COMMANDS: [&str; 7] =
    ["create", "update", "list", "get", "set_active", "mark_step", "delete"];

/// A call of the planning tool, as a model writes it: nothing of it is checked yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanCommand {
    /// `create`, `update`, `list`, `get`, `set_active`, `mark_step` or `delete`.
    pub command: String,
    /// Which plan; `get` and `mark_step` go without where a plan is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// A title, for `create` and `update`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A list of texts, for `create` and `update`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Value>,
    /// The number of a step, from 0 on, for `mark_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<i64>,
    /// Where the step stands now, for `mark_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_status: Option<String>,
    /// What is worth knowing of the step, for `mark_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_notes: Option<String>,
}

/// Why a command was not carried out. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Something that the command needs is not there, or empty.
    #[error("Parameter `{parameter}` is required for command: {command}")]
    Required {
        /// What.
        parameter: &'static str,
        /// The command.
        command: &'static str,
    },
    /// There is a plan of this id already.
    #[error("A plan with ID '{0}' already exists. Use 'update' to modify existing plans.")]
    Exists(String),
    /// A new plan has no steps, or not a list of texts.
    #[error("Parameter `steps` must be a non-empty list of strings for command: create")]
    NoSteps,
    /// The steps that a plan is to have are not a list of texts.
    #[error("Parameter `steps` must be a list of strings for command: update")]
    NotSteps,
    /// There is no plan of this id.
    #[error("No plan found with ID: {0}")]
    Unknown(String),
    /// No plan is named, and none is active.
    #[error("No active plan. Please specify a plan_id or set an active plan.")]
    NoActive,
    /// The plan has no step of this number.
    #[error("Invalid step_index: {index}. Valid indices range from 0 to {last}.")]
    Index {
        /// The number.
        index: i64,
        /// The number of the last step.
        last: usize,
    },
    /// There is no such status.
    #[error(
        "Invalid step_status: {0}. Valid statuses are: not_started, in_progress, completed, blocked"
    )]
    Status(String),
    /// There is no such command.
    #[error("Unrecognized command: {0}. Allowed commands are: {commands}", commands = COMMANDS.join(", "))]
    Command(String),
    /// The arguments are no JSON object of this shape.
    #[error("the arguments of a planning command cannot be read: {0}")]
    Arguments(String),
}

impl PlanCommand {
    /// Reads a command as it stands in a tool call: a JSON object. Keys that a command does not have
    /// are passed over.
    ///
    /// # Errors
    /// [`PlanError::Arguments`] when it is no such object.
    pub fn from_json(arguments: &str) -> Result<Self, PlanError> {
        serde_json::from_str(arguments).map_err(|error| PlanError::Arguments(error.to_string()))
    }

    /// Whether it may change something.
    pub(super) fn changes(&self) -> bool {
        !matches!(self.command.as_str(), "list" | "get")
    }

    /// The plan that is named. An empty name is none.
    pub(super) fn plan(&self) -> Option<&str> {
        self.plan_id.as_deref().filter(|id| !id.is_empty())
    }

    /// The texts of the steps, where there is a list of them; one that is empty is none.
    pub(crate) fn texts(&self) -> Result<Option<Vec<String>>, PlanError> {
        let list = match &self.steps {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(PlanError::NotSteps),
        };
        let texts = list.iter().map(|step| step.as_str().map(str::to_owned));
        let texts: Vec<String> = texts.collect::<Option<_>>().ok_or(PlanError::NotSteps)?;
        Ok((!texts.is_empty()).then_some(texts))
    }
}
