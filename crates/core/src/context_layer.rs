//! A context around another one.

use crate::{
    BackgroundWork, Budget, ContextError, ContextManager, HandOver, Message, Prompt, Recorded,
    SeqNo, SideCalls, SubTasks, TodoId, ToolAnswer, ToolCall, ToolDefinition,
};
use std::sync::Arc;

/// A context around another one, which meters it, bills it or adds to it. It implements what it changes, and leaves all
/// else to the context inside.
///
/// Every layer is a [`ContextManager`]. When the port gains a method, a layer forwards it without being changed, so
/// that nothing of the context inside is lost.
///
/// ```
/// use foldback_core::{ContextError, ContextLayer, ContextManager, Message, Recorded};
///
/// /// Counts the characters that are recorded.
/// struct Counting {
///     context: Box<dyn ContextManager>,
///     chars: usize,
/// }
///
/// impl ContextLayer for Counting {
///     fn inner(&self) -> &dyn ContextManager {
///         self.context.as_ref()
///     }
///
///     fn inner_mut(&mut self) -> &mut dyn ContextManager {
///         self.context.as_mut()
///     }
///
///     fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
///         self.chars += message.text().chars().count();
///         self.inner_mut().record(message)
///     }
/// }
///
/// fn drive(_context: &mut dyn ContextManager) {}
///
/// fn drive_counting(context: Box<dyn ContextManager>) -> usize {
///     let mut counting = Counting { context, chars: 0 };
///     drive(&mut counting);
///     counting.chars
/// }
/// ```
///
/// To change a port that only some policies have, return another one: [`side_calls`](Self::side_calls) may return
/// `Some(self)` for a layer that implements [`SideCalls`], or `None` to hide that of the context inside.
pub trait ContextLayer: Send {
    /// Returns the context inside.
    fn inner(&self) -> &dyn ContextManager;

    /// Returns the context inside, for changes.
    fn inner_mut(&mut self) -> &mut dyn ContextManager;

    /// See [`ContextManager::todo`].
    fn todo(&self) -> &TodoId {
        self.inner().todo()
    }

    /// See [`ContextManager::recorded`].
    fn recorded(&self) -> u64 {
        self.inner().recorded()
    }

    /// See [`ContextManager::record`].
    ///
    /// # Errors
    /// When the message cannot be kept; then no part of it is.
    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        self.inner_mut().record(message)
    }

    /// See [`ContextManager::prompt`].
    fn prompt(&self, budget: &Budget) -> Prompt {
        self.inner().prompt(budget)
    }

    /// See [`ContextManager::set_front_tokens`].
    fn set_front_tokens(&mut self, tokens: u64) {
        self.inner_mut().set_front_tokens(tokens);
    }

    /// See [`ContextManager::note_recall`].
    fn note_recall(&mut self, tokens: u64) {
        self.inner_mut().note_recall(tokens);
    }

    /// See [`ContextManager::tools`].
    fn tools(&self) -> &[ToolDefinition] {
        self.inner().tools()
    }

    /// See [`ContextManager::call`].
    ///
    /// # Errors
    /// When the store behind the policy fails.
    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        self.inner_mut().call(call)
    }

    /// See [`ContextManager::pin`].
    ///
    /// # Errors
    /// When there is no such message.
    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        self.inner_mut().pin(seq)
    }

    /// See [`ContextManager::child`]. The child is the inner context's, without this layer around it.
    ///
    /// # Errors
    /// When the store behind the policy fails.
    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        self.inner_mut().child(todo)
    }

    /// See [`ContextManager::sub_tasks`].
    fn sub_tasks(&mut self) -> Option<&mut dyn SubTasks> {
        self.inner_mut().sub_tasks()
    }

    /// See [`ContextManager::background_work`].
    fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
        self.inner_mut().background_work()
    }

    /// See [`ContextManager::side_calls`].
    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        self.inner_mut().side_calls()
    }

    /// See [`ContextManager::hand_over`].
    fn hand_over(&self) -> Option<Arc<dyn HandOver>> {
        self.inner().hand_over()
    }
}

// A default method of the port that is not forwarded here would be lost in every layer.
#[deny(clippy::missing_trait_methods)]
impl<L: ContextLayer> ContextManager for L {
    fn todo(&self) -> &TodoId {
        ContextLayer::todo(self)
    }

    fn recorded(&self) -> u64 {
        ContextLayer::recorded(self)
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        ContextLayer::record(self, message)
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        ContextLayer::prompt(self, budget)
    }

    fn set_front_tokens(&mut self, tokens: u64) {
        ContextLayer::set_front_tokens(self, tokens);
    }

    fn note_recall(&mut self, tokens: u64) {
        ContextLayer::note_recall(self, tokens);
    }

    fn tools(&self) -> &[ToolDefinition] {
        ContextLayer::tools(self)
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        ContextLayer::call(self, call)
    }

    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        ContextLayer::pin(self, seq)
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        ContextLayer::child(self, todo)
    }

    fn sub_tasks(&mut self) -> Option<&mut dyn SubTasks> {
        ContextLayer::sub_tasks(self)
    }

    fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
        ContextLayer::background_work(self)
    }

    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        ContextLayer::side_calls(self)
    }

    fn hand_over(&self) -> Option<Arc<dyn HandOver>> {
        ContextLayer::hand_over(self)
    }
}

#[cfg(test)]
mod tests;
