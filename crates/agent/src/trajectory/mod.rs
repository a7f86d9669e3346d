//! What happened in a run, as one record: to be read, judged, replayed and learned from.

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

/// The version of the record's shape. A reader refuses a greater one.
pub const TRAJECTORY_VERSION: u32 = 1;

/// One run, whole. Its keys are fixed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    /// What was asked, and what there was to do it with.
    pub situation: Situation,
    /// How the run went about it.
    pub strategy: StrategyRecord,
    /// The plans that were made, in order; a turn with tool calls is a plan as well.
    pub plan: Vec<PlanRecord>,
    /// The calls of the model and of tools, in the order in which they began.
    pub calls: Vec<CallRecord>,
    /// What became of each step, by turn and number.
    pub results: Vec<ResultRecord>,
    /// When each call began and ended.
    pub timing: Timing,
    /// The model's calls and tokens, by what they were for.
    pub tokens: BTreeMap<Purpose, Spent>,
    /// What judges made of it, by name; see [`judge`](crate::rewards::judge).
    pub rewards: BTreeMap<String, f64>,
    /// How it ended.
    pub outcome: Ending,
}

/// What was asked, and what there was to do it with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Situation {
    /// [`TRAJECTORY_VERSION`] of whoever wrote it.
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
    /// The todo that keeps what was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<TodoId>,
    /// The call that a sub-agent worked for, where its record stands by itself; see
    /// [`flattened`](Trajectory::flattened).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentCall>,
}

/// A call that had sub-agents work.
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

/// How a run went about its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyRecord {
    /// How it began.
    pub chosen: StrategyName,
    /// Why it began so, where that was chosen for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Why it went on step by step, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Degraded>,
    /// What each turn with tool calls was: one class a turn, in order. A planned run is one turn; a block
    /// that was refused is a turn, too.
    pub turns: Vec<TurnRecord>,
}

/// Why a run that began with one plan went on step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Degraded {
    /// The kind of reason.
    pub because: DegradeReason,
    /// The reason in words.
    pub detail: String,
}

/// The reasons to go on step by step.
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
    /// The plan has no steps: what there is to say takes the conversation, or its memory.
    NoSteps,
}

/// A turn of the model that called tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// Its number, from 0 on.
    pub turn: u32,
    /// What it was.
    pub class: TurnClass,
    /// How many calls it planned.
    pub calls: u32,
}

/// What a turn decided: to plan several steps at once, or to make one and look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnClass {
    /// Several steps at once.
    PlanOnce,
    /// A single step, to see what it brings.
    StepObserve,
}

impl TurnClass {
    /// Its name, as a record writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PlanOnce => "plan_once",
            Self::StepObserve => "step_observe",
        }
    }

    /// The class of a turn by the number of its calls.
    #[must_use]
    pub fn of(calls: usize) -> Self {
        if calls > 1 { Self::PlanOnce } else { Self::StepObserve }
    }
}

/// A plan as it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The turn it belongs to. All plans of a one-plan run are one turn.
    pub turn: u32,
    /// The form it was written in.
    #[serde(with = "FormRecord")]
    pub form: Form,
    /// Why it was made.
    pub purpose: Purpose,
    /// What was wrong with it; nothing ran then.
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

/// What the model was asked for, and what it answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelCall {
    /// What it was asked for.
    pub purpose: Purpose,
    /// A hash of the request: its messages, its tools, and which of them might be called. Runs whose
    /// requests are alike have the same hashes, see
    /// [`asked_otherwise`](Trajectory::asked_otherwise).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Its message as chat-completions JSON; `None` where it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
    /// Why the message ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// The tokens it took.
    pub usage: Usage,
    /// Why there is no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ModelFailure>,
    /// Whether an earlier process was given it, and the journal held it: it took no time now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_journal: bool,
}

/// A call of the model that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// The kind, as the provider's door names it.
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
    /// The runs of the sub-agents that worked for it, by their todos. What the model answered in them is
    /// not among the calls of this record, nor in its tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_agents: Vec<Trajectory>,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultRecord {
    /// Its turn.
    pub turn: u32,
    /// Its number.
    pub step: StepId,
    /// What became of it.
    pub result: StepResult,
}

/// When things happened, in microseconds from the beginning of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// How long all of it took.
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
    /// How many.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
}

impl CallTime {
    /// How long it took.
    #[must_use]
    pub fn took(self) -> Duration {
        Duration::from_micros(self.end_us.saturating_sub(self.start_us))
    }
}

impl Trajectory {
    /// The model's calls, in order.
    pub fn model_calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.calls.iter().filter_map(|call| match call {
            CallRecord::Model(call) => Some(call),
            CallRecord::Tool(_) => None,
        })
    }

    /// Where the model was asked otherwise than in another run: the places of these calls among
    /// [`model_calls`](Self::model_calls), ascending. A call that only one of them has counts; one
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

    /// The tools' calls, in the order in which they began; those of the context's own tools are among
    /// them.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallRecord> {
        self.calls.iter().filter_map(|call| match call {
            CallRecord::Tool(call) => Some(call),
            CallRecord::Model(_) => None,
        })
    }

    /// What became of a step.
    #[must_use]
    pub fn result(&self, turn: u32, step: StepId) -> Option<&StepResult> {
        let found = self.results.iter().find(|result| (result.turn, result.step) == (turn, step));
        found.map(|found| &found.result)
    }

    /// The model's calls and tokens in sum.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.tokens.values().fold(Spent::default(), |mut sum, spent| {
            sum.calls += spent.calls;
            sum.usage += spent.usage;
            sum
        })
    }
}
