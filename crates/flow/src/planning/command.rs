//! The commands of the planning tool, and what can be wrong with them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The commands, in the order in which they are listed.
pub(super) const COMMANDS: [&str; 7] =
    ["create", "update", "list", "get", "set_active", "mark_step", "delete"];

/// A call of the planning tool, as a model writes it; nothing in it is checked yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanCommand {
    /// `create`, `update`, `list`, `get`, `set_active`, `mark_step` or `delete`.
    pub command: String,
    /// The id of the plan; `get` and `mark_step` do without it when a plan is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// A title, for `create` and `update`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A list of texts, for `create` and `update`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Value>,
    /// The number of a step, counted from 0, for `mark_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<i64>,
    /// The new status of the step, for `mark_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_status: Option<String>,
    /// Notes on the step, for `mark_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_notes: Option<String>,
}

/// The reason why a command was not carried out. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A parameter that the command needs is missing or empty.
    #[error("Parameter `{parameter}` is required for command: {command}")]
    Required {
        /// The parameter.
        parameter: &'static str,
        /// The command.
        command: &'static str,
    },
    /// A plan with this id already exists.
    #[error("A plan with ID '{0}' already exists. Use 'update' to modify existing plans.")]
    Exists(String),
    /// A new plan has no steps, or they are not a list of texts.
    #[error("Parameter `steps` must be a non-empty list of strings for command: create")]
    NoSteps,
    /// The new steps of a plan are not a list of texts.
    #[error("Parameter `steps` must be a list of strings for command: update")]
    NotSteps,
    /// There is no plan with this id.
    #[error("No plan found with ID: {0}")]
    Unknown(String),
    /// No plan is named, and none is active.
    #[error("No active plan. Please specify a plan_id or set an active plan.")]
    NoActive,
    /// The plan has no step with this number.
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
    /// The arguments are not a JSON object of this shape.
    #[error("the arguments of a planning command cannot be read: {0}")]
    Arguments(String),
}

impl PlanCommand {
    /// Reads a command from the arguments of a tool call, a JSON object. Unknown keys are ignored.
    ///
    /// # Errors
    /// [`PlanError::Arguments`] when it is not such an object.
    pub fn from_json(arguments: &str) -> Result<Self, PlanError> {
        serde_json::from_str(arguments).map_err(|error| PlanError::Arguments(error.to_string()))
    }

    /// Returns whether it may change something.
    pub(super) fn changes(&self) -> bool {
        !matches!(self.command.as_str(), "list" | "get")
    }

    /// Returns the id of the plan that is named. An empty one counts as none.
    pub(super) fn plan(&self) -> Option<&str> {
        self.plan_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Returns the texts of the steps, if there is a list of them; an empty list counts as none.
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
