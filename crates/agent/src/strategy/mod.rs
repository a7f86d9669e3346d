//! Strategies: the trait, and the run that an implementation is given.

mod strategy_name;
mod strategy_run;

pub use strategy_name::StrategyName;
pub use strategy_run::StrategyRun;

use crate::SettingError;
use crate::agent::{Agent, AgentError};
use crate::trajectory::Ending;
use foldback_core::ContextManager;
use futures::future::BoxFuture;
use std::fmt;

/// A way of working on a task. [`Agent::run`] runs one; its settings are its own.
///
/// ```
/// use foldback_agent::{
///     Agent, AgentError, Ending, Executor, Purpose, Strategy, StrategyName, StrategyRun, Task,
/// };
/// use foldback_baselines::Full;
/// use foldback_core::{Budget, ContextManager, Estimate, Message, TodoId};
/// use foldback_llm::{ChatRequest, ScriptedModel};
/// use foldback_tool::Toolbox;
/// use futures::FutureExt;
/// use futures::future::BoxFuture;
/// use std::sync::Arc;
///
/// /// One question, one answer.
/// struct Ask;
///
/// impl Strategy for Ask {
///     fn name(&self) -> StrategyName {
///         StrategyName::new("ask")
///     }
///
///     fn run<'a>(
///         &'a self,
///         run: &'a StrategyRun<'a>,
///         context: &'a mut dyn ContextManager,
///     ) -> BoxFuture<'a, Result<Ending, AgentError>> {
///         async move {
///             run.open(context, &self.system_prompt(run.agent()))?;
///             let request = ChatRequest::from(context.prompt(&Budget::default()));
///             let answer = match run.ask(Purpose::ANSWER, "answer", request).await?.answer() {
///                 Ok(response) => response.message,
///                 Err(stop) => return Ok(Ending::from(stop)),
///             };
///             context.record(answer.clone())?;
///             Ok(Ending::answered(answer.text()))
///         }
///         .boxed()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Arc::new(ScriptedModel::new(["6.4 m.".into()]));
/// let agent = Agent::new(model, Executor::new(Toolbox::default()));
/// let mut context = Full.start(TodoId::new("tides")?, Arc::new(Estimate));
/// let task = Task::new("tides", "How high is high water at 杭州湾?");
/// let report = agent.run(&Ask, context.as_mut(), &task).await?;
/// assert_eq!(report.answer(), Some("6.4 m."));
/// assert_eq!(report.trajectory.strategy.chosen, Ask.name());
/// # Ok(())
/// # }
/// ```
pub trait Strategy: Send + Sync {
    /// Returns its name, which never changes: journals and trajectories hold it, and a resumed run must have it.
    fn name(&self) -> StrategyName;

    /// Refuses invalid settings before a run makes any request or call.
    ///
    /// # Errors
    /// When one of them cannot be used.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }

    /// Returns the system prompt of a conversation that begins with this strategy: the agent's, unless the
    /// strategy adds to it.
    fn system_prompt(&self, agent: &Agent) -> String {
        agent.system_prompt().to_owned()
    }

    /// Works on the task of a run, in its context, until there is an answer or a reason to stop.
    ///
    /// With a journal, a run of the same name resumes where it was killed: this is called again, with a run
    /// that knows the model's answers and the calls that ended, and a context that skips what it already
    /// holds. So it has to ask the same questions under the same keys, and record the same messages, until the
    /// run is where it was.
    ///
    /// A mistake of the model is not an error: it is reported to the model, or it ends the run with a
    /// [`Stop`](crate::Stop).
    ///
    /// # Errors
    /// When the context or the journal fails.
    fn run<'a>(
        &'a self,
        run: &'a StrategyRun<'a>,
        context: &'a mut dyn ContextManager,
    ) -> BoxFuture<'a, Result<Ending, AgentError>>;
}

impl fmt::Debug for dyn Strategy + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Strategy").field(&self.name().as_str()).finish()
    }
}
