//! The contexts of a run: of any policy, metered, and with a record of what they hold.

use super::meter::{LookingBack, Meter};
use crate::error::CliError;
use foldback::Memory;
use foldback_core::{
    ContextError, ContextLayer, ContextManager, Message, Recorded, SideCalls, TodoId,
};
use foldback_policies::{Policy, Summaries};
use std::sync::Arc;

/// A context whose messages, and those of its children, are counted.
pub(crate) struct MeteredContext {
    context: Box<dyn ContextManager>,
    meter: Arc<Meter>,
    looking_back: LookingBack,
    /// The messages that a context already holds.
    memory: Memory,
    /// Whether the model calls that the policy reports were really made: the rule that replaces a model costs nothing.
    asks_a_model: bool,
}

/// The number of messages that are read at once.
const STEP: u64 = 256;

impl MeteredContext {
    /// Opens the context of a todo under a policy. `memory` keeps what it records.
    pub(crate) fn open(
        (policy, summaries): (Policy, &Summaries),
        todo: &TodoId,
        memory: &Memory,
        meter: Arc<Meter>,
    ) -> Result<Self, CliError> {
        let asks_a_model = summaries.written_by.is_some();
        let context = policy.open_with(todo, memory, summaries).map_err(failed)?;
        Ok(Self::around(context, meter, memory.clone(), asks_a_model)?)
    }

    fn around(
        context: Box<dyn ContextManager>,
        meter: Arc<Meter>,
        memory: Memory,
        asks_a_model: bool,
    ) -> Result<Self, foldback::Error> {
        meter.recalls_by(context.tools().iter().map(|tool| tool.name.clone()));
        let mut looking_back = LookingBack::default();
        let (mut tokens, len) = (0, context.recorded());
        for from in (0..len).step_by(STEP as usize) {
            for message in memory.messages(context.todo(), from..len.min(from + STEP))? {
                tokens += looking_back.tokens(&message, &meter);
            }
        }
        meter.opened(context.todo(), tokens);
        Ok(Self { context, meter, looking_back, memory, asks_a_model })
    }
}

/// The error for a context that could not be opened, as a rule because of its memory.
fn failed(error: ContextError) -> CliError {
    let ContextError { message, source } = error;
    match source.map(|source| source.downcast::<foldback::Error>()) {
        Some(Ok(error)) => CliError::Memory(*error),
        Some(Err(source)) => CliError::Agent(ContextError { message, source: Some(source) }.into()),
        None => CliError::Agent(ContextError { message, source: None }.into()),
    }
}

impl ContextLayer for MeteredContext {
    fn inner(&self) -> &dyn ContextManager {
        self.context.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.context.as_mut()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let tokens = self.looking_back.tokens(&message, &self.meter);
        let recorded = self.context.record(message)?;
        self.meter.recorded(self.context.todo(), tokens);
        Ok(recorded)
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        let child = self.context.child(todo)?;
        let (meter, memory) = (self.meter.clone(), self.memory.clone());
        let child = Self::around(child, meter, memory, self.asks_a_model);
        Ok(Box::new(child.map_err(ContextError::from)?))
    }

    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        if self.asks_a_model { self.context.side_calls() } else { None }
    }
}
