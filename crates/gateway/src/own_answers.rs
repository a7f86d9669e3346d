//! Answers of the memory's own tools, sent by a client as the results of calls.

use crate::SessionTodos;
use crate::branches::Known;
use crate::conversation::Conversation;
use crate::member::Member;
use foldback::Error;
use foldback_core::{Message, ToolCallId};

impl Member {
    /// Has the new results of a conversation that the memory's own tools gave recorded as their answers: what the
    /// server has just answered, and what is already recorded as an answer, after the same message on another branch.
    pub(crate) fn expect_answers(
        &mut self,
        conversation: &Conversation,
        known: &Known,
        todos: &SessionTodos,
    ) -> Result<(), Error> {
        for (call, text) in conversation.results_of_tools(known.messages) {
            let mut answer = todos.answer_of(&text);
            for range in self.branches.behind(known.node) {
                if answer.is_none() {
                    answer = self.session.recorded_answer(range, &call, &text)?;
                }
            }
            if let Some(answer) = answer {
                self.session.expect_answer(call, answer);
            }
        }
        Ok(())
    }
}

impl Conversation {
    /// Returns the results among its messages, from the message `from` on, of calls of the tools that an agent has
    /// from the memory's server: each call's id, and the text that is said to be its answer. Whether it is, the
    /// server knows.
    pub(crate) fn results_of_tools(&self, from: usize) -> Vec<(ToolCallId, String)> {
        let Some(load) = self.terms.load.as_deref().filter(|_| !self.terms.is_unseen) else {
            return Vec::new();
        };
        let said = |place: usize| -> Vec<Message> {
            let message = self.messages.get(place);
            message.and_then(|message| message.messages().ok()).unwrap_or_default()
        };
        let (mut called, mut results) = (None, Vec::new());
        for (place, message) in self.asked().iter().enumerate().skip(from) {
            if message.has_calls {
                called = Some(place);
            }
            if !message.is_result {
                continue;
            }
            // If the result is the first new message, its call is in the known part.
            let before = || self.messages.get(..place)?.iter().rposition(|one| one.has_calls);
            let Some(calls) = called.or_else(before) else { continue };
            called = Some(calls);
            let calls = said(calls);
            let ours = |id: &ToolCallId| {
                let mut calls = calls.iter().flat_map(Message::tool_calls);
                calls.any(|call| call.id == *id && SessionTodos::is_tool(&call.name, load))
            };
            results.extend(said(place).iter().filter_map(|message| {
                let id = message.tool_call_id().filter(|id| ours(id))?;
                Some((id.clone(), message.text().into_owned()))
            }));
        }
        results
    }
}
