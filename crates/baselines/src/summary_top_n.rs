//! A summary and the last messages: what LangChain's summarization does.
//!
//! When the history is over a number of tokens and the model is to speak next, everything but the
//! last messages is replaced by one user message that sums it up, and is gone for good. The next
//! summary is made of the one before and of what leaves then. The cut never parts a call from its
//! results: it moves back to the message that calls.

use crate::digest::Digest;
use crate::refusal::{no_message, no_tool, over_budget};
use foldback_core::{
    Budget, Content, ContextError, ContextManager, Message, Pairing, PairingTracker, Prompt,
    Recorded, Role, SeqNo, TodoId, TokenCounter, ToolAnswer, ToolCall, ToolDefinition,
    message_tokens,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// When a summary is made, and of how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryConfig {
    /// Over so many tokens the history is summed up.
    pub trigger_tokens: usize,
    /// So many messages at the end stay as they are; a unit that the cut would part stays whole.
    pub keep_messages: usize,
    /// The greatest number of tokens of a summary.
    pub summary_tokens: usize,
}

impl Default for SummaryConfig {
    /// 40,000 tokens, the last 20 messages, a summary of at most 1,000 tokens.
    fn default() -> Self {
        Self { trigger_tokens: 40_000, keep_messages: 20, summary_tokens: 1_000 }
    }
}

/// A summary of what was, and the last messages as they are.
pub struct SummaryTopN {
    todo: TodoId,
    counter: Arc<dyn TokenCounter>,
    config: SummaryConfig,
    /// Instructions in front of all other messages: they stand beside the history.
    head: Vec<Kept>,
    /// Pinned messages that left the history.
    pinned: BTreeMap<SeqNo, Kept>,
    digest: Digest,
    summary: Option<Kept>,
    history: Vec<Kept>,
    tracker: PairingTracker,
    len: u64,
}

/// A message of the prompt.
#[derive(Clone)]
struct Kept {
    seq: SeqNo,
    message: Arc<Message>,
    tokens: usize,
    /// Whether the history may be cut in front of it.
    begins_unit: bool,
    pinned: bool,
}

impl SummaryTopN {
    /// A context that holds nothing yet.
    #[must_use]
    pub fn new(todo: TodoId, counter: Arc<dyn TokenCounter>, config: SummaryConfig) -> Self {
        Self {
            todo,
            counter,
            config,
            head: Vec::new(),
            pinned: BTreeMap::new(),
            digest: Digest::default(),
            summary: None,
            history: Vec::new(),
            tracker: PairingTracker::default(),
            len: 0,
        }
    }

    fn shown(&self) -> impl Iterator<Item = &Kept> {
        let before = self.head.iter().chain(self.pinned.values()).chain(&self.summary);
        before.chain(&self.history)
    }

    fn tokens(&self) -> usize {
        self.shown().map(|kept| kept.tokens).sum()
    }

    fn kept(&self, seq: SeqNo, message: Message, begins_unit: bool) -> Kept {
        let tokens = message_tokens(self.counter.as_ref(), &message);
        Kept { seq, message: Arc::new(message), tokens, begins_unit, pinned: false }
    }

    /// Whether a request may follow now: nothing waits for a result, and the model did not speak
    /// last.
    fn is_model_next(&self) -> bool {
        let last = self.history.last().map(|kept| kept.message.role());
        self.tracker.open().is_empty() && last.is_some_and(|role| *role != Role::Assistant)
    }

    /// Sums up what stands in front of the last messages.
    fn condense(&mut self) {
        let mut cut = self.history.len().saturating_sub(self.config.keep_messages);
        while cut > 0 && self.history.get(cut).is_some_and(|kept| !kept.begins_unit) {
            cut -= 1;
        }
        if cut == 0 {
            return;
        }
        let kept = self.history.split_off(cut);
        for gone in std::mem::replace(&mut self.history, kept) {
            self.digest.take(&gone.message, self.counter.as_ref());
            if gone.pinned {
                let told = told(&gone.message);
                self.pinned.insert(gone.seq, self.kept(gone.seq, told, true));
            }
        }
        self.digest.shrink(self.config.summary_tokens, self.counter.as_ref());
        let text = self.digest.text();
        self.summary = Some(self.kept(SeqNo(self.len), Message::user(&text), true));
    }
}

impl ContextManager for SummaryTopN {
    fn todo(&self) -> &TodoId {
        &self.todo
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        let seq = SeqNo(self.len);
        self.len += 1;
        let waits = !self.tracker.open().is_empty();
        let stands = message.role().is_instruction() && self.history.is_empty() && !waits;
        if stands && self.summary.is_none() {
            let kept = self.kept(seq, message, true);
            self.head.push(kept);
            return Ok(Recorded { seq, closed: Vec::new() });
        }
        let begins_unit = match self.tracker.observe(&message) {
            Pairing::Answers | Pairing::Orphan => false,
            // An instruction between a call and its result belongs to them.
            Pairing::Free { .. } => !(waits && message.role().is_instruction()),
            Pairing::Calls { .. } => true,
        };
        let kept = self.kept(seq, message, begins_unit);
        self.history.push(kept);
        if self.is_model_next() && self.tokens() > self.config.trigger_tokens {
            self.condense();
        }
        Ok(Recorded { seq, closed: Vec::new() })
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        let tokens = self.tokens();
        let over = budget.tokens.filter(|allowed| tokens > *allowed);
        Prompt {
            messages: self.shown().map(|kept| Arc::clone(&kept.message)).collect(),
            tokens,
            window: self.history.len(),
            loose: self.history.len(),
            pinned: self.pinned.len(),
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

    /// # Errors
    /// When there is no such message, or a summary has taken its place.
    fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        if seq.0 >= self.len {
            return Err(no_message(
                &self.todo,
                seq,
                usize::try_from(self.len).unwrap_or(usize::MAX),
            ));
        }
        let stands = |kept: &Kept| kept.seq == seq;
        if let Some(kept) = self.history.iter_mut().find(|kept| stands(kept)) {
            kept.pinned = true;
            return Ok(());
        }
        if self.pinned.contains_key(&seq) || self.head.iter().any(stands) {
            return Ok(());
        }
        Err(ContextError {
            message: format!("message {seq} is gone: a summary has taken its place"),
            source: None,
        })
    }

    fn child(&mut self, todo: TodoId) -> Result<Box<dyn ContextManager>, ContextError> {
        Ok(Box::new(Self::new(todo, Arc::clone(&self.counter), self.config)))
    }
}

/// A pinned message apart from what stood around it: a user's as it is, another's as a user's text
/// that tells whose it is.
fn told(message: &Message) -> Message {
    match message.role() {
        Role::User if message.tool_calls().is_empty() => message.clone(),
        role => {
            let mut text = format!("[{}] {}", role.as_str(), message.text());
            for call in message.tool_calls() {
                text.push_str(&format!("\n{} {}", call.name, call.arguments));
            }
            Message::compose(Role::User, Content::Text(text), Vec::new(), None)
        }
    }
}
