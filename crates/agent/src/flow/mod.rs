//! A flow: a plan whose steps are texts, each worked on by an agent in a context of its own.

mod attempt;
mod drive;
mod executors;
mod progress;
mod requests;
mod settings;

pub use executors::StepExecutor;
pub use settings::{FlowSettings, PlanShown, StepContext, StepStrategy};

use crate::agent::{Agent, AgentError, Report, Task};
use crate::{Strategy, spans};
use drive::Drive;
use foldback_core::ContextManager;
use tokio::time::Instant;
use tracing::Instrument;

impl Agent {
    /// Works on a task by a plan whose steps are texts.
    ///
    /// The model makes the plan by calling the planning tool; where it does not, a plan of three general
    /// steps takes its place. Then one step after the other is worked on, the first that is open, by the
    /// [executor](StepExecutor) that its text names (`[CODER] ..`), else by the first, in a context of its
    /// own: it sees the plan as it stands, its step and what came of the steps before it, and ends with a
    /// summary of what it accomplished. At the end the model answers the request from these.
    ///
    /// A step that cannot be done is marked as blocked, with the reason, and tried again; when that does
    /// not help, the model makes the rest of the plan anew; and when that does not help, the run ends
    /// with [`Stop::Terminated`](crate::Stop::Terminated) and an answer that says how far it came. What
    /// only ran out of turns is not done.
    ///
    /// The request, the plan, what came of each step and the answer are recorded in `context`; in a
    /// [shared](StepContext::Shared) one everything that the steps did as well. The plan is its todo
    /// list. With a journal, a run of the same name goes on where it was killed.
    ///
    /// # Errors
    /// When a [setting](FlowSettings::check) makes no sense, and when the context or the journal fails.
    pub async fn flow(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        self.run(Strategy::Flow, context, task).await
    }

    /// The same in the context of a run, inside a span.
    pub(crate) async fn go_by_flow(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        self.flow.check()?;
        let span = spans::invoke_agent("flow", context.todo().as_str());
        let report = self.within_its_time(context, task).instrument(span.clone()).await?;
        spans::record_usage(&span, &report.trajectory.spent().usage);
        Ok(report)
    }

    /// The flow, cancelled when its time is over.
    async fn within_its_time(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        let limits = self.flow.limits;
        // A limit that lies beyond the end of time is none.
        let end = limits.time.and_then(|time| Instant::now().checked_add(time));
        let bounded = Task {
            spend: task.spend.share(limits)?,
            cancelled: task.cancelled.child_token(),
            ..task.clone()
        };
        let over = bounded.cancelled.clone();
        let mut flow = std::pin::pin!(Drive::run(self, task, bounded, context));
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
