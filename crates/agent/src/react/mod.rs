//! Step by step: the model is asked, its calls run together, and it is asked again with their results.

mod choice;
mod execute_tools;
mod loop_tools;
mod native_turn;
mod react_loop;
mod repetition;
mod settings;
mod stuck;

pub use settings::{CallForm, ReactSettings};

use crate::agent::{Agent, AgentError};
use crate::strategy::{Strategy, StrategyName, StrategyRun};
use crate::trajectory::Ending;
use foldback_core::ContextManager;
use futures::FutureExt;
use futures::future::BoxFuture;
use react_loop::ReactLoop;

/// The strategy of going step by step, until the model answers in words.
///
/// Everything that happens is recorded in the context, in order, and nothing is withdrawn: a failed call stays
/// with its error. Mistakes of the model (an unknown tool, arguments that are not JSON, a block that breaks
/// off) are reported to it, and cost a step.
///
/// With a journal, a run of the same name resumes where it was killed: calls with a result and answers of the
/// model are not requested again.
#[derive(Clone, Debug, Default)]
pub struct React {
    pub(crate) settings: ReactSettings,
}

impl React {
    /// The name of the strategy.
    pub const NAME: StrategyName = StrategyName::new("react");

    /// Creates the strategy with these settings.
    #[must_use]
    pub fn new(settings: ReactSettings) -> Self {
        Self { settings }
    }

    /// Continues a conversation step by step.
    pub(crate) async fn go_on(
        &self,
        run: &StrategyRun<'_>,
        context: &mut dyn ContextManager,
    ) -> Result<Ending, AgentError> {
        let system_prompt = self.system_prompt(run.agent());
        ReactLoop::new(&self.settings, &system_prompt, run, context)?.run_turns(context).await
    }
}

impl Strategy for React {
    fn name(&self) -> StrategyName {
        Self::NAME
    }

    fn system_prompt(&self, agent: &Agent) -> String {
        match self.settings.calls {
            CallForm::Native => agent.system_prompt.clone(),
            CallForm::ExecuteTools => execute_tools::instructions(agent),
        }
    }

    fn run<'a>(
        &'a self,
        run: &'a StrategyRun<'a>,
        context: &'a mut dyn ContextManager,
    ) -> BoxFuture<'a, Result<Ending, AgentError>> {
        async move {
            run.open(context, &self.system_prompt(run.agent()))?;
            self.go_on(run, context).await
        }
        .boxed()
    }
}
