//! A task by a strategy: the one door to all of them.

use crate::agent::{Agent, AgentError, Report, Task};
use crate::notes::Notes;
use crate::run_context::RunContext;
use crate::state::Watched;
use crate::trajectory::Strategy;
use foldback_core::ContextManager;
use futures::FutureExt;
use futures::future::BoxFuture;

impl Agent {
    /// Works on a task by a strategy.
    ///
    /// Whatever the strategy and the policy of the context: the run is watched from its beginning to its
    /// end; the todo list stands at the end of each prompt; the policy's maintenance runs beside the
    /// tools; and with a journal, a run of the same name goes on where it was left or killed. The context
    /// may then hold what the run recorded, a part of it, or nothing: what it holds is not recorded again.
    ///
    /// # Errors
    /// When the context or the journal fails, when a run of this name is going on or was begun with another
    /// request or strategy ([`AgentError::OtherTask`]), and when somebody else has recorded something in the
    /// context where the run goes on ([`AgentError::ContextMoved`]).
    pub fn run<'a>(
        &'a self,
        strategy: Strategy,
        context: &'a mut dyn ContextManager,
        task: &'a Task,
    ) -> BoxFuture<'a, Result<Report, AgentError>> {
        // A strategy may run others inside it.
        async move {
            let watched = Watched::begin(self, task, context.todo(), strategy)?;
            let ended = self.go_by(strategy, context, &watched.task).await;
            watched.end(ended.map_err(AgentError::out_of_context))
        }
        .boxed()
    }

    async fn go_by(
        &self,
        strategy: Strategy,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        let notes = Notes::open(&self.executor, &task.run)?;
        notes.begin(task, strategy)?;
        let watch = task.watch(context.todo());
        let mut context = RunContext::new(context, notes.clone(), watch)?;
        let ended = match strategy {
            Strategy::Adaptive => self.adapt(&mut context, task, &notes).await,
            Strategy::React => self.step_by_step(&mut context, task, None).await,
            Strategy::OnePlan => self.plan_and_run(&mut context, task, None).await,
            Strategy::Flow => self.go_by_flow(&mut context, task).await,
            Strategy::DeepSearch => self.search_in_depth(&mut context, task).await,
        };
        let settled = context.settle().await;
        task.spend.charge_side_calls(&mut context);
        let left = context.leave();
        let report = ended?;
        settled?;
        left?;
        Ok(report)
    }
}
