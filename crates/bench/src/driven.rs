//! A context as an agent's loop drives it.

use crate::Meter;
use foldback_baselines::Counters;
use foldback_core::{
    BackgroundJobDone, Budget, ContextError, ContextManager, Estimate, Message, Prompt, ToolAnswer,
    ToolCall,
};
use foldback_o200k::O200k;
use std::sync::Arc;

/// A context as an agent's loop drives it: its background work is done after each message and comes
/// back one message late, and the model calls that it makes for its own purposes are metered.
pub struct Driven {
    context: Box<dyn ContextManager>,
    budget: Budget,
    jobs: Vec<BackgroundJobDone>,
    side_calls: u64,
    side_output_tokens: u64,
}

impl Driven {
    /// Creates a driver for an empty context.
    #[must_use]
    pub fn new(context: Box<dyn ContextManager>) -> Self {
        let budget = Budget::default();
        Self { context, budget, jobs: Vec::new(), side_calls: 0, side_output_tokens: 0 }
    }

    /// Returns the same driver with prompts of at most this size, if the policy can make them smaller.
    #[must_use]
    pub fn within(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// Returns what a policy under measurement counts with: it acts on estimated sizes, as it would in
    /// an agent, and its own calls are billed exactly, like all others.
    #[must_use]
    pub fn counters() -> Counters {
        Counters { sizes: Arc::new(Estimate), bills: Arc::new(O200k) }
    }

    /// Returns the same for an agent whose own tools take this many tokens.
    #[must_use]
    pub fn with_agent_tools(mut self, tokens: u64) -> Self {
        self.context.set_front_tokens(tokens);
        self
    }

    /// Takes the next message. If it carries a time, that is the time of the next call.
    ///
    /// # Errors
    /// When the policy cannot keep it, or its work failed.
    pub fn record(&mut self, message: &Message, meter: &mut Meter) -> Result<(), ContextError> {
        message.timestamp().into_iter().for_each(|at| meter.wait_until(at));
        self.context.record(message.clone())?;
        if let Some(policy) = self.context.background_work() {
            for done in std::mem::take(&mut self.jobs) {
                policy.absorb(done)?;
            }
            self.jobs.extend(policy.next_job().map(|job| (job.0)()));
        }
        for call in self.context.take_side_calls() {
            meter.apart(call.input_tokens as u64);
            self.side_calls += 1;
            self.side_output_tokens += call.output_tokens as u64;
        }
        Ok(())
    }

    /// Returns the request to send to the model now.
    #[must_use]
    pub fn prompt(&self) -> Prompt {
        self.context.prompt(&self.budget)
    }

    /// Runs a call of one of the policy's tools.
    ///
    /// # Errors
    /// When the policy's store fails.
    pub fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        self.context.call(call)
    }

    /// Reports that the model recalled something with a further call that is recorded nowhere, with
    /// this many tokens after the last prompt.
    pub fn note_recall(&mut self, tokens: u64) {
        self.context.note_recall(tokens);
    }

    /// Returns how often the policy called a model for its own purposes.
    #[must_use]
    pub fn side_calls(&self) -> u64 {
        self.side_calls
    }

    /// Returns the tokens that the model wrote in these calls. They are not part of what is sent.
    #[must_use]
    pub fn side_output_tokens(&self) -> u64 {
        self.side_output_tokens
    }
}
