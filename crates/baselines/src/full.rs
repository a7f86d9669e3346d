//! Keeping everything: what most agents do until the window is full.

use crate::refusal::{no_message, no_tool, over_budget};
use foldback_core::{
    Budget, ContextError, ContextManager, Message, Prompt, Recorded, SeqNo, TodoId, TokenCounter,
    ToolAnswer, ToolCall, ToolDefinition, message_tokens,
};
use std::sync::Arc;

/// Every message is sent with every call.
pub struct Full {
    todo: TodoId,
    counter: Arc<dyn TokenCounter>,
    messages: Vec<Arc<Message>>,
    tokens: usize,
}

impl Full {
    /// A context that holds nothing yet.
    #[must_use]
    pub fn new(todo: TodoId, counter: Arc<dyn TokenCounter>) -> Self {
        Self { todo, counter, messages: Vec::new(), tokens: 0 }
    }
}

impl ContextManager for Full {
    fn todo(&self) -> &TodoId {
        &self.todo
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let seq = SeqNo(self.messages.len() as u64);
        self.tokens += message_tokens(self.counter.as_ref(), &message);
        self.messages.push(Arc::new(message));
        Ok(Recorded { seq, closed: Vec::new() })
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        let over = budget.tokens.filter(|allowed| self.tokens > *allowed);
        Prompt {
            messages: self.messages.clone(),
            tokens: self.tokens,
            window: self.messages.len(),
            loose: self.messages.len(),
            unfit: over.map(over_budget).into_iter().collect(),
            ..Prompt::default()
        }
    }

    fn tools(&self) -> &[ToolDefinition] {
        &[]
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        Ok(no_tool(call))
    }

    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        // Everything stands in every prompt as it is.
        match self.messages.len() {
            len if seq.0 < len as u64 => Ok(()),
            len => Err(no_message(&self.todo, seq, len)),
        }
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        Ok(Box::new(Self::new(todo, Arc::clone(&self.counter))))
    }
}
