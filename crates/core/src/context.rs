//! The port between an agent's loop and its context policy.

use crate::{
    BackgroundWork, BlockId, HandOver, Message, SeqNo, SideCall, SideCalls, SubTasks, TodoId,
    ToolCall,
};
use std::sync::Arc;

/// What an agent's loop needs of a context policy. Each policy is one implementation, so that policies are exchanged in
/// one line.
///
/// The loop records every message as it arrives, asks for a prompt before each call to the model,
/// and hands calls of [`tools`](Self::tools) to [`call`](Self::call).
///
/// Every policy has the first eight methods. The rest are accessors: each returns a port that only some policies have,
/// and `None` unless the policy overrides it. To change what a context does without writing a policy, implement
/// [`ContextLayer`](crate::ContextLayer).
pub trait ContextManager: Send {
    /// Returns the todo that this context belongs to.
    fn todo(&self) -> &TodoId;

    /// Returns how many messages are recorded: the next one gets this number.
    fn recorded(&self) -> u64;

    /// Records the next message. When this returns, the message is durable if the policy keeps a store.
    ///
    /// # Errors
    /// When the message cannot be kept; then no part of it is.
    fn record(&mut self, message: Message) -> Result<Recorded, ContextError>;

    /// Returns the request to send to the model now. It is always valid for the chat APIs.
    fn prompt(&self, budget: &Budget) -> Prompt;

    /// Notes that the agent sends this many tokens of its own in front of every prompt: its instructions and its tools.
    /// A policy that goes by costs counts them.
    fn set_front_tokens(&mut self, _tokens: u64) {}

    /// Notes that the model recalled something by a further call from the last prompt, with this many tokens after it,
    /// and that this is recorded nowhere. A policy that goes by costs takes it into account.
    fn note_recall(&mut self, _tokens: u64) {}

    /// Returns the tools that the policy gives to the model, in a stable order.
    fn tools(&self) -> &[ToolDefinition];

    /// Runs a call of one of [`tools`](Self::tools). A mistake of the model (an unknown id, a bad
    /// argument) is an answer, not an error.
    ///
    /// # Errors
    /// When the store behind the policy fails.
    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer, ContextError>;

    /// Keeps the message in every prompt from now on.
    ///
    /// # Errors
    /// When there is no such message.
    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError>;

    /// Creates a context of its own for a sub-task.
    ///
    /// # Errors
    /// When the store behind the policy fails.
    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError>;

    /// Returns the sub-tasks that the policy keeps.
    fn sub_tasks(&mut self) -> Option<&mut dyn SubTasks> {
        None
    }

    /// Returns the work that the policy wants done alongside the loop.
    fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
        None
    }

    /// Returns the model calls that the policy makes for its own purposes.
    fn side_calls(&mut self) -> Option<&mut dyn SideCalls> {
        None
    }

    /// Returns the port that hands tools the contents of this context's references.
    fn hand_over(&self) -> Option<Arc<dyn HandOver>> {
        None
    }
}

impl dyn ContextManager + '_ {
    /// Returns the model calls that the policy made since they were last taken, in order; none if it makes none.
    pub fn take_side_calls(&mut self) -> Vec<SideCall> {
        self.side_calls().map(|calls| calls.take()).unwrap_or_default()
    }
}

/// The outcome of recording a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number.
    pub seq: SeqNo,
    /// The blocks that it closed, in order.
    pub closed: Vec<BlockId>,
}

/// The bound on a prompt's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The greatest number of estimated tokens; `None` for no bound.
    pub tokens: Option<usize>,
}

/// A request to a model, neutral between providers.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// The messages, in order; each is valid for chat-completions by
    /// [`Message::api_json`].
    pub messages: Vec<Arc<Message>>,
    /// The tools that the policy declares.
    pub tools: Vec<ToolDefinition>,
    /// The estimated tokens of messages and tools.
    pub tokens: usize,
    /// The latest closed block, if it is shown whole.
    pub block: Option<BlockId>,
    /// How many messages of the latest block and the open tail are shown, not counting those of a single unit that
    /// alone is larger than the window.
    pub window: usize,
    /// How many open messages are shown.
    pub loose: usize,
    /// How many pinned messages are shown.
    pub pinned: usize,
    /// Indexes into `messages` after which a cache mark is worth setting, ascending.
    pub cache_marks: Vec<usize>,
    /// How many messages at the end change from call to call.
    pub volatile: usize,
    /// The recorded messages that it shows, in order and each as its speaker's, if `messages` differ: because they
    /// include the policy's own words, or recorded ones that it repeats in a turn of its own. Late instructions may be
    /// missing, and so may the parts of a message that are stored elsewhere.
    pub conversation: Option<Vec<Arc<Message>>>,
    /// The messages among these that are shown in fewer tokens than their text takes.
    pub shortened: Vec<Shortened>,
    /// Earlier blocks that the end of the prompt names: those that match what is said now, the best first, then those
    /// that hold the calls that it lists.
    pub hints: Vec<BlockId>,
    /// What did not fit into the budget, in sentences.
    pub unfit: Vec<String>,
}

/// A message that a prompt shows in fewer tokens than its text takes, though nothing of it is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortened {
    /// Its number.
    pub seq: SeqNo,
    /// How it is shortened.
    pub how: Shortening,
    /// The message as it was recorded.
    pub whole: Arc<Message>,
    /// The message as it is shown.
    pub shown: Arc<Message>,
}

/// How a prompt shows a message in fewer tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortening {
    /// The same JSON value, written shorter.
    CompactJson,
    /// A text that is elsewhere in the prompt, word for word, is replaced by the name of that place.
    Repetition,
}

impl Prompt {
    /// Returns what was said, as far as it is shown, without turns that the policy wrote. Unlike `messages`, it need
    /// not be a valid request. For a policy that does not say, this is all but what changes from call to call.
    #[must_use]
    pub fn conversation(&self) -> &[Arc<Message>] {
        match &self.conversation {
            Some(conversation) => conversation,
            None => {
                let stays = self.messages.len().saturating_sub(self.volatile);
                self.messages.get(..stays).unwrap_or_default()
            }
        }
    }
}

/// A tool as declared to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// The name to call it by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON schema of its arguments, as text.
    pub parameters: String,
}

/// The answer to a call of a memory tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// What the model reads.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// An error of a context.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ContextError {
    /// What went wrong, as a sentence.
    pub message: String,
    /// The underlying error.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
