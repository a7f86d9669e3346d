//! The layout of a prompt: every message unchanged, if a chat API accepts it; otherwise described in
//! words.

use super::raw::Raw;
use crate::words::told;
use foldback_core::{Content, Message, Role, TokenCounter, ToolCallId, message_tokens};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The text of a blank result, because no request may contain an empty message.
const NO_OUTPUT: &str = "(no output)";

/// The messages of a prompt, in order.
pub(crate) struct Turns<'a> {
    counter: &'a dyn TokenCounter,
    pub(crate) messages: Vec<Arc<Message>>,
    /// The recorded messages that these show.
    pub(crate) said: Vec<Arc<Message>>,
    pub(crate) tokens: usize,
    /// Whether a user has spoken: no one else may speak before.
    has_begun: bool,
    /// The calls that were made: no two may share an id.
    calls: BTreeSet<ToolCallId>,
}

impl<'a> Turns<'a> {
    pub(crate) fn new(counter: &'a dyn TokenCounter) -> Self {
        let (messages, said, calls) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { counter, messages, said, tokens: 0, has_begun: false, calls }
    }

    /// Adds an instruction before the conversation.
    pub(crate) fn push_head(&mut self, raw: &Raw) {
        if !raw.message.content().is_blank() {
            self.push_as_is(raw);
        }
    }

    /// Adds a message written by the policy.
    pub(crate) fn push_new(&mut self, message: Message) {
        self.has_begun |= *message.role() == Role::User;
        self.tokens += message_tokens(self.counter, &message);
        self.messages.push(Arc::new(message));
    }

    /// Adds a single message.
    pub(crate) fn push(&mut self, raw: &Raw) {
        let stands = match raw.message.role() {
            Role::User => true,
            Role::Other(_) | Role::Assistant => self.has_begun,
            Role::System | Role::Developer | Role::Tool => false,
        };
        if !stands || !raw.message.tool_calls().is_empty() {
            self.push_told(raw);
        } else if !raw.message.content().is_blank() {
            self.push_as_is(raw);
            self.has_begun = true;
        }
    }

    /// Adds what the model said, or what it called and the result of every call.
    pub(crate) fn push_wave(&mut self, wave: &[&Raw]) {
        let Some((first, results)) = wave.split_first() else { return };
        let calls = first.message.tool_calls();
        let new = |id: &ToolCallId| !self.calls.contains(id);
        let ids: BTreeSet<_> = calls.iter().map(|call| &call.id).filter(|id| new(id)).collect();
        let is_whole = ids.len() == calls.len() && results.len() == calls.len();
        if calls.is_empty() || !self.has_begun || !is_whole {
            wave.iter().for_each(|raw| self.push(raw));
            return;
        }
        self.calls.extend(calls.iter().map(|call| call.id.clone()));
        let silent = Content::Empty;
        if first.message.content().is_blank() && *first.message.content() != silent {
            self.push_instead(first, first.message.with_body(silent, calls.to_vec()));
        } else {
            self.push_as_is(first);
        }
        for result in results {
            if result.message.content().is_blank() {
                let content = Content::Text(NO_OUTPUT.to_owned());
                self.push_instead(result, result.message.with_body(content, Vec::new()));
            } else {
                self.push_as_is(result);
            }
        }
    }

    /// Adds a message without its surroundings.
    pub(crate) fn push_told(&mut self, raw: &Raw) {
        if *raw.message.role() == Role::User && raw.message.tool_calls().is_empty() {
            self.push(raw);
        } else if let Some(told) = told(&raw.message) {
            self.push_instead(raw, told);
        }
    }

    /// Adds another form of a recorded message.
    fn push_instead(&mut self, raw: &Raw, message: Message) {
        self.push_new(message);
        self.said.push(Arc::clone(&raw.message));
    }

    fn push_as_is(&mut self, raw: &Raw) {
        self.messages.push(Arc::clone(&raw.message));
        self.said.push(Arc::clone(&raw.message));
        self.tokens += raw.tokens;
    }
}
