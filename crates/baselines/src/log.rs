//! The messages that a policy holds, in the order of a request, each with what it takes.

use crate::refusal::{is_gone, no_message, over_budget};
use foldback_core::{
    Budget, Content, ContextError, Message, Pairing, PairingTracker, Prompt, Role, SeqNo, TodoId,
    TokenCounter, message_tokens,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a policy shows: instructions that stand in front of all other messages, pinned messages
/// that left the history, one message that leads the history in, the history.
///
/// Each message is counted once, when it comes or when another takes its place.
pub(crate) struct Log {
    todo: TodoId,
    counter: Arc<dyn TokenCounter>,
    head: Vec<Counted>,
    pinned: Vec<(SeqNo, Counted)>,
    lead: Option<Counted>,
    history: VecDeque<Entry>,
    tracker: PairingTracker,
    /// How many messages were recorded.
    len: u64,
    /// The tokens of a request: of all that is shown, and of the tools.
    tokens: usize,
    /// The tokens of the same request, had no message a stand-in.
    recorded_tokens: usize,
}

/// A message and what it takes in a request.
#[derive(Clone)]
struct Counted {
    message: Arc<Message>,
    tokens: usize,
}

/// A message of the history.
pub(crate) struct Entry {
    seq: SeqNo,
    recorded: Counted,
    stand_in: Option<Counted>,
    begins_unit: bool,
    pinned: bool,
}

impl Entry {
    /// Its number.
    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }

    /// The message as it was recorded.
    pub(crate) fn recorded(&self) -> &Message {
        &self.recorded.message
    }

    /// The tokens of what is shown.
    pub(crate) fn tokens(&self) -> usize {
        self.shown().tokens
    }

    fn shown(&self) -> &Counted {
        self.stand_in.as_ref().unwrap_or(&self.recorded)
    }

    /// Whether it stays in every prompt.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned
    }
}

impl Log {
    /// A log that holds nothing yet. Each request takes `tool_tokens` besides its messages.
    pub(crate) fn new(todo: TodoId, counter: Arc<dyn TokenCounter>, tool_tokens: usize) -> Self {
        Self {
            todo,
            counter,
            head: Vec::new(),
            pinned: Vec::new(),
            lead: None,
            history: VecDeque::new(),
            tracker: PairingTracker::default(),
            len: 0,
            tokens: tool_tokens,
            recorded_tokens: tool_tokens,
        }
    }

    /// The todo that the messages belong to.
    pub(crate) fn todo(&self) -> &TodoId {
        &self.todo
    }

    /// What counts the tokens.
    pub(crate) fn counter(&self) -> &Arc<dyn TokenCounter> {
        &self.counter
    }

    /// The tokens of a request: of all that is shown, and of the tools.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// The tokens of the same request, had no message a stand-in.
    pub(crate) fn recorded_tokens(&self) -> usize {
        self.recorded_tokens
    }

    /// The messages of the history, the oldest first.
    pub(crate) fn history(&self) -> &VecDeque<Entry> {
        &self.history
    }

    /// The tokens of the message that leads the history in; 0 without one.
    pub(crate) fn lead_tokens(&self) -> usize {
        self.lead.as_ref().map_or(0, |lead| lead.tokens)
    }

    /// Whether a message leads the history in.
    pub(crate) fn has_lead(&self) -> bool {
        self.lead.is_some()
    }

    /// Whether a request may follow now: nothing waits for a result, and the model did not speak
    /// last.
    pub(crate) fn is_model_next(&self) -> bool {
        let last = self.history.back().map(|entry| entry.recorded().role());
        self.tracker.open().is_empty() && last.is_some_and(|role| *role != Role::Assistant)
    }

    /// Takes the next message: to the head as long as only instructions came, else to the history.
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
            Pairing::Answers | Pairing::Orphan => false,
            // An instruction between a call and its result belongs to them.
            Pairing::Free { .. } => !(waits && message.role().is_instruction()),
            Pairing::Calls { .. } => true,
        };
        let recorded = self.enter(message);
        let entry = Entry { seq, recorded, stand_in: None, begins_unit, pinned: false };
        self.history.push_back(entry);
        seq
    }

    /// The last place at or before `at` where the history may be cut without parting a call from
    /// its results: an index into the history.
    pub(crate) fn cut_at_or_before(&self, mut at: usize) -> usize {
        while at > 0 && self.history.get(at).is_some_and(|entry| !entry.begins_unit) {
            at -= 1;
        }
        at
    }

    /// The first such place at or behind `at`; the length of the history where there is none.
    pub(crate) fn cut_at_or_behind(&self, mut at: usize) -> usize {
        while self.history.get(at).is_some_and(|entry| !entry.begins_unit) {
            at += 1;
        }
        at
    }

    /// Takes the first `n` messages out of the history. Those that are pinned stay in every prompt,
    /// told by a message of their own.
    pub(crate) fn drop_front(&mut self, n: usize) -> Vec<Entry> {
        let gone: Vec<Entry> = self.history.drain(..n.min(self.history.len())).collect();
        for entry in &gone {
            self.tokens -= entry.tokens();
            self.recorded_tokens -= entry.recorded.tokens;
            if entry.pinned {
                let told = self.enter(told(entry.recorded()));
                self.pinned.push((entry.seq, told));
            }
        }
        gone
    }

    /// Shows this message in front of the history, in place of the one that was there.
    pub(crate) fn set_lead(&mut self, message: Option<Message>) {
        self.tokens -= self.lead_tokens();
        self.recorded_tokens -= self.lead_tokens();
        self.lead = message.map(|message| self.enter(message));
    }

    /// Shows `message` in place of the one at `at` of the history, unless that is pinned.
    pub(crate) fn stand_in(&mut self, at: usize, message: Message) {
        let tokens = message_tokens(self.counter.as_ref(), &message);
        let Some(entry) = self.history.get_mut(at).filter(|entry| !entry.pinned) else { return };
        self.tokens = self.tokens - entry.tokens() + tokens;
        entry.stand_in = Some(Counted { message: Arc::new(message), tokens });
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
            self.tokens = self.tokens - entry.tokens() + entry.recorded.tokens;
            entry.stand_in = None;
            return Ok(());
        }
        let stands = |(pinned, _): &(SeqNo, Counted)| *pinned == seq;
        if seq.0 < self.head.len() as u64 || self.pinned.iter().any(stands) {
            return Ok(());
        }
        Err(is_gone(seq))
    }

    /// The request of this moment. Its tools are counted, and for the caller to add.
    pub(crate) fn prompt(&self, budget: &Budget) -> Prompt {
        let pinned = self.pinned.iter().map(|(_, sized)| sized);
        let before = self.head.iter().chain(pinned).chain(&self.lead);
        let shown = before.chain(self.history.iter().map(Entry::shown));
        let over = budget.tokens.filter(|allowed| self.tokens > *allowed);
        Prompt {
            messages: shown.map(|sized| Arc::clone(&sized.message)).collect(),
            tokens: self.tokens,
            window: self.history.len(),
            loose: self.history.len(),
            pinned: self.pinned.len(),
            unfit: over.map(over_budget).into_iter().collect(),
            ..Prompt::default()
        }
    }

    /// Counts a message that is shown from now on.
    fn enter(&mut self, message: Message) -> Counted {
        let tokens = message_tokens(self.counter.as_ref(), &message);
        self.tokens += tokens;
        self.recorded_tokens += tokens;
        Counted { message: Arc::new(message), tokens }
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
