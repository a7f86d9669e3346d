//! An agent that is ready to run, with the strategy that it works by.

use foldback_agent::{Agent, AgentError, Report, Strategy, Task};
use foldback_core::ContextManager;
use std::sync::Arc;

/// An agent with its tools, and the strategy by which it works, as
/// [`ReferenceAgent::build`](crate::ReferenceAgent::build) returns it.
#[derive(Clone, Debug)]
pub struct ReadyAgent {
    pub(crate) agent: Agent,
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) no_shell: Option<String>,
    pub(crate) left_out: Vec<String>,
}

impl ReadyAgent {
    /// Works on a task in a context, such as a session of a memory. The task sets who watches
    /// ([`Task::observer`]) and what may be spent ([`Task::spend`]).
    ///
    /// # Errors
    /// As [`Agent::run`].
    pub async fn run(
        &self,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        self.agent.run(&*self.strategy, context, task).await
    }

    /// Returns the agent, so that another strategy can run it.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Returns why it has no shell, if a shell was permitted but no sandbox is available here.
    #[must_use]
    pub fn no_shell(&self) -> Option<&str> {
        self.no_shell.as_deref()
    }

    /// Returns the tools that were left out because only some families were chosen.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
}
