//! The events of an agent at work, as an observer receives them.

use crate::trajectory::{Purpose, Stop};
use crate::{AgentState, Decision, Resource, Spending, StrategyName};
use foldback_core::{BlockId, ItemState, TodoId, TodoList};
use foldback_llm::Usage;
use foldback_planner::{Action, Step, StepId};
use serde::{Serialize, Serializer};

/// An event while an agent works on a task. As JSON it is an object whose `event` names the kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// A run began or resumed.
    Began {
        /// The request.
        request: String,
        /// The strategy, by its name.
        #[serde(serialize_with = "by_name")]
        strategy: StrategyName,
        /// Whether an earlier run of the same name is resumed.
        resumed: bool,
        /// The state of the run: it is running.
        state: AgentState,
    },
    /// A strategy was chosen, or replaced by another.
    Chose {
        /// The strategy, by its name.
        #[serde(serialize_with = "by_name")]
        strategy: StrategyName,
        /// The reason.
        because: String,
    },
    /// The model is asked.
    Asked {
        /// The purpose of the request.
        purpose: Purpose,
        /// The estimated tokens of the request.
        tokens: u64,
    },
    /// The model answered or failed.
    Answered {
        /// The purpose of the request.
        purpose: Purpose,
        /// The tokens that it took.
        usage: Usage,
        /// Their cost, if it is known.
        cost: Option<f64>,
        /// The text of the answer, if there is any.
        text: String,
        /// The number of tool calls in it, by the chat API.
        calls: usize,
        /// The reason why there is no answer.
        error: Option<String>,
        /// Whether the answer is an earlier run's, from the journal, so that no request was made.
        from_journal: bool,
    },
    /// Steps were planned.
    Planned {
        /// The turn that they belong to.
        turn: u32,
        /// Each step: its number, its tool (an anchor has none), and the steps it waits for.
        steps: Vec<PlannedStep>,
    },
    /// A step starts while its plan is still being written.
    StartedEarly {
        /// Its turn.
        turn: u32,
        /// Its number, its tool, and the steps it waits for.
        #[serde(flatten)]
        planned: PlannedStep,
    },
    /// A call waits for approval. The run's todo says who wants to make it.
    ApprovalAsked {
        /// Its turn.
        turn: u32,
        /// Its step.
        step: StepId,
        /// The tool.
        tool: String,
        /// The arguments as JSON text.
        arguments: String,
    },
    /// The approval of a call was decided.
    ApprovalDecided {
        /// Its turn.
        turn: u32,
        /// Its step.
        step: StepId,
        /// The decision.
        #[serde(flatten)]
        decision: Decision,
    },
    /// A tool's call began.
    CallBegan {
        /// Its turn.
        turn: u32,
        /// Its step.
        step: StepId,
        /// The tool.
        tool: String,
        /// The arguments as JSON text.
        arguments: String,
    },
    /// A tool's call ended.
    CallEnded {
        /// Its turn.
        turn: u32,
        /// Its step.
        step: StepId,
        /// The tool; empty for an anchor.
        tool: String,
        /// The arguments as JSON text, of a call that began in an earlier process. Those of any other are in
        /// [`CallBegan`](Self::CallBegan).
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// Whether it succeeded.
        success: bool,
        /// The exit code of the command that it ran, if it ran one.
        exit_code: Option<i64>,
        /// The beginning of the text that the model reads.
        excerpt: String,
        /// The time that it took, in microseconds.
        took_us: u64,
        /// Whether the result is an earlier run's, from the journal, so that nothing was called.
        from_journal: bool,
    },
    /// A step will not run because of another.
    CallSkipped {
        /// Its turn.
        turn: u32,
        /// The step.
        step: StepId,
        /// The step because of which it does not run.
        because: StepId,
    },
    /// The model looked back with one of the context policy's tools.
    Recalled {
        /// The tool.
        tool: String,
        /// The arguments as JSON text.
        arguments: String,
        /// Whether it was answered with an error.
        is_error: bool,
        /// The beginning of the answer.
        excerpt: String,
    },
    /// Parts of the conversation were closed, and left the view or may leave it.
    Folded {
        /// The blocks.
        blocks: Vec<BlockId>,
        /// The estimated tokens of everything that was recorded so far.
        recorded_tokens: u64,
    },
    /// The todo list changed.
    Todos {
        /// The current list.
        list: TodoList,
    },
    /// A sub-agent began to work on an item.
    Delegated {
        /// The item's todo.
        item: TodoId,
        /// The request to the sub-agent.
        request: String,
    },
    /// A sub-agent handed its item back.
    HandedBack {
        /// The item's todo.
        item: TodoId,
        /// The state of the item.
        state: ItemState,
        /// The result.
        result: String,
    },
    /// The model repeats itself, and was asked to try another way.
    Stuck,
    /// A resource may not be spent any more.
    Exhausted {
        /// The resource.
        resource: Resource,
        /// Whether the limit is that of a share of what the whole task may spend.
        of_share: bool,
    },
    /// A note on something that has no event of its own.
    Noted {
        /// The text of the note.
        text: String,
    },
    /// The run ended.
    Ended {
        /// The reason.
        stop: Stop,
        /// The answer, if there is one.
        answer: Option<String>,
        /// What the run spent.
        spent: Spending,
        /// The state of the run now.
        state: AgentState,
    },
}

/// Names each kind of event exactly once, or does not compile.
macro_rules! kinds {
    ($($kind:ident: $name:literal,)+) => {
        impl AgentEvent {
            /// The names of the kinds, as `event` has them in JSON.
            pub const KINDS: &'static [&'static str] = &[$($name),+];

            /// Returns the name of its kind.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind { .. } => $name,)+
                }
            }
        }
    };
}

kinds! {
    Began: "began",
    Chose: "chose",
    Asked: "asked",
    Answered: "answered",
    Planned: "planned",
    StartedEarly: "started_early",
    ApprovalAsked: "approval_asked",
    ApprovalDecided: "approval_decided",
    CallBegan: "call_began",
    CallEnded: "call_ended",
    CallSkipped: "call_skipped",
    Recalled: "recalled",
    Folded: "folded",
    Todos: "todos",
    Delegated: "delegated",
    HandedBack: "handed_back",
    Stuck: "stuck",
    Exhausted: "exhausted",
    Noted: "noted",
    Ended: "ended",
}

/// Writes a strategy as commands name it: `one-plan`.
fn by_name<S: Serializer>(strategy: &StrategyName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(strategy.as_str())
}

/// A step of a plan as observers receive it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    /// Its number.
    pub step: StepId,
    /// The tool; an anchor has none.
    pub tool: Option<String>,
    /// The steps that it waits for.
    pub after: Vec<StepId>,
}

impl From<&Step> for PlannedStep {
    fn from(step: &Step) -> Self {
        let tool = match &step.action {
            Action::Call { function, .. } => Some(function.clone()),
            Action::Anchor { .. } => None,
        };
        Self { step: step.id, tool, after: step.after.clone() }
    }
}
