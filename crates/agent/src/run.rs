//! The one entry point for working on a task by any strategy.

use crate::StrategyRun;
use crate::agent::{Agent, AgentError, Report, Task};
use crate::notes::Notes;
use crate::run_context::RunContext;
use crate::state::LoggedRun;
use crate::strategy::Strategy;
use foldback_core::ContextManager;
use futures::FutureExt;
use futures::future::BoxFuture;

impl Agent {
    /// Works on a task by a strategy.
    ///
    /// Whatever the strategy and the policy of the context: the run is observed from its beginning to its end;
    /// the todo list is at the end of each prompt; the policy's maintenance runs beside the tools; and with a
    /// journal, a run of the same name resumes where it was left or killed. The context may then hold what the
    /// run recorded, a part of it, or nothing: what it holds is not recorded again.
    ///
    /// # Errors
    /// When a setting of the strategy is invalid, when the context or the journal fails, when a run of this
    /// name is already running or was begun with another request or strategy ([`AgentError::OtherTask`]), and
    /// when somebody else has recorded something in the context where the run continues
    /// ([`AgentError::ContextMoved`]).
    pub fn run<'a>(
        &'a self,
        strategy: &'a dyn Strategy,
        context: &'a mut dyn ContextManager,
        task: &'a Task,
    ) -> BoxFuture<'a, Result<Report, AgentError>> {
        // A strategy may run other strategies inside it.
        async move {
            let logged = LoggedRun::begin(self, task, context.todo(), &strategy.name())?;
            let ended = self.run_in(strategy, context, &logged).await;
            logged.end(ended.map_err(AgentError::out_of_context))
        }
        .boxed()
    }

    async fn run_in(
        &self,
        strategy: &dyn Strategy,
        context: &mut dyn ContextManager,
        logged: &LoggedRun,
    ) -> Result<Report, AgentError> {
        let LoggedRun { log, task, .. } = logged;
        let notes = Notes::open(&self.executor, &task.run)?;
        notes.begin(task, &strategy.name())?;
        let mut context = RunContext::new(context, notes.clone(), log.clone())?;
        let ended = StrategyRun::work(self, strategy, &mut context, (task, notes), log).await;
        let settled = context.settle().await;
        log.side_calls(&mut context);
        let left = context.leave();
        let report = ended?;
        settled?;
        left?;
        Ok(report)
    }
}
