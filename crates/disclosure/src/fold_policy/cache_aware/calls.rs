//! What is noted when messages arrive: which calls were made, what they cost, and whether the cache outlived a pause.

use super::CacheAwarePolicy;
use crate::contents::Contents;
use crate::entry::{Entry, Shown};
use crate::tools::is_recall_tool;
use foldback_core::{Message, Role, SeqNo};

impl CacheAwarePolicy {
    /// Returns whether the message shows that the previous prompt was sent.
    pub(super) fn answers_prompt(&self, contents: &Contents, message: &Message) -> bool {
        match message.role() {
            Role::Assistant => contents.has_begun() || !contents.system_prompt.is_empty(),
            // If nobody answers, each message may have been followed by a call.
            Role::User => !self.account.is_dialogue && contents.has_begun(),
            _ => false,
        }
    }

    /// Takes the message's time: what follows a long pause finds nothing in the provider's cache. The answer to a prompt
    /// changes nothing, because the prompt was made before it.
    pub(super) fn keep_pace(&mut self, shown: &Shown) {
        self.account.pace.hear(&shown.message, shown.recorded_at);
        let is_answer = *shown.message.role() == Role::Assistant;
        let life = self.settings.cache_life.filter(|_| !is_answer);
        if life.is_some_and(|life| self.account.pace.has_paused(life)) {
            self.cool();
        }
    }

    /// Notes that the previous prompt was sent: its plan is carried out, and it is charged.
    pub(super) fn charge(&mut self, contents: &mut Contents, is_recall: bool) {
        self.account.pace.send();
        let plan = self.plan(contents);
        self.carry_out(contents, plan);
        let declared = self.account.declared;
        let quote = self.quote(contents, declared);
        let own = self.front_tokens(contents, declared) - self.account.front();
        let first = self.account.counted.next;
        let new = contents.entries().filter(|entry| entry.seq >= first);
        let estimate = new.map(Entry::estimate).sum();
        let next = contents.entries().next_back().map_or(first, |last| SeqNo(last.seq.0 + 1));
        self.account.charge(quote.bill, (own, estimate, next), is_recall, &self.settings);
        if let Some(from) = quote.once_from {
            let once = contents.entries_mut().filter(|entry| entry.seq >= from);
            once.filter(|entry| entry.light_estimate().is_some())
                .for_each(|entry| entry.settle(false));
            contents.show_once();
        }
    }
}

/// Returns whether the message only calls recall tools.
pub(super) fn only_recalls(message: &Message) -> bool {
    let calls = message.tool_calls();
    !calls.is_empty() && calls.iter().all(|call| is_recall_tool(&call.name))
}
