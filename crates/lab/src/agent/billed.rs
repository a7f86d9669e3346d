//! A context whose policy's own calls to a model are billed.

use super::model::Acting;
use foldback_core::{
    Budget, ContextError, ContextManager, Maintenance, MaintenanceDone, Message, Prompt, Recorded,
    SeqNo, SideCall, SubTasks, TodoId, ToolAnswer, ToolCall, ToolDefinition,
};
use std::sync::Arc;

/// A context whose policy's own calls to a model are billed where the agent's are. What the policy would do
/// beside the loop it does at once, so that figures do not depend on how threads run. Everything else it
/// hands on.
pub(crate) struct Billed {
    pub(crate) context: Box<dyn ContextManager>,
    pub(crate) model: Arc<Acting>,
}

impl ContextManager for Billed {
    fn todo(&self) -> &TodoId {
        self.context.todo()
    }

    fn recorded(&self) -> u64 {
        self.context.recorded()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let recorded = self.context.record(message)?;
        while let Some(work) = self.context.maintenance() {
            self.context.absorb((work.0)())?;
        }
        Ok(recorded)
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        self.context.prompt(budget)
    }

    fn tools(&self) -> &[ToolDefinition] {
        self.context.tools()
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        self.context.call(call)
    }

    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        self.context.pin(seq)
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        self.context.child(todo)
    }

    fn sub_tasks(&self) -> Option<&dyn SubTasks> {
        self.context.sub_tasks()
    }

    fn sub_tasks_mut(&mut self) -> Option<&mut dyn SubTasks> {
        self.context.sub_tasks_mut()
    }

    fn side_calls(&mut self) -> Vec<SideCall> {
        let calls = self.context.side_calls();
        for call in &calls {
            self.model.aside(call.input_tokens as u64, call.output_tokens as u64);
        }
        calls
    }

    fn maintenance(&mut self) -> Option<Maintenance> {
        None
    }

    fn absorb(&mut self, _done: MaintenanceDone) -> Result<(), ContextError> {
        Ok(())
    }
}
