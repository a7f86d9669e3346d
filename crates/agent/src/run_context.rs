//! The context of a run: any policy, wrapped in what a run needs.

use crate::agent::AgentError;
use crate::maintenance::Upkeep;
use crate::notes::Notes;
use crate::reciting::Recital;
use crate::resumed::Resumed;
use crate::{RunEvent, RunLog};
use foldback_core::{
    BlockId, Budget, ContextError, ContextLayer, ContextManager, Estimate, ItemState, Message,
    Prompt, Recorded, Reference, SubTasks, TodoId, TodoList, ToolAnswer, ToolCall, message_tokens,
};
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// The context of a run, whatever its policy: messages that the context holds are not
/// [recorded again](Resumed), the todo list is [recited](Recital), the policy's background work is
/// [done](Upkeep), and closed blocks are emitted.
pub(crate) struct RunContext<'a> {
    policy: &'a mut dyn ContextManager,
    log: RunLog,
    /// The estimated tokens of everything that was recorded.
    recorded_tokens: u64,
    resumed: Resumed,
    recital: Recital,
    upkeep: Upkeep,
    /// The notes on what did not fit into a prompt that were already emitted.
    unfit: Mutex<BTreeSet<String>>,
}

impl<'a> RunContext<'a> {
    /// Wraps the context of the run that these notes belong to.
    ///
    /// # Errors
    /// When the context has lost a part of what it held before the run.
    pub(crate) fn new(
        policy: &'a mut dyn ContextManager,
        notes: Notes,
        log: RunLog,
    ) -> Result<Self, AgentError> {
        let resumed = Resumed::begin(policy, notes.clone())?;
        let recital = Recital::new(notes);
        let recorded_tokens = policy.prompt(&Budget::default()).tokens as u64;
        let upkeep = Upkeep::default();
        let unfit = Mutex::default();
        Ok(Self { policy, log, recorded_tokens, resumed, recital, upkeep, unfit })
    }

    /// Waits a moment for the policy's background work: what is not done then is lost.
    pub(crate) async fn settle(&mut self) -> Result<(), ContextError> {
        self.upkeep.settle(self.policy).await
    }

    /// Notes that the run is left with all its messages recorded.
    pub(crate) fn leave(&self) -> Result<(), AgentError> {
        self.resumed.leave()
    }
}

impl ContextLayer for RunContext<'_> {
    fn inner(&self) -> &dyn ContextManager {
        self.policy
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.policy
    }

    fn recorded(&self) -> u64 {
        self.resumed.recorded()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let tokens = message_tokens(&Estimate, &message) as u64;
        let recorded = self.resumed.record(self.policy, message)?;
        self.recorded_tokens = self.recorded_tokens.saturating_add(tokens);
        if !recorded.closed.is_empty() {
            let (blocks, recorded_tokens) = (&*recorded.closed, self.recorded_tokens);
            self.log.emit(RunEvent::Folded { blocks, recorded_tokens });
        }
        self.upkeep.tend(self.policy)?;
        Ok(recorded)
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        let prompt = self.recital.prompt(budget, |budget| self.resumed.prompt(self.policy, budget));
        for text in &prompt.unfit {
            if self.unfit.lock().insert(text.clone()) {
                self.log.note(format_args!("{text}"));
            }
        }
        prompt
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        self.resumed.call(self.policy, call)
    }

    fn sub_tasks(&mut self) -> Option<&mut dyn SubTasks> {
        Some(self)
    }
}

/// The todo list of a run, whatever its policy. References that sub-tasks hand back, and grants, are the
/// policy's.
impl SubTasks for RunContext<'_> {
    fn todo_list(&mut self) -> TodoList {
        self.recital.list(self.policy)
    }

    fn set_todo_list(&mut self, list: &TodoList) -> Result<(), ContextError> {
        self.recital.set(self.policy, list)
    }

    fn finish_item(
        &mut self,
        item: &TodoId,
        state: ItemState,
        result: Option<&str>,
        references: &[Reference],
    ) -> Result<bool, ContextError> {
        self.recital.finish_item(self.policy, item, state, result, references)
    }

    fn grant(&mut self, to: &TodoId, references: &[Reference]) -> Result<bool, ContextError> {
        self.policy.sub_tasks().map_or(Ok(false), |kept| kept.grant(to, references))
    }

    fn granted(&mut self) -> Result<Vec<Reference>, ContextError> {
        self.policy.sub_tasks().map_or(Ok(Vec::new()), |kept| kept.granted())
    }

    fn conclude(&mut self) -> Result<Option<BlockId>, ContextError> {
        self.policy.sub_tasks().map_or(Ok(None), |kept| kept.conclude())
    }
}
