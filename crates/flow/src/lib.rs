//! Flow: a strategy in which a model makes a plan of texts and each step is worked on separately; and the
//! tool by which a model keeps such plans.
//!
//! - A [`Flow`] goes through the steps in order. Each is worked on in a context of its own, by the
//!   [executor](StepExecutor) that the step names and by any strategy; a step that fails is retried, and
//!   then the rest is replanned.
//! - A [`TextPlan`] is a plan whose steps are texts. [`Plans`] is a set of them, which a [`PlanCommand`]
//!   changes; the [`PlanningTool`] lets a model keep them under any strategy.
//!
//! It is **not** the planner of tool calls: plans whose steps are calls with arguments, which a program can
//! check and run in parallel, are in `foldback-planner`, and `OnePlan` in `foldback-agent` follows them. The
//! crate uses only what the agent offers to every external strategy.
//!
//! ```
//! use foldback_agent::{Agent, Executor, Task};
//! use foldback_baselines::Full;
//! use foldback_core::{Estimate, TodoId, ToolCall};
//! use foldback_flow::Flow;
//! use foldback_llm::ScriptedModel;
//! use foldback_tool::Toolbox;
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A script stands in for the model: it plans, works on two steps, and answers from their results.
//! let plan = r#"{"command": "create", "plan_id": "trip", "title": "杭州", "steps": ["Find the weather", "Choose a day"]}"#;
//! let model = ScriptedModel::new([
//!     vec![ToolCall::new("c1", "planning", plan)].into(),
//!     "小雨 on Saturday, dry on Sunday.".into(),
//!     "Sunday.".into(),
//!     "Go on Sunday: it stays dry.".into(),
//! ]);
//! let agent = Agent::new(Arc::new(model), Executor::new(Toolbox::default()));
//! let mut context = Full.start(TodoId::new("trip")?, Arc::new(Estimate));
//! let task = Task::new("trip", "On which day shall I visit 杭州?");
//! let report = agent.run(&Flow::default(), context.as_mut(), &task).await?;
//! assert_eq!(report.answer(), Some("Go on Sunday: it stays dry."));
//! # Ok(())
//! # }
//! ```

mod attempt;
mod drive;
mod executors;
mod planning;
mod progress;
mod requests;
mod settings;

pub use executors::StepExecutor;
pub use planning::{PlanCommand, PlanError, PlanningTool, Plans, StepStatus, TextPlan, TextStep};
pub use settings::{FlowSettings, PlanShown, StepContext};

use drive::Drive;
use foldback_agent::{
    Agent, AgentError, Ending, Purpose, SettingError, Strategy, StrategyName, StrategyRun,
};
use foldback_core::ContextManager;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

/// A strategy that follows a plan whose steps are texts, and works on each step separately.
///
/// The model makes the plan by calling the planning tool; if it does not, a plan of three general steps
/// is used. Then the open steps are worked on one after the other, each by the [executor](StepExecutor)
/// that its text names (`[CODER] ..`), otherwise by the first, in a context of its own: the executor sees
/// the current plan, its step and the results of the steps before it, and ends with a summary of what it
/// accomplished. At the end the model answers the request from these summaries.
///
/// A step that cannot be done is marked as blocked, with the reason, and retried; if that does not help,
/// the model remakes the rest of the plan; and if that does not help, the run ends with
/// [`Stop::StepFailed`](foldback_agent::Stop::StepFailed) and an answer that reports the progress. A step
/// that only ran out of turns is not done, and stays so when the run is resumed with more of them.
///
/// The request, the plan, the result of each step and the answer are recorded in the context, and in a
/// [shared](StepContext::Shared) one also everything that the steps did. The plan is its todo list. With
/// a journal, a run of the same name resumes where it was killed.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    settings: FlowSettings,
}

impl Flow {
    /// The name of the strategy.
    pub const NAME: StrategyName = StrategyName::new("flow");

    /// The purpose of a request for the list of steps, or for a new rest of it.
    pub const PLAN: Purpose = Purpose::named("flow");

    /// The purpose of the request for the answer, from the results of the steps.
    pub const SUMMARY: Purpose = Purpose::named("summary");

    /// Creates a flow with these settings.
    #[must_use]
    pub fn new(settings: FlowSettings) -> Self {
        Self { settings }
    }

    /// Runs the flow, and cancels it when its time is over.
    async fn within_its_time(
        &self,
        run: &StrategyRun<'_>,
        context: &mut dyn ContextManager,
    ) -> Result<Ending, AgentError> {
        let limits = self.settings.limits;
        // A limit beyond the range of the clock is no limit.
        let end = limits.time.and_then(|time| Instant::now().checked_add(time));
        let bounded = run.within(limits)?;
        let over = bounded.task().cancelled.clone();
        let mut flow = std::pin::pin!(Drive::run(&self.settings, run, bounded, context));
        let Some(end) = end else { return flow.await };
        tokio::select! {
            biased;
            done = &mut flow => done,
            () = tokio::time::sleep_until(end) => {
                over.cancel();
                flow.await
            }
        }
    }
}

impl Strategy for Flow {
    fn name(&self) -> StrategyName {
        Self::NAME
    }

    fn check(&self) -> Result<(), SettingError> {
        self.settings.check()
    }

    fn system_prompt(&self, agent: &Agent) -> String {
        self.settings.strategy.system_prompt(agent)
    }

    fn run<'a>(
        &'a self,
        run: &'a StrategyRun<'a>,
        context: &'a mut dyn ContextManager,
    ) -> BoxFuture<'a, Result<Ending, AgentError>> {
        self.within_its_time(run, context).boxed()
    }
}
