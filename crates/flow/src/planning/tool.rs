//! The planning tool, by which a model keeps plans.

use super::command::{PlanCommand, PlanError};
use super::plans::Plans;
use super::text_plan::TextPlan;
use foldback_agent::{Journal, JournalError, Record};
use foldback_core::ToolDefinition;
use foldback_tool::{CallContext, Concurrency, Effect, Tool, ToolError, ToolOutput, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// The tool's name.
pub(crate) const PLANNING: &str = "planning";

/// The number of latest calls whose answers are remembered.
const MAX_ANSWERS: usize = 1_000;

/// The kind under which a journal notes changes.
const KIND: &str = "plan";

/// A tool that keeps plans whose steps are texts, for a model that works through a long task.
///
/// One tool keeps the plans of one run. [Kept in the run's journal](Self::kept_in) they survive the end
/// of the process: each change is written, with the call that made it, before the call is answered, and
/// the plans are rebuilt from these changes. A call that was made and whose answer was lost is answered
/// again, and changes nothing twice.
///
/// Calls of one turn are carried out in their order.
///
/// A [flow](crate::FlowSettings::with_planning) shows its own plan in the tool: the executor of a step can
/// look at that plan with `list` and `get`, and keep others beside it. It cannot change the flow's own plan.
pub struct PlanningTool {
    spec: ToolSpec,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    plans: Plans,
    /// The plan of the flow that the tool is used in.
    of_flow: Option<TextPlan>,
    /// The answers to changes, by the keys of their calls.
    answered: BTreeMap<String, String>,
    /// These keys, the oldest first.
    keys: VecDeque<String>,
    /// The journal to which changes are written, and the run that they belong to.
    journal: Option<(Arc<dyn Journal>, String)>,
}

/// A change, as a journal holds it.
#[derive(Serialize, Deserialize)]
struct Change {
    key: String,
    command: PlanCommand,
}

impl PlanningTool {
    /// Creates a tool without plans; its plans end with the process.
    #[must_use]
    pub fn new() -> Self {
        Self { spec: spec(), kept: Arc::default() }
    }

    /// Creates a tool whose plans are kept in `journal` beside the records of `run`, and restores those that it holds.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn kept_in(journal: Arc<dyn Journal>, run: &str) -> Result<Self, JournalError> {
        let name = format!("{run}/plans");
        let mut kept = Kept::default();
        for record in journal.records(&name)? {
            let Record::Note { kind, body } = record else { continue };
            if kind == KIND {
                kept.again(serde_json::from_str(&body)?);
            }
        }
        kept.journal = Some((journal, name));
        Ok(Self { spec: spec(), kept: Arc::new(Mutex::new(kept)) })
    }

    /// Returns the current plans.
    #[must_use]
    pub fn plans(&self) -> Plans {
        self.kept.lock().plans.clone()
    }

    /// Shows the current plan of a flow.
    pub(crate) fn show(&self, plan: &TextPlan) {
        self.kept.lock().of_flow = Some(plan.clone());
    }

    /// Returns the definition of the tool for a model.
    pub(crate) fn definition() -> ToolDefinition {
        ToolDefinition {
            name: PLANNING.to_owned(),
            description:
                "Keeps plans for tasks of many steps: make a plan, change its steps, mark the \
                          status of each, and view the progress."
                    .to_owned(),
            parameters: PARAMETERS.to_owned(),
        }
    }
}

impl Kept {
    /// Carries out a command, and writes it to the journal if it changed something.
    fn carry_out(&mut self, key: &str, command: PlanCommand) -> Result<String, ToolError> {
        if let Some(answer) = self.answered.get(key) {
            return Ok(answer.clone());
        }
        let changes = command.changes();
        let mut plans = self.plans.clone();
        if let Some(plan) = &self.of_flow {
            let is_meant = match command.plan() {
                Some(id) => id == plan.id,
                None => command.command == "mark_step" && plans.active().is_none(),
            };
            if changes && is_meant {
                return Err(ToolError::arguments(format!(
                    "the plan {} is the flow's own, which marks its steps by itself; make a plan of \
                     another id with `create`",
                    plan.id
                )));
            }
            if !changes {
                plans = plans.beside(plan);
            }
        }
        let answer = plans.apply(&command).map_err(of_plan_error)?;
        if let Some((journal, run)) = self.journal.as_ref().filter(|_| changes) {
            let change = Change { key: key.to_owned(), command };
            let body = serde_json::to_string(&change).map_err(JournalError::from);
            let note = body.map(|body| Record::Note { kind: KIND.to_owned(), body });
            note.and_then(|note| journal.append(run, &note)).map_err(|error| {
                ToolError::permanent(format!("the plan was not changed: {error}"))
            })?;
        }
        if changes {
            self.plans = plans;
            self.remember(key, &answer);
        }
        Ok(answer)
    }

    /// Remembers the answer to a call, and forgets the oldest.
    fn remember(&mut self, key: &str, answer: &str) {
        if key.is_empty() {
            return;
        }
        self.answered.insert(key.to_owned(), answer.to_owned());
        self.keys.push_back(key.to_owned());
        if self.keys.len() > MAX_ANSWERS
            && let Some(oldest) = self.keys.pop_front()
        {
            self.answered.remove(&oldest);
        }
    }

    /// Repeats a change from an earlier process.
    fn again(&mut self, Change { key, command }: Change) {
        // A command that succeeded then succeeds now.
        if let Ok(answer) = self.plans.apply(&command) {
            self.remember(&key, &answer);
        }
    }
}

impl Tool for PlanningTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let command = PlanCommand::from_json(arguments).map_err(of_plan_error)?;
            let (kept, key) = (Arc::clone(&self.kept), context.idempotency_key.clone());
            // The journal may be a file, so writing may block.
            let told = tokio::task::spawn_blocking(move || kept.lock().carry_out(&key, command));
            let told = told.await.map_err(|error| ToolError::permanent(error.to_string()))??;
            Ok(ToolOutput::text(told))
        }
        .boxed()
    }
}

fn of_plan_error(error: PlanError) -> ToolError {
    ToolError::arguments(error.to_string())
}

fn spec() -> ToolSpec {
    ToolSpec::new(PlanningTool::definition())
        .with_effect(Effect::Idempotent)
        .with_concurrency(Concurrency::Exclusive)
}

impl Default for PlanningTool {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PlanningTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanningTool").field("plans", &self.kept.lock().plans).finish()
    }
}

const PARAMETERS: &str = r#"{
  "type": "object",
  "properties": {
    "command": {
      "type": "string",
      "enum": ["create", "update", "list", "get", "set_active", "mark_step", "delete"],
      "description": "What to do."
    },
    "plan_id": {
      "type": "string",
      "description": "The plan's id. Required by create, update, set_active and delete; get and mark_step take the active plan without it."
    },
    "title": {
      "type": "string",
      "description": "The plan's title. Required by create, optional for update."
    },
    "steps": {
      "type": "array",
      "items": {"type": "string"},
      "description": "The plan's steps, in order. Required by create, optional for update: a step whose text stays the same at its place keeps its status and notes."
    },
    "step_index": {
      "type": "integer",
      "description": "The step's number, counted from 0. Required by mark_step."
    },
    "step_status": {
      "type": "string",
      "enum": ["not_started", "in_progress", "completed", "blocked"],
      "description": "The step's current status, for mark_step."
    },
    "step_notes": {
      "type": "string",
      "description": "What is worth knowing about the step, for mark_step."
    }
  },
  "required": ["command"],
  "additionalProperties": false
}"#;
