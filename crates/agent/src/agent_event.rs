//! What an observer hears of an agent while it works.

use crate::trajectory::{Purpose, Stop};
use crate::{AgentState, Decision, Resource, Spending, StrategyName};
use foldback_core::{BlockId, ItemState, TodoId, TodoList};
use foldback_llm::Usage;
use foldback_planner::{Action, Step, StepId};
use serde::{Serialize, Serializer};

/// A thing that happens while an agent works on a task. As JSON an object whose `event` names the kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// A run began, or went on.
    Began {
        /// What is asked.
        request: String,
        /// The strategy, by its name.
        #[serde(serialize_with = "by_name")]
        strategy: StrategyName,
        /// Whether an earlier run of the same name is gone on with.
        resumed: bool,
        /// Where the run stands now: it is running.
        state: AgentState,
    },
    /// A strategy was chosen, or another one than before.
    Chose {
        /// The strategy, by its name.
        #[serde(serialize_with = "by_name")]
        strategy: StrategyName,
        /// Why.
        because: String,
    },
    /// The model is asked.
    Asked {
        /// What for.
        purpose: Purpose,
        /// The estimated tokens of the request.
        tokens: u64,
    },
    /// The model answered, or could not.
    Answered {
        /// What it was asked for.
        purpose: Purpose,
        /// The tokens it took.
        usage: Usage,
        /// What they cost, where that is known.
        cost: Option<f64>,
        /// Its words, as far as there are any.
        text: String,
        /// How many calls of tools it makes by the chat API.
        calls: usize,
        /// Why there is no answer.
        error: Option<String>,
        /// Whether the answer is an earlier run's, from the journal: nobody was asked.
        from_journal: bool,
    },
    /// Steps were planned.
    Planned {
        /// The turn they belong to.
        turn: u32,
        /// Each step: its number, its tool (an anchor has none), and the steps it waits for.
        steps: Vec<PlannedStep>,
    },
    /// A step starts while the plan that it stands in is still being written.
    StartedEarly {
        /// Its turn.
        turn: u32,
        /// Its number, its tool, and the steps it waits for.
        #[serde(flatten)]
        planned: PlannedStep,
    },
    /// A call waits until somebody says whether it may be made. Who wants to make it is the run's todo.
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
    /// It was said whether a call may be made.
    ApprovalDecided {
        /// Its turn.
        turn: u32,
        /// Its step.
        step: StepId,
        /// What was said.
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
        /// The tool.
        tool: String,
        /// Whether it went well.
        success: bool,
        /// What the command that it ran ended with, where it ran one.
        exit_code: Option<i64>,
        /// The beginning of what the model is told of it.
        excerpt: String,
        /// How long it took, in microseconds.
        took_us: u64,
        /// Whether the result is an earlier run's, from the journal: nothing was called.
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
    /// The model looked back by one of the context policy's tools.
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
    /// Parts of the conversation were closed and left the view, or may.
    Folded {
        /// The blocks.
        blocks: Vec<BlockId>,
        /// The estimated tokens of everything that was recorded so far.
        recorded_tokens: u64,
    },
    /// The todo list changed.
    Todos {
        /// The list as it stands now.
        list: TodoList,
    },
    /// A sub-agent began to work on an item.
    Delegated {
        /// The item's todo.
        item: TodoId,
        /// What it is asked.
        request: String,
    },
    /// A sub-agent handed its item back.
    HandedBack {
        /// The item's todo.
        item: TodoId,
        /// Where the item stands.
        state: ItemState,
        /// What came out.
        result: String,
    },
    /// The model repeats itself, and was told to go about it otherwise.
    Stuck,
    /// Something may not be spent any more.
    Exhausted {
        /// What.
        resource: Resource,
        /// Whether the bound is that of a share of what the whole task may spend.
        of_share: bool,
    },
    /// Something worth a line that has no event of its own.
    Noted {
        /// The line.
        text: String,
    },
    /// The run ended.
    Ended {
        /// Why.
        stop: Stop,
        /// The answer, where it came to one.
        answer: Option<String>,
        /// What was spent by it.
        spent: Spending,
        /// Where the run stands now.
        state: AgentState,
    },
}

/// Names each kind of event once, or does not compile.
macro_rules! kinds {
    ($($kind:ident: $name:literal,)+) => {
        impl AgentEvent {
            /// The name of each kind, as `event` has it in JSON.
            pub const KINDS: &'static [&'static str] = &[$($name),+];

            /// The name of its kind.
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

/// A strategy as commands name it: `one-plan`.
fn by_name<S: Serializer>(strategy: &StrategyName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(strategy.as_str())
}

/// A step of a plan as it is told to whoever watches.
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
