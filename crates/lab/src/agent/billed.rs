//! A context whose policy's own calls to a model are billed.

use super::model::Acting;
use foldback_core::{
    BackgroundWork, ContextError, ContextLayer, ContextManager, Message, Recorded, SideCall,
    SideCalls,
};
use std::sync::Arc;

/// A context that bills its policy's own model calls together with the agent's. The policy's background
/// work is done at once, so that figures do not depend on the scheduling of threads. Everything else is
/// passed through.
pub(crate) struct Billed {
    pub(crate) context: Box<dyn ContextManager>,
    pub(crate) model: Arc<Acting>,
}

impl ContextLayer for Billed {
    fn inner(&self) -> &dyn ContextManager {
        self.context.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.context.as_mut()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let recorded = self.context.record(message)?;
        if let Some(policy) = self.context.background_work() {
            while let Some(work) = policy.next_job() {
                policy.absorb((work.0)())?;
            }
        }
        Ok(recorded)
    }

    fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
        None
    }

    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        Some(self)
    }
}

impl SideCalls for Billed {
    fn take(&mut self) -> Vec<SideCall> {
        let calls = self.context.take_side_calls();
        for call in &calls {
            self.model.aside(call.input_tokens as u64, call.output_tokens as u64);
        }
        calls
    }
}
