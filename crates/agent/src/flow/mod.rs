//! A flow: a plan whose steps are texts, each worked on by an agent in a context of its own.

mod attempt;
mod drive;
mod executors;
mod progress;
mod requests;
mod settings;

pub use executors::StepExecutor;
pub use settings::{FlowSettings, PlanShown, StepContext};

use crate::SettingError;
use crate::agent::{Agent, AgentError};
use crate::strategy::{Strategy, StrategyName, StrategyRun};
use crate::trajectory::{Ending, Purpose};
use drive::Drive;
use foldback_core::ContextManager;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

/// A plan whose steps are texts, each worked on by itself.
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
/// The request, the plan, what came of each step and the answer are recorded in the context; in a
/// [shared](StepContext::Shared) one everything that the steps did as well. The plan is its todo
/// list. With a journal, a run of the same name goes on where it was killed.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    settings: FlowSettings,
}

impl Flow {
    /// The name.
    pub const NAME: StrategyName = StrategyName::new("flow");

    /// What the model is asked for: the list of steps, or the rest of one made anew.
    pub const PLAN: Purpose = Purpose::named("flow");

    /// What the model is asked for: the answer, from what came of the steps.
    pub const SUMMARY: Purpose = Purpose::named("summary");

    /// A flow with these settings.
    #[must_use]
    pub fn new(settings: FlowSettings) -> Self {
        Self { settings }
    }

    /// The flow, cancelled when its time is over.
    async fn within_its_time(
        &self,
        run: &StrategyRun<'_>,
        context: &mut dyn ContextManager,
    ) -> Result<Ending, AgentError> {
        let limits = self.settings.limits;
        // A limit that lies beyond the end of time is none.
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
        self.settings.by.system_prompt(agent)
    }

    fn run<'a>(
        &'a self,
        run: &'a StrategyRun<'a>,
        context: &'a mut dyn ContextManager,
    ) -> BoxFuture<'a, Result<Ending, AgentError>> {
        self.within_its_time(run, context).boxed()
    }
}
