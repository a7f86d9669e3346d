//! Turns a rule over a log of messages into a whole policy.

use crate::counters::Counters;
use crate::log::Log;
use crate::refusal::no_tool;
use crate::tool::tool_tokens;
use foldback_core::{
    BackgroundJob, BackgroundJobDone, BackgroundWork, Budget, ContextError, ContextManager,
    Message, Prompt, Recorded, SeqNo, SideCall, SideCalls, TodoId, ToolAnswer, ToolCall,
    ToolDefinition,
};

/// The rule of a policy for the messages that it holds: everything in which policies differ.
pub(crate) trait Rule: Send + 'static {
    /// Returns the same rule for a sub-task, which knows nothing about this one's messages.
    fn again(&self) -> Self;

    /// Applies the policy after each message.
    fn apply(&mut self, log: &mut Log);

    /// Returns the tools that the policy gives to the model.
    fn tools(&self) -> &[ToolDefinition] {
        &[]
    }

    /// Runs a call of one of them; `None` if it is of another tool.
    fn call(&self, _call: &ToolCall) -> Option<ToolAnswer> {
        None
    }

    /// Returns the model calls since this was last called.
    fn side_calls(&mut self) -> Vec<SideCall> {
        Vec::new()
    }

    /// Returns whether it does work beside the loop.
    fn works_beside(&self) -> bool {
        false
    }

    /// Returns the next piece of that work, if there is any.
    fn next_job(&mut self, _log: &Log) -> Option<BackgroundJob> {
        None
    }

    /// Takes the result of that work.
    fn absorb(&mut self, _log: &mut Log, _done: BackgroundJobDone) -> Result<(), ContextError> {
        Ok(())
    }
}

/// Returns an empty context with this rule.
pub(crate) fn start<R: Rule>(
    rule: R,
    todo: TodoId,
    counters: impl Into<Counters>,
) -> Box<dyn ContextManager> {
    let counters = counters.into();
    let tool_tokens = tool_tokens(counters.sizes.as_ref(), rule.tools());
    Box::new(Policy { log: Log::new(todo, counters, tool_tokens), rule })
}

struct Policy<R> {
    log: Log,
    rule: R,
}

impl<R: Rule> ContextManager for Policy<R> {
    fn todo(&self) -> &TodoId {
        self.log.todo()
    }

    fn recorded(&self) -> u64 {
        self.log.messages()
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let seq = self.log.push(message);
        self.rule.apply(&mut self.log);
        Ok(Recorded { seq, closed: Vec::new() })
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        Prompt { tools: self.rule.tools().to_vec(), ..self.log.prompt(budget) }
    }

    fn tools(&self) -> &[ToolDefinition] {
        self.rule.tools()
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        Ok(self.rule.call(call).unwrap_or_else(|| no_tool(call, self.tools())))
    }

    /// # Errors
    /// When there is no such message, or it has left the prompts.
    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        self.log.pin(seq)
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        Ok(start(self.rule.again(), todo, self.log.counters().clone()))
    }

    fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
        if self.rule.works_beside() { Some(self) } else { None }
    }

    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        Some(self)
    }
}

impl<R: Rule> BackgroundWork for Policy<R> {
    fn next_job(&mut self) -> Option<BackgroundJob> {
        self.rule.next_job(&self.log)
    }

    fn absorb(&mut self, done: BackgroundJobDone) -> Result<(), ContextError> {
        self.rule.absorb(&mut self.log, done)
    }
}

impl<R: Rule> SideCalls for Policy<R> {
    fn take(&mut self) -> Vec<SideCall> {
        self.rule.side_calls()
    }
}
