//! The contexts of a run: of any policy, metered, and told of what they hold.

use super::meter::{LookingBack, Meter};
use crate::error::CliError;
use foldback::Memory;
use foldback_bench::Policy;
use foldback_core::{
    Budget, ContextError, ContextManager, Estimate, Maintenance, MaintenanceDone, Message, Prompt,
    Recorded, SeqNo, SideCall, SubTasks, TodoId, ToolAnswer, ToolCall, ToolDefinition,
};
use std::sync::Arc;

/// A context whose messages are counted, and its children's.
pub(crate) struct MeteredContext {
    context: Box<dyn ContextManager>,
    meter: Arc<Meter>,
    looking_back: LookingBack,
    /// Where the messages are that a context holds already.
    memory: Option<Memory>,
}

/// So many messages are read at once.
const STEP: u64 = 256;

impl MeteredContext {
    /// The context of a todo under a policy. `memory` keeps what foldback's own record.
    pub(crate) fn open(
        policy: Policy,
        todo: &TodoId,
        memory: &Memory,
        meter: Arc<Meter>,
    ) -> Result<Self, CliError> {
        let (context, memory): (Box<dyn ContextManager>, _) = match policy {
            Policy::Foldback | Policy::CacheAware => {
                (Box::new(memory.session(todo)?), Some(memory.clone()))
            }
            Policy::Baseline(baseline) => (baseline.start(todo.clone(), Arc::new(Estimate)), None),
        };
        Ok(Self::around(context, meter, memory)?)
    }

    fn around(
        context: Box<dyn ContextManager>,
        meter: Arc<Meter>,
        memory: Option<Memory>,
    ) -> Result<Self, foldback::Error> {
        meter.recalls_by(context.tools().iter().map(|tool| tool.name.clone()));
        let mut looking_back = LookingBack::default();
        let (mut tokens, len) = (0, context.recorded());
        if let Some(memory) = &memory {
            for from in (0..len).step_by(STEP as usize) {
                for message in memory.messages(context.todo(), from..len.min(from + STEP))? {
                    tokens += looking_back.tokens(&message, &meter);
                }
            }
        }
        meter.opened(context.todo(), tokens);
        Ok(Self { context, meter, looking_back, memory })
    }
}

impl ContextManager for MeteredContext {
    fn todo(&self) -> &TodoId {
        self.context.todo()
    }

    fn recorded(&self) -> u64 {
        self.context.recorded()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let tokens = self.looking_back.tokens(&message, &self.meter);
        let recorded = self.context.record(message)?;
        self.meter.recorded(self.context.todo(), tokens);
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
        let child = self.context.child(todo)?;
        let child = Self::around(child, self.meter.clone(), self.memory.clone());
        Ok(Box::new(child.map_err(ContextError::from)?))
    }

    fn sub_tasks(&self) -> Option<&dyn SubTasks> {
        self.context.sub_tasks()
    }

    fn sub_tasks_mut(&mut self) -> Option<&mut dyn SubTasks> {
        self.context.sub_tasks_mut()
    }

    fn side_calls(&mut self) -> Vec<SideCall> {
        self.context.side_calls()
    }

    fn maintenance(&mut self) -> Option<Maintenance> {
        self.context.maintenance()
    }

    fn absorb(&mut self, done: MaintenanceDone) -> Result<(), ContextError> {
        self.context.absorb(done)
    }
}
