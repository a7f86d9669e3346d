//! An agent that was put together, and the strategy that it works by.

use foldback_agent::{Agent, AgentError, Report, Strategy, Task};
use foldback_core::ContextManager;
use std::sync::Arc;

/// An agent with its tools, and the strategy by which it works: what
/// [`ReferenceAgent::build`](crate::ReferenceAgent::build) gives.
#[derive(Clone, Debug)]
pub struct ReadyAgent {
    pub(crate) agent: Agent,
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) no_shell: Option<String>,
    pub(crate) left_out: Vec<String>,
}

impl ReadyAgent {
    /// Works on a task in a context, such as a session of a memory. The task names who watches
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

    /// The agent, to be run by another strategy.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Why it has no shell, where it was permitted one and no sandbox is available here.
    #[must_use]
    pub fn no_shell(&self) -> Option<&str> {
        self.no_shell.as_deref()
    }

    /// The tools that it would have, had it not been given some families of them only.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
}
