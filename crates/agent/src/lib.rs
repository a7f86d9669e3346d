//! The agent loop: a model, tools, plans, and a journal from which killed runs resume.
//!
//! An [`Agent`] has a model, an [`Executor`] with its tools, and standing instructions.
//! [`Agent::run`] works on a [`Task`] by a [`Strategy`], in a context of any policy
//! (`foldback_core::ContextManager`), and leaves the conversation in it:
//!
//! | [`Strategy`] | how it works on the request |
//! |---|---|
//! | [`Adaptive`] | by one plan or step by step, whichever suits the request |
//! | [`React`] | step by step: the model calls tools, and sees their results |
//! | [`OnePlan`] | all steps planned in one call; it asks again if the plan says so, or if something failed |
//! | `Flow` in `foldback-flow` | a list of steps, each worked on separately |
//! | `DeepSearch` in `foldback-deep-search` | queries, parallel searches, an answer with its sources |
//!
//! - A [`Tool`](foldback_tool::Tool) is something that a model can call; a
//!   [`Toolbox`](foldback_tool::Toolbox) holds them.
//! - The [`Executor`] runs a plan's steps as they become ready, within limits, with retries, approval and
//!   a [`Journal`] from which a killed run resumes. It also works without a model.
//! - A [`SpendTracker`] counts what a task spends, and [`SpendLimits`] limit it: calls, tokens, money, time.
//! - A run emits each event once to its [`RunLog`], as a [`RunEvent`]. Spending, trajectory, spans and the
//!   [`Observer`], which receives [`AgentEvent`]s, follow the log. [`RunLog::of`] gives a tool the log of the
//!   run that calls it.
//! - [`SubAgents`] work on items of an agent's todo list, each in a conversation of its own; a
//!   [`SubAgentTool`] answers a call and sees only its arguments. [`todo_write`], [`memory_share`],
//!   [`think`] and [`AskPerson`] are tools that any agent can be given.
//! - A [`Report`] is the outcome of a task: the answer, and its [`Trajectory`], which records every plan,
//!   call, result, time and token. [`judge`](rewards::judge) rates it, and [`Replay`] repeats it.
//!
//! The crate is not a memory: the context decides what the model sees, and any policy will do. It does not know
//! which provider answers (`foldback-providers`), it has no tools for files, a shell or the web
//! (`foldback-tools`), and it starts no runtime. It knows only its own strategies; those of other crates
//! (`foldback-flow`, `foldback-deep-search`) use its public interface.
//!
//! ```
//! use foldback_agent::{Agent, Executor, OnePlan, SpendLimits, SpendTracker, Task};
//! use foldback_baselines::Full;
//! use foldback_core::{Estimate, TodoId, ToolDefinition};
//! use foldback_llm::ScriptedModel;
//! use foldback_tool::{FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
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
//! let few = SpendLimits::default().with_model_calls(10);
//! let task = Task::new("trip", "杭州天气?").with_spend(SpendTracker::new(few, None)?);
//! let report = agent.run(&OnePlan::default(), context.as_mut(), &task).await?;
//! assert_eq!(report.answer(), Some("It rains in Hangzhou."));
//! assert_eq!((task.spend.spent().model_calls, task.spend.spent().tool_calls), (2, 1));
//! # Ok(())
//! # }
//! ```

mod adaptive;
mod agent;
mod agent_event;
mod approval;
mod call_ids;
mod context_window;
pub mod executor;
mod facts;
mod journal;
mod json_line;
mod maintenance;
mod model_caller;
mod notes;
mod observation;
mod observer;
mod one_plan;
mod own_tool;
mod person;
mod react;
mod reciting;
mod resumed;
pub mod rewards;
mod run;
mod run_context;
mod run_log;
mod setting;
pub mod spans;
mod spend_limits;
mod spend_tracker;
mod state;
mod strategy;
mod sub_agents;
mod think;
mod todo;
pub mod trajectory;

pub use adaptive::Adaptive;
pub use agent::{Agent, AgentError, Report, Task, reference_system_prompt, short_system_prompt};
pub use agent_event::{AgentEvent, PlannedStep};
pub use approval::{ApprovalRequest, Approver, Decision};
pub use context_window::ContextWindow;
pub use executor::{Eager, Executor, Outcome, Quota, Retry, RunError, RunOptions, Settings};
pub use foldback_llm::TokenPrices;
pub use journal::{FileJournal, Journal, JournalError, MemoryJournal, Record};
pub use model_caller::{Piece, Reply, Written};
pub use observer::Observer;
pub use one_plan::{OnePlan, OnePlanSettings};
pub use person::{AskPerson, Person, Question};
pub use react::{CallForm, React, ReactSettings};
pub use run_log::{RunEvent, RunLog, ToolOwner};
pub use setting::SettingError;
pub use spend_limits::{Resource, SpendLimits};
pub use spend_tracker::{BegunCall, SpendError, SpendTracker, Spending};
pub use state::AgentState;
pub use strategy::{Strategy, StrategyName, StrategyRun};
pub use sub_agents::{SubAgentTool, SubAgents};
pub use think::think;
pub use todo::{memory_share, todo_write};
pub use trajectory::{Ending, Purpose, Replay, Stop, TerminateStatus, Trajectory};
