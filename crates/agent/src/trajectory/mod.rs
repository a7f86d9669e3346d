//! The record of a run: to be read, judged, replayed and learned from.

mod ending;
mod json_lines;
mod purpose;
mod recorder;
mod replay;
mod sub_agents;
mod tool_record;

pub use ending::{Ending, Stop, TerminateStatus};
pub use json_lines::{TrajectoryError, read_trajectories, write_trajectory};
pub use purpose::Purpose;
pub(crate) use recorder::Recorder;
pub(crate) use recorder::hash_of;
pub use replay::Replay;
pub use tool_record::{LanguageRecord, ToolRecord};

use crate::StrategyName;
use foldback_core::TodoId;
use foldback_llm::{StopReason, Usage};
use foldback_planner::{Form, Step, StepId, StepResult};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;

/// The version of the record's format. A reader refuses a higher one.
pub const TRAJECTORY_VERSION: u32 = 1;

/// The record of a whole run. Its keys are fixed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    /// The request, and the means to work on it.
    pub situation: Situation,
    /// How the run worked on it.
    pub strategy: StrategyRecord,
    /// The plans that were made, in order; a turn with tool calls is a plan as well.
    pub plan: Vec<PlanRecord>,
    /// The calls of the model and of tools, in the order in which they began.
    pub calls: Vec<CallRecord>,
    /// The results of the steps, by turn and number.
    pub results: Vec<ResultRecord>,
    /// When each call began and ended.
    pub timing: Timing,
    /// The model's calls and tokens, by purpose.
    pub tokens: BTreeMap<Purpose, Spent>,
    /// The rewards that judges gave, by name; see [`judge`](crate::rewards::judge).
    pub rewards: BTreeMap<String, f64>,
    /// How it ended.
    pub outcome: Ending,
}

/// The request, and the means to work on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Situation {
    /// The writer's [`TRAJECTORY_VERSION`].
    pub version: u32,
    /// The standing instructions.
    #[serde(rename = "head")]
    pub system_prompt: String,
    /// The request.
    pub request: String,
    /// The model, as its provider names it.
    pub model: String,
    /// The tools, by name.
    pub tools: Vec<ToolRecord>,
    /// The todo that holds the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<TodoId>,
    /// The call that a sub-agent worked for, if its record is separate; see
    /// [`flattened`](Trajectory::flattened).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentCall>,
}

/// A call for which sub-agents worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentCall {
    /// The todo of the run that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<TodoId>,
    /// Its turn there.
    pub turn: u32,
    /// Its step.
    pub step: StepId,
}

/// How a run worked on its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyRecord {
    /// The strategy that it began with.
    pub chosen: StrategyName,
    /// Why it began with that, if it was chosen for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Why it continued step by step, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Degraded>,
    /// The class of each turn with tool calls, in order. A planned run is one turn; a block that was refused
    /// is a turn, too.
    pub turns: Vec<TurnRecord>,
}

/// Why a run that began with one plan continued step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Degraded {
    /// The kind of reason.
    pub because: DegradeReason,
    /// The reason in words.
    pub detail: String,
}

/// The reasons to continue step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DegradeReason {
    /// The planner said that the task is open-ended.
    Declared,
    /// The plan was not sound, nor was its repair.
    InvalidPlan,
    /// A decision is open, and no replan is left to make it.
    ReplansSpent,
    /// The plan has no steps: the answer needs the conversation, or its memory.
    NoSteps,
}

/// A turn of the model that called tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// Its number, counted from 0.
    pub turn: u32,
    /// Its class.
    pub class: TurnClass,
    /// The number of calls that it planned.
    pub calls: u32,
}

/// The decision of a turn: to plan several steps at once, or to take one and look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnClass {
    /// Several steps at once.
    PlanOnce,
    /// A single step, to see its result.
    StepObserve,
}

impl TurnClass {
    /// Returns its name, as a record writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PlanOnce => "plan_once",
            Self::StepObserve => "step_observe",
        }
    }

    /// Returns the class of a turn by the number of its calls.
    #[must_use]
    pub fn of(calls: usize) -> Self {
        if calls > 1 { Self::PlanOnce } else { Self::StepObserve }
    }
}

/// A plan as it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The turn that it belongs to. All plans of a one-plan run are one turn.
    pub turn: u32,
    /// The form in which it was written.
    #[serde(with = "FormRecord")]
    pub form: Form,
    /// The purpose of the request for it.
    pub purpose: Purpose,
    /// Its faults; if there are any, nothing ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Its steps, references unfilled.
    pub steps: Vec<Step>,
}

/// The names of the forms in a record.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Form", rename_all = "snake_case")]
enum FormRecord {
    OnePlan,
    ExecuteTools,
    Native,
}

/// A call of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallRecord {
    /// The model was asked.
    Model(ModelCall),
    /// A tool ran.
    Tool(ToolCallRecord),
}

/// A request to the model, and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelCall {
    /// The purpose of the request.
    pub purpose: Purpose,
    /// A hash of the request: its messages, its tools, and which of them might be called. Runs with equal
    /// requests have equal hashes, see [`asked_otherwise`](Trajectory::asked_otherwise).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Its message as chat-completions JSON; `None` if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
    /// Why the message ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// The tokens that it took.
    pub usage: Usage,
    /// The reason why there is no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ModelFailure>,
    /// Whether an earlier process received it and the journal held it, so that it took no time now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_journal: bool,
}

/// A call of the model that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// The kind, as the provider's client names it.
    pub kind: String,
    /// What happened.
    pub message: String,
}

/// A tool's call as it was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// The turn that planned it.
    pub turn: u32,
    /// Its step.
    pub step: StepId,
    /// The tool.
    pub function: String,
    /// The arguments as JSON text, references filled in.
    pub arguments: String,
    /// The runs of the sub-agents that worked for it, by their todos. Their calls of the model are not among
    /// the calls of this record, nor in its tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_agents: Vec<Trajectory>,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultRecord {
    /// Its turn.
    pub turn: u32,
    /// Its number.
    pub step: StepId,
    /// The result.
    pub result: StepResult,
}

/// Times, in microseconds from the beginning of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// How long the whole run took.
    pub total_us: u64,
    /// When each of the calls began and ended, in the order of `calls`.
    pub calls: Vec<CallTime>,
}

/// A stretch of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTime {
    /// When it began.
    pub start_us: u64,
    /// When it ended.
    pub end_us: u64,
}

/// The model's calls of one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The number of calls.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
}

impl CallTime {
    /// Returns how long it took.
    #[must_use]
    pub fn took(self) -> Duration {
        Duration::from_micros(self.end_us.saturating_sub(self.start_us))
    }
}

impl Trajectory {
    /// Iterates over the model's calls, in order.
    pub fn model_calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.calls.iter().filter_map(|call| match call {
            CallRecord::Model(call) => Some(call),
            CallRecord::Tool(_) => None,
        })
    }

    /// Returns the calls whose requests differ from those of another run: their places among
    /// [`model_calls`](Self::model_calls), ascending. A call that only one of the runs has counts; a call
    /// whose request was not recorded does not.
    #[must_use]
    pub fn asked_otherwise(&self, other: &Self) -> Vec<usize> {
        let requests = |record: &Self| -> Vec<Option<String>> {
            record.model_calls().map(|call| call.request.clone()).collect()
        };
        let (own, other) = (requests(self), requests(other));
        let differ = |at: &usize| match (own.get(*at), other.get(*at)) {
            (Some(Some(own)), Some(Some(other))) => own != other,
            (Some(_), Some(_)) => false,
            _ => true,
        };
        (0..own.len().max(other.len())).filter(differ).collect()
    }

    /// Iterates over the calls of tools, in the order in which they began, including those of the context's
    /// own tools.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallRecord> {
        self.calls.iter().filter_map(|call| match call {
            CallRecord::Tool(call) => Some(call),
            CallRecord::Model(_) => None,
        })
    }

    /// Returns the result of a step.
    #[must_use]
    pub fn result(&self, turn: u32, step: StepId) -> Option<&StepResult> {
        let found = self.results.iter().find(|result| (result.turn, result.step) == (turn, step));
        found.map(|found| &found.result)
    }

    /// Returns the totals of the model's calls and tokens.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.tokens.values().fold(Spent::default(), |mut sum, spent| {
            sum.calls += spent.calls;
            sum.usage += spent.usage;
            sum
        })
    }
}
