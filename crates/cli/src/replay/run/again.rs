//! A conversation recorded once more, to find the prompts that it had.

use super::Run;
use crate::error::CliError;
use foldback::{Memory, Options, Session};
use foldback_core::{Budget, Message, Prompt};

/// A conversation recorded once more, beside a todo that holds it already, to find the prompts that
/// it had at each message.
pub(super) struct Again {
    session: Session,
    /// How many messages it has taken.
    taken: usize,
}

impl Again {
    pub(super) fn new(run: &Run<'_>) -> Result<Self, CliError> {
        let options = Options::default().with_secret(run.memory.secret());
        let memory = Memory::in_memory(run.policy.options(options))?;
        Ok(Self { session: memory.session(&run.todo)?, taken: 0 })
    }

    /// The prompt behind the message `at`.
    pub(super) fn prompt_behind(
        &mut self,
        messages: &[Message],
        at: usize,
    ) -> Result<Prompt, CliError> {
        for message in messages.get(self.taken..=at).unwrap_or_default() {
            self.session.record(message.clone())?;
            self.taken += 1;
        }
        Ok(self.session.prompt(&Budget::default()))
    }
}
