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
        let kept = policy.is_foldback().then(|| memory.clone());
        Ok(Self::around(policy.open(todo, memory)?, meter, kept)?)
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
