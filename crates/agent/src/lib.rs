//! Runs tools and plans beside a model.
//!
//! An [`Agent`] has a model, an [`Executor`] with its tools, and standing instructions. It works on a
//! [`Task`] by one of two strategies: [`one_plan`](Agent::one_plan) has all steps planned in one call and
//! asks again only where the plan says so or where something failed; [`react`](Agent::react) goes step
//! by step. Either is given a context of any policy (`foldback_core::ContextManager`), and leaves the
//! conversation in it.
//!
//! - A [`Tool`] is something that a model can call; a [`Toolbox`] holds them.
//! - The [`Executor`] runs a plan's steps as they become ready, within limits, with retries, approval and
//!   a [`Journal`] from which a killed run goes on. It works without a model as well.
//! - A [`Report`] is what became of a task: the answer, and its [`Trajectory`], which tells every plan,
//!   call, result, time and token. [`judge`] rates it, [`Replay`] does it once more.
//!
//! ```
//! use foldback_agent::{Agent, Executor, FunctionTool, Task, Tool, ToolOutput, Toolbox};
//! use foldback_baselines::Full;
//! use foldback_core::{Estimate, TodoId, ToolDefinition};
//! use foldback_llm::ScriptedModel;
//! use foldback_planner::ToolSpec;
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let spec = ToolSpec::new(ToolDefinition {
//!     name: "weather".into(),
//!     description: "The weather of a city.".into(),
//!     parameters: r#"{"type": "object", "required": ["city"]}"#.into(),
//! });
//! let weather = FunctionTool::new(spec, |_arguments, _context| async {
//!     Ok(ToolOutput::text("小雨"))
//! });
//! let toolbox = Toolbox::new([Arc::new(weather) as Arc<dyn Tool>])?;
//!
//! // A script stands in for the model: it plans, and then it answers.
//! let model = ScriptedModel::new([
//!     r#"{"action_plan": {"step1": {"function": "weather", "args": {"city": "杭州"}}}}"#.into(),
//!     "It rains in Hangzhou.".into(),
//! ]);
//! let agent = Agent::new(Arc::new(model), Executor::new(toolbox));
//! let mut context = Full.start(TodoId::new("trip")?, Arc::new(Estimate));
//! let report = agent.one_plan(context.as_mut(), &Task::new("trip", "杭州天气?")).await?;
//! assert_eq!(report.answer(), Some("It rains in Hangzhou."));
//! assert_eq!(report.trajectory.tool_calls().count(), 1);
//! assert_eq!(report.trajectory.spent().calls, 2);
//! # Ok(())
//! # }
//! ```

mod agent;
mod approval;
mod ask;
mod call_ids;
mod context_handle;
mod excerpt;
mod execute_tools;
mod executor;
mod facts;
mod host;
mod journal;
mod json_line;
mod native_turn;
mod observation;
mod observer;
mod one_plan;
mod purse;
mod react;
mod rewards;
pub mod spans;
mod tool;
mod toolbox;
mod trajectory;

pub use agent::{Agent, AgentError, Report, Task};
pub use approval::{ApprovalRequest, Approver, Decision};
pub use context_handle::ContextHandle;
pub use executor::{
    CallReport, Eager, Event, Executor, Outcome, Quota, Retry, Run, RunError, RunOptions, Settings,
    Trace, Trigger,
};
pub use host::Host;
pub use journal::{FileJournal, Journal, JournalError, MemoryJournal, Record};
pub use observer::{AgentEvent, Observer, PlannedStep};
pub use one_plan::OnePlanSettings;
pub use purse::{Allowance, Purse, Resource, Spending, TokenPrices};
pub use react::{CallForm, ReactSettings};
pub use rewards::{
    CouldHavePlannedOnce, Guess, GuessedRashly, Judge, PlannableTurns, could_have_planned_once,
    guessed_rashly, judge, own_judges,
};
pub use tool::{CallContext, FunctionTool, Tool, ToolError, ToolErrorKind, ToolOutput};
pub use toolbox::{DuplicateTool, Toolbox};
pub use trajectory::{
    CallRecord, CallTime, DegradeReason, Degraded, Ending, LanguageRecord, ModelCall, ModelFailure,
    PlanRecord, Purpose, Replay, ResultRecord, Situation, Spent, Stop, Strategy, StrategyRecord,
    TRAJECTORY_VERSION, Timing, ToolCallRecord, ToolRecord, Trajectory, TrajectoryError, TurnClass,
    TurnRecord, read_trajectories, write_trajectory,
};
