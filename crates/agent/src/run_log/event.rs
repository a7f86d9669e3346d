//! The events of a run.

use crate::executor::CallReport;
use crate::model_caller::Piece;
use crate::trajectory::{Degraded, Purpose, Stop, Trajectory};
use crate::{ApprovalRequest, Decision, Outcome, Spending, StrategyName};
use foldback_core::{BlockId, ItemState, TodoId, TodoList, ToolCall};
use foldback_llm::{ChatRequest, ChatResponse, ModelError, Usage};
use foldback_planner::{Plan, Step, StepId, StepResult};
use std::fmt;
use tracing::Span;

/// An event in a run, as it is [emitted](crate::RunLog::emit).
///
/// It borrows its content, so that nothing is built for a subscriber that does not exist.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// The run began, or an earlier run of the same name was resumed.
    Began {
        /// The request.
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
        /// The reason.
        because: &'a str,
    },
    /// A planned run continues step by step.
    Degraded {
        /// The reason, for the record.
        degraded: &'a Degraded,
        /// The reason, in words.
        because: &'a str,
    },
    /// The model is asked.
    Asked {
        /// The purpose of the request.
        purpose: &'a Purpose,
        /// The name of the question among those of its purpose that are open.
        key: &'a str,
        /// The request.
        request: &'a ChatRequest,
        /// The estimated tokens of the request.
        tokens: u64,
    },
    /// The model writes: only the observer receives this.
    Wrote {
        /// The piece, with the question that it answers.
        piece: Piece<'a>,
    },
    /// The model answered or failed.
    Answered {
        /// The purpose of the request.
        purpose: &'a Purpose,
        /// The name of the question.
        key: &'a str,
        /// The answer or the failure.
        answer: &'a Result<ChatResponse, ModelError>,
        /// Whether the answer is an earlier run's, from the journal, so that no request was made.
        from_journal: bool,
        /// The [hash](crate::trajectory::ModelCall::request) of the request, if the journal holds it.
        request_hash: Option<&'a str>,
        /// The span of the call.
        span: &'a Span,
    },
    /// The context's policy has asked a model for its own purposes.
    PolicyAsked {
        /// The tokens that it took.
        usage: Usage,
        /// Their cost, if it is known and differs from that of the run's model.
        cost: Option<f64>,
    },
    /// Steps were planned.
    Planned {
        /// The turn that they belong to.
        turn: u32,
        /// The purpose of the plan.
        purpose: &'a Purpose,
        /// The steps.
        plan: &'a Plan,
        /// The number of calls that the model planned; some may have no step.
        calls: usize,
        /// The reasons why the plan is not run; empty if it is run.
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
        /// The result.
        result: &'a StepResult,
        /// The report on its call, if one was made.
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
    /// A step was refused before it reached the executor.
    StepRefused {
        /// Its turn.
        turn: u32,
        /// The step.
        step: StepId,
        /// The call as the model wrote it.
        call: &'a ToolCall,
        /// The result, which says why.
        result: &'a StepResult,
    },
    /// The executor has ended a turn's steps.
    StepsRan {
        /// The turn.
        turn: u32,
        /// The outcome of all of them.
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
        /// The owner of the tool.
        owner: ToolOwner,
        /// The answer.
        text: &'a str,
        /// Whether the answer is an error.
        is_error: bool,
    },
    /// A call waits for approval.
    ApprovalAsked {
        /// Its turn.
        turn: u32,
        /// The call.
        request: &'a ApprovalRequest,
    },
    /// The approval of a call was decided.
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
        /// The number of attempts.
        attempts: u32,
        /// What the call itself spent.
        spent: Option<&'a Spending>,
    },
    /// A tool is about to be called, in this span.
    ToolCalled {
        /// The span of the call.
        span: &'a Span,
        /// The arguments, if spans may hold them.
        arguments: Option<&'a str>,
    },
    /// A tool has answered.
    ToolAnswered {
        /// The span of the call.
        span: &'a Span,
        /// The result of the call.
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
        /// The request to the sub-agent.
        request: &'a str,
    },
    /// A sub-agent hands its item back.
    HandedBack {
        /// The item's todo.
        item: &'a TodoId,
        /// The state of the item.
        state: ItemState,
        /// The result.
        result: &'a str,
    },
    /// The run of a sub-agent has ended; after a kill, this is from an earlier process's record.
    SubAgentEnded {
        /// The idempotency key of the call that it worked for.
        call: &'a str,
        /// Its record.
        trajectory: &'a Trajectory,
    },
    /// A step starts while its plan is still being written.
    StartedEarly {
        /// The turn.
        turn: u32,
        /// The step.
        step: &'a Step,
    },
    /// The model repeats itself, and was asked to try another way.
    Stuck,
    /// A note on something that has no event of its own.
    Noted {
        /// The text of the note.
        text: fmt::Arguments<'a>,
    },
    /// The run ended.
    Ended {
        /// The reason.
        stop: &'a Stop,
        /// The answer, if there is one.
        answer: Option<&'a str>,
    },
}

/// The owner of a tool that does not go through the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOwner {
    /// The context's policy: the model looks back by it.
    Policy,
    /// The loop that runs the turn.
    Loop,
}
