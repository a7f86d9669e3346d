//! What can happen in a run.

use crate::executor::CallReport;
use crate::model_caller::Piece;
use crate::trajectory::{Degraded, Purpose, Stop, Trajectory};
use crate::{ApprovalRequest, Decision, Outcome, Spending, StrategyName};
use foldback_core::{BlockId, ItemState, TodoId, TodoList, ToolCall};
use foldback_llm::{ChatRequest, ChatResponse, ModelError, Usage};
use foldback_planner::{Plan, Step, StepId, StepResult};
use std::fmt;
use tracing::Span;

/// A thing that happens in a run, as it is [emitted](crate::RunLog::emit).
///
/// It borrows what it is about, so that nothing is put together for a subscriber that is not there.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// The run began, or an earlier run of the same name was resumed.
    Began {
        /// What is asked.
        request: &'a str,
        /// The strategy.
        strategy: &'a StrategyName,
        /// Whether an earlier run is resumed.
        resumed: bool,
    },
    /// A strategy was chosen for the request.
    Chose {
        /// The strategy.
        strategy: &'a StrategyName,
        /// Why.
        because: &'a str,
    },
    /// A planned run continues step by step.
    Degraded {
        /// Why, for the record.
        degraded: &'a Degraded,
        /// Why, in words.
        because: &'a str,
    },
    /// The model is asked.
    Asked {
        /// What for.
        purpose: &'a Purpose,
        /// The name of the question among those of its purpose that are open.
        key: &'a str,
        /// The request.
        request: &'a ChatRequest,
        /// The estimated tokens of the request.
        tokens: u64,
    },
    /// The model writes: only the observer hears of it.
    Wrote {
        /// What it writes, and for which question.
        piece: Piece<'a>,
    },
    /// The model has answered, or could not.
    Answered {
        /// What it was asked for.
        purpose: &'a Purpose,
        /// The name of the question.
        key: &'a str,
        /// What came of it.
        answer: &'a Result<ChatResponse, ModelError>,
        /// Whether the answer is an earlier run's, from the journal: the model was not asked.
        from_journal: bool,
        /// The [hash](crate::trajectory::ModelCall::request) of the request, where the journal holds it.
        request_hash: Option<&'a str>,
        /// The span of the call.
        span: &'a Span,
    },
    /// The context's policy has asked a model for its own ends.
    PolicyAsked {
        /// The tokens that it took.
        usage: Usage,
        /// What they cost, where that is known and not what the run's model would have cost.
        cost: Option<f64>,
    },
    /// Steps were planned.
    Planned {
        /// The turn that they belong to.
        turn: u32,
        /// What the plan was asked for.
        purpose: &'a Purpose,
        /// The steps.
        plan: &'a Plan,
        /// How many calls the model planned; of some there may be no step.
        calls: usize,
        /// What keeps the plan from being run; nothing, where it is run.
        findings: &'a [String],
    },
    /// The call of a step takes its place in the record. Without this, the calls of a turn take their
    /// places in the order of the steps when the executor [ends them](Self::StepsRan).
    StepPlaced {
        /// Its turn.
        turn: u32,
        /// The step.
        step: StepId,
        /// The tool.
        tool: &'a str,
        /// The arguments as JSON text.
        arguments: &'a str,
    },
    /// The executor begins a step's call.
    StepBegan {
        /// Its turn.
        turn: u32,
        /// The step.
        step: StepId,
        /// The tool.
        tool: &'a str,
        /// The arguments as JSON text.
        arguments: &'a str,
    },
    /// A step has its result.
    StepEnded {
        /// Its turn.
        turn: u32,
        /// The step.
        step: StepId,
        /// The tool; an anchor has none.
        tool: Option<&'a str>,
        /// What became of it.
        result: &'a StepResult,
        /// How its call went, where one was made.
        call: Option<&'a CallReport>,
    },
    /// A step is not run because of another.
    StepSkipped {
        /// Its turn.
        turn: u32,
        /// The step.
        step: StepId,
        /// The step because of which it is not run.
        because: StepId,
    },
    /// A step was refused before it came to the executor.
    StepRefused {
        /// Its turn.
        turn: u32,
        /// The step.
        step: StepId,
        /// The call as the model wrote it.
        call: &'a ToolCall,
        /// Why.
        result: &'a StepResult,
    },
    /// The executor has ended a turn's steps.
    StepsRan {
        /// The turn.
        turn: u32,
        /// What became of all of them.
        outcome: &'a Outcome,
    },
    /// A tool that does not go through the executor is called.
    OwnCallBegan {
        /// Its turn.
        turn: u32,
        /// Its step.
        step: StepId,
        /// The call.
        call: &'a ToolCall,
    },
    /// It has answered.
    OwnCallEnded {
        /// Its turn.
        turn: u32,
        /// Its step.
        step: StepId,
        /// The call.
        call: &'a ToolCall,
        /// Whose tool it is.
        owner: ToolOwner,
        /// The answer.
        text: &'a str,
        /// Whether the answer is an error.
        is_error: bool,
    },
    /// A call waits until somebody decides whether it may be made.
    ApprovalAsked {
        /// Its turn.
        turn: u32,
        /// The call.
        request: &'a ApprovalRequest,
    },
    /// Somebody has decided whether a call may be made.
    ApprovalDecided {
        /// Its turn.
        turn: u32,
        /// Its step.
        step: StepId,
        /// The decision.
        decision: &'a Decision,
    },
    /// The journal holds a call that an earlier process made.
    CallRestored {
        /// How many attempts it took.
        attempts: u32,
        /// What the call has spent by itself.
        spent: Option<&'a Spending>,
    },
    /// A tool is about to be called, in this span.
    ToolCalled {
        /// The span of the call.
        span: &'a Span,
        /// The arguments, where spans may hold them.
        arguments: Option<&'a str>,
    },
    /// A tool has answered.
    ToolAnswered {
        /// The span of the call.
        span: &'a Span,
        /// What came of the call.
        result: &'a StepResult,
        /// Whether spans may hold the answer.
        shows_content: bool,
    },
    /// Parts of the conversation were closed, and leave the view.
    Folded {
        /// The blocks.
        blocks: &'a [BlockId],
        /// The estimated tokens of everything that was recorded so far.
        recorded_tokens: u64,
    },
    /// The todo list changed.
    Todos {
        /// The list.
        list: &'a TodoList,
    },
    /// A sub-agent begins to work on an item.
    Delegated {
        /// The item's todo.
        item: &'a TodoId,
        /// What it is asked.
        request: &'a str,
    },
    /// A sub-agent hands its item back.
    HandedBack {
        /// The item's todo.
        item: &'a TodoId,
        /// The state of the item.
        state: ItemState,
        /// What came out.
        result: &'a str,
    },
    /// The run of a sub-agent has ended; after a kill, what an earlier process wrote down of it.
    SubAgentEnded {
        /// The idempotency key of the call that it worked for.
        call: &'a str,
        /// Its record.
        trajectory: &'a Trajectory,
    },
    /// A step starts while the plan that it stands in is still being written.
    StartedEarly {
        /// The turn.
        turn: u32,
        /// The step.
        step: &'a Step,
    },
    /// The model repeats itself, and was told to try another way.
    Stuck,
    /// Something worth a line that has no event of its own.
    Noted {
        /// The line.
        text: fmt::Arguments<'a>,
    },
    /// The run ended.
    Ended {
        /// Why.
        stop: &'a Stop,
        /// The answer, if there is one.
        answer: Option<&'a str>,
    },
}

/// Whose tool answers a call that does not go through the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOwner {
    /// The context's policy: the model looks back by it.
    Policy,
    /// The loop that runs the turn.
    Loop,
}
