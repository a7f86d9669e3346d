//! Step by step: the model is asked, its calls run together, and it is asked again with what they
//! brought.

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

/// Step by step, until the model answers in words.
///
/// Everything that happens is recorded in the context, in order, and nothing is taken back: a failed call
/// stays with its error. What the model does wrong (an unknown tool, arguments that are no JSON, a block
/// that breaks off) is told to it and costs a step.
///
/// With a journal, a run of the same name goes on where it was killed: calls with a result and answers of
/// the model are not asked for again.
#[derive(Clone, Debug, Default)]
pub struct React {
    pub(crate) settings: ReactSettings,
}

impl React {
    /// The name.
    pub const NAME: StrategyName = StrategyName::new("react");

    /// Step by step, with these settings.
    #[must_use]
    pub fn new(settings: ReactSettings) -> Self {
        Self { settings }
    }

    /// Goes step by step from where a conversation stands.
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
