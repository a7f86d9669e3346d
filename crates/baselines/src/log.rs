//! The messages that a policy holds, in the order of a request, each with its tokens.

use crate::counters::Counters;
use crate::refusal::{is_gone, no_message, over_budget};
use crate::words::told;
use foldback_core::{
    Budget, ContextError, Message, Pairing, PairingTracker, Prompt, Role, SeqNo, TodoId,
    message_tokens,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The messages that a policy shows: instructions before all other messages, pinned messages that left
/// the history, one message that introduces the history, and the history.
///
/// Each message is counted once, when it arrives or when another takes its place.
pub(crate) struct Log {
    todo: TodoId,
    counters: Counters,
    head: Vec<Counted>,
    /// Pinned messages that left the history.
    restated: Vec<Restated>,
    /// All pinned messages.
    pins: BTreeSet<SeqNo>,
    lead: Option<Lead>,
    history: VecDeque<Entry>,
    tracker: PairingTracker,
    /// The number of recorded messages.
    len: u64,
    /// The tokens of a request: of everything shown, and of the tools.
    tokens: usize,
    /// The tokens of the same request if no message had a stand-in.
    kept_tokens: usize,
}

/// A message and its tokens in a request.
#[derive(Clone)]
struct Counted {
    message: Arc<Message>,
    tokens: usize,
}

/// A recorded message, represented by another that says what it was.
struct Restated {
    recorded: Arc<Message>,
    shown: Counted,
}

/// The message before the history.
struct Lead {
    shown: Counted,
    /// Whether it was recorded; otherwise the policy wrote it.
    is_recorded: bool,
}

/// A message of the history.
pub(crate) struct Entry {
    seq: SeqNo,
    recorded: Counted,
    /// What the history holds after the words were moved.
    moved_out: Option<Counted>,
    /// What a request shows in place of what the history holds.
    stand_in: Option<Counted>,
    begins_unit: bool,
    pinned: bool,
}

impl Entry {
    /// Returns its number.
    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }

    /// Returns the message as it was recorded.
    pub(crate) fn recorded(&self) -> &Message {
        &self.recorded.message
    }

    /// Returns the message as the history holds it.
    pub(crate) fn kept(&self) -> &Message {
        &self.kept_counted().message
    }

    /// Returns the message as a request shows it.
    pub(crate) fn shown(&self) -> &Message {
        &self.shown_counted().message
    }

    /// Returns the tokens of what is shown.
    pub(crate) fn tokens(&self) -> usize {
        self.shown_counted().tokens
    }

    /// Returns whether its words may be moved: it is not pinned, and they have not been moved yet.
    pub(crate) fn may_move_out(&self) -> bool {
        !self.pinned && self.moved_out.is_none()
    }

    /// Returns whether it stays in every prompt.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned
    }

    fn kept_counted(&self) -> &Counted {
        self.moved_out.as_ref().unwrap_or(&self.recorded)
    }

    fn shown_counted(&self) -> &Counted {
        self.stand_in.as_ref().unwrap_or_else(|| self.kept_counted())
    }
}

impl Log {
    /// Returns an empty log. Each request takes `tool_tokens` in addition to its messages.
    pub(crate) fn new(todo: TodoId, counters: Counters, tool_tokens: usize) -> Self {
        Self {
            todo,
            counters,
            head: Vec::new(),
            restated: Vec::new(),
            pins: BTreeSet::new(),
            lead: None,
            history: VecDeque::new(),
            tracker: PairingTracker::default(),
            len: 0,
            tokens: tool_tokens,
            kept_tokens: tool_tokens,
        }
    }

    /// Returns the number of recorded messages.
    pub(crate) fn messages(&self) -> u64 {
        self.len
    }

    /// Returns the todo that the messages belong to.
    pub(crate) fn todo(&self) -> &TodoId {
        &self.todo
    }

    /// Returns the token counters.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the tokens of a request: of everything shown, and of the tools.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Returns the tokens of the same request if no message had a stand-in.
    pub(crate) fn kept_tokens(&self) -> usize {
        self.kept_tokens
    }

    /// Returns the messages of the history, oldest first.
    pub(crate) fn history(&self) -> &VecDeque<Entry> {
        &self.history
    }

    /// Returns the tokens of the instructions before all other messages.
    pub(crate) fn head_tokens(&self) -> usize {
        self.head.iter().map(|sized| sized.tokens).sum()
    }

    /// Returns the message that introduces the history.
    pub(crate) fn lead(&self) -> Option<&Message> {
        self.lead.as_ref().map(|lead| lead.shown.message.as_ref())
    }

    /// Returns whether a request may follow now: no call waits for a result, and the model did not
    /// speak last.
    pub(crate) fn is_model_next(&self) -> bool {
        let last = self.history.back().map(|entry| entry.recorded().role());
        self.tracker.open().is_empty() && last.is_some_and(|role| *role != Role::Assistant)
    }

    /// Records the next message: in the head as long as only instructions have come, otherwise in the
    /// history.
    pub(crate) fn push(&mut self, message: Message) -> SeqNo {
        let seq = SeqNo(self.len);
        self.len += 1;
        if message.role().is_instruction() && self.head.len() as u64 == seq.0 {
            let sized = self.enter(message);
            self.head.push(sized);
            return seq;
        }
        let waits = !self.tracker.open().is_empty();
        let begins_unit = match self.tracker.observe(&message) {
            Pairing::Answers => false,
            // An instruction between a call and its result belongs to them.
            Pairing::Free { .. } => !(waits && message.role().is_instruction()),
            // A result without a call belongs to no unit.
            Pairing::Calls { .. } | Pairing::Orphan => true,
        };
        let recorded = self.enter(message);
        let (moved_out, stand_in) = (None, None);
        let entry = Entry { seq, recorded, moved_out, stand_in, begins_unit, pinned: false };
        self.history.push_back(entry);
        seq
    }

    /// Returns the last place at or before `at` at which the history may be cut without separating a
    /// call from its results: an index into the history.
    pub(crate) fn cut_at_or_before(&self, mut at: usize) -> usize {
        while at > 0 && self.history.get(at).is_some_and(|entry| !entry.begins_unit) {
            at -= 1;
        }
        at
    }

    /// Returns the first such place at or after `at`; the length of the history if there is none.
    pub(crate) fn cut_at_or_behind(&self, mut at: usize) -> usize {
        while self.history.get(at).is_some_and(|entry| !entry.begins_unit) {
            at += 1;
        }
        at
    }

    /// Takes the first `n` messages out of the history. Pinned ones stay in every prompt, each in a
    /// message that represents it.
    pub(crate) fn drop_front(&mut self, n: usize) -> Vec<Entry> {
        let gone: Vec<Entry> = self.history.drain(..n.min(self.history.len())).collect();
        for entry in &gone {
            self.tokens -= entry.tokens();
            self.kept_tokens -= entry.kept_counted().tokens;
            if !entry.pinned {
                continue;
            }
            match told(entry.recorded()) {
                Some(message) => {
                    let recorded = Arc::clone(&entry.recorded.message);
                    let shown = self.enter(message);
                    self.restated.push(Restated { recorded, shown });
                }
                None => {
                    self.pins.remove(&entry.seq);
                }
            }
        }
        gone
    }

    /// Shows this message, written by the policy, before the history in place of the previous one.
    pub(crate) fn set_lead(&mut self, message: Option<Message>) {
        self.exchange_lead(message, false);
    }

    /// Does the same with a recorded message that left the history.
    pub(crate) fn set_question(&mut self, message: Option<Message>) {
        self.exchange_lead(message, true);
    }

    fn exchange_lead(&mut self, message: Option<Message>, is_recorded: bool) {
        let before = self.lead.take().map_or(0, |lead| lead.shown.tokens);
        self.tokens -= before;
        self.kept_tokens -= before;
        self.lead = message.map(|message| Lead { shown: self.enter(message), is_recorded });
    }

    /// Shows `message` in place of the one at `at` in the history, unless that is pinned.
    pub(crate) fn stand_in(&mut self, at: usize, message: Message) {
        let shown = self.counted(message);
        let Some(entry) = self.history.get_mut(at).filter(|entry| !entry.pinned) else { return };
        self.tokens = self.tokens - entry.tokens() + shown.tokens;
        entry.stand_in = Some(shown);
    }

    /// Holds `message` in place of the one at `at` in the history, unless that is pinned: its words
    /// were moved.
    pub(crate) fn move_out(&mut self, at: usize, message: Message) {
        let kept = self.counted(message);
        let Some(entry) = self.history.get_mut(at).filter(|entry| !entry.pinned) else { return };
        self.tokens -= entry.tokens();
        self.kept_tokens = self.kept_tokens - entry.kept_counted().tokens + kept.tokens;
        (entry.moved_out, entry.stand_in) = (Some(kept), None);
        self.tokens += entry.tokens();
    }

    /// Keeps a message in every prompt from now on, as it was recorded.
    ///
    /// # Errors
    /// When there is no such message, or it has left the prompts.
    pub(crate) fn pin(&mut self, seq: SeqNo) -> Result<(), ContextError> {
        if seq.0 >= self.len {
            return Err(no_message(&self.todo, seq, self.len));
        }
        if let Ok(at) = self.history.binary_search_by_key(&seq, |entry| entry.seq)
            && let Some(entry) = self.history.get_mut(at)
        {
            entry.pinned = true;
            let tokens = entry.recorded.tokens;
            self.tokens = self.tokens - entry.tokens() + tokens;
            self.kept_tokens = self.kept_tokens - entry.kept_counted().tokens + tokens;
            (entry.moved_out, entry.stand_in) = (None, None);
        } else if seq.0 >= self.head.len() as u64 && !self.pins.contains(&seq) {
            return Err(is_gone(seq));
        }
        self.pins.insert(seq);
        Ok(())
    }

    /// Returns the current request. Its tools are counted, but the caller has to add them.
    pub(crate) fn prompt(&self, budget: &Budget) -> Prompt {
        let told = self.restated.iter().map(|told| &told.shown);
        let lead = self.lead.iter().map(|lead| &lead.shown);
        let before = self.head.iter().chain(told).chain(lead);
        let shown = before.chain(self.history.iter().map(Entry::shown_counted));
        let over = budget.tokens.filter(|allowed| self.tokens > *allowed);
        Prompt {
            conversation: Some(self.conversation()),
            messages: shown.map(|sized| Arc::clone(&sized.message)).collect(),
            tokens: self.tokens,
            window: self.history.len(),
            loose: self.history.len(),
            pinned: self.pins.len(),
            unfit: over.map(over_budget).into_iter().collect(),
            ..Prompt::default()
        }
    }

    /// Returns the recorded messages that a request shows, in any form.
    fn conversation(&self) -> Vec<Arc<Message>> {
        let head = self.head.iter().map(|sized| &sized.message);
        let told = self.restated.iter().map(|told| &told.recorded);
        let question = self.lead.iter().filter(|lead| lead.is_recorded);
        let question = question.map(|lead| &lead.shown.message);
        let history = self.history.iter().map(|entry| &entry.recorded.message);
        head.chain(told).chain(question).chain(history).cloned().collect()
    }

    /// Counts a message that is shown from now on.
    fn enter(&mut self, message: Message) -> Counted {
        let sized = self.counted(message);
        self.tokens += sized.tokens;
        self.kept_tokens += sized.tokens;
        sized
    }

    fn counted(&self, message: Message) -> Counted {
        let tokens = message_tokens(self.counters.sizes.as_ref(), &message);
        Counted { message: Arc::new(message), tokens }
    }
}
