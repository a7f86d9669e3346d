//! The contexts of a run: of any policy, metered, and told of what they hold.

use super::meter::{LookingBack, Meter};
use crate::error::CliError;
use foldback::Memory;
use foldback_core::{ContextError, ContextLayer, ContextManager, Message, Recorded, TodoId};
use foldback_policies::Policy;
use std::sync::Arc;

/// A context whose messages are counted, and its children's.
pub(crate) struct MeteredContext {
    context: Box<dyn ContextManager>,
    meter: Arc<Meter>,
    looking_back: LookingBack,
    /// Where the messages are that a context holds already.
    memory: Memory,
}

/// So many messages are read at once.
const STEP: u64 = 256;

impl MeteredContext {
    /// The context of a todo under a policy. `memory` keeps what it records.
    pub(crate) fn open(
        policy: Policy,
        todo: &TodoId,
        memory: &Memory,
        meter: Arc<Meter>,
    ) -> Result<Self, CliError> {
        let context = policy.open(todo, memory).map_err(failed)?;
        Ok(Self::around(context, meter, memory.clone())?)
    }

    fn around(
        context: Box<dyn ContextManager>,
        meter: Arc<Meter>,
        memory: Memory,
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
        Ok(Self { context, meter, looking_back, memory })
    }
}

/// A context that could not be opened: because of the memory behind it, as a rule.
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
        let child = Self::around(child, self.meter.clone(), self.memory.clone());
        Ok(Box::new(child.map_err(ContextError::from)?))
    }
}
