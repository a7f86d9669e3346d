//! The view that a session shows to the model.

use crate::contents::Contents;
use crate::entry::{Entry, Shown};
use crate::fold_policy::ActivePolicy;
use crate::opening::Pinned;
use crate::{
    Arrangement, Attribution, Billed, CacheAware, FoldPolicy, Hints, Marks, Names, Snapshot,
    ViewConfig,
};
use foldback_core::{Block, Budget, Message, Prompt, Role, SeqNo, TokenCounter, ToolDefinition};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The view that a session shows to the model: the system prompt, pinned messages, the ledger,
/// closed blocks, the open tail, and what changes from call to call.
///
/// It is pure data, of constant size, and cheap to clone: messages are shared. Give it every
/// message with [`append`](Self::append) and every closed block with [`fold`](Self::fold), once
/// they are durable or on a copy; get the request with [`prompt`](Self::prompt).
///
/// It holds what any [`FoldPolicy`] shows. The policy of its [`ViewConfig`]
/// decides which blocks leave, what becomes light and what the prompt says about the rest.
#[derive(Clone)]
pub struct LiveView {
    contents: Contents,
    policy: ActivePolicy,
}

impl LiveView {
    /// Creates an empty view. Quotes from recorded texts are put between `marks`.
    #[must_use]
    pub fn new(config: ViewConfig, marks: Marks) -> Self {
        let contents = Contents::new(config, marks);
        let policy = ActivePolicy::new(&contents);
        Self { contents, policy }
    }

    /// Restores the view as it was when the snapshot was taken: the same prompts, byte for byte. A
    /// snapshot that was taken under the other fold policy is continued under this one.
    ///
    /// `pins` are the messages that [`Snapshot::pins`] names and whose they are, `closed` the blocks from
    /// [`Snapshot::first_in_view`] on with their messages, `open_tail` the messages after them. A missing
    /// note of a memory tool's answer is taken from the snapshot.
    #[must_use]
    pub fn restore(
        config: ViewConfig,
        marks: Marks,
        mut snapshot: Snapshot,
        pins: Vec<(Attribution, Arc<Message>)>,
        closed: Vec<(Block, Vec<Shown>)>,
        open_tail: Vec<Shown>,
    ) -> Self {
        let account = snapshot.account.take();
        let folded = account.as_ref().map_or(0, |account| account.folded);
        let mut contents =
            Contents::restore(config, marks, snapshot, pins, closed, open_tail, folded);
        let policy = ActivePolicy::restore(&mut contents, account);
        Self { contents, policy }
    }

    /// Takes the next message. Instructions before all other messages are the system prompt,
    /// permanently; a later one stays in its place, as a user's text that says what it is, and folds
    /// like other messages. The first user message is pinned as the task.
    pub fn append(&mut self, shown: Shown) {
        let Self { contents, policy } = self;
        let policy = policy.get_mut();
        let Shown { seq, message, .. } = &shown;
        policy.before_append(contents, &shown);
        if contents.is_system_prompt(*seq, message) {
            contents.extend_system_prompt(*seq, message);
            return;
        }
        contents.begin(*seq);
        if contents.is_task(message) {
            let whose = Attribution::of(*seq, message);
            policy.pin_task(contents, Pinned { whose, message: Arc::clone(message) });
        }
        if let Some(note) = &shown.recall {
            contents.notes.insert(*seq, note.clone());
        }
        let answered = policy.place(contents, &shown);
        if let Some(call) = answered.filter(|_| shown.recall.is_none()) {
            contents.failures.watch(&shown, call);
        }
    }

    /// Takes a closed block: it becomes the latest one. Under `strict`, the previous latest block
    /// leaves the view, and what is no longer fresh becomes light; under `cache-aware`, that happens
    /// when it pays.
    ///
    /// Returns `false` and changes nothing if `block` is not newer than the latest block.
    pub fn fold(&mut self, block: &Block) -> bool {
        let Some(block) = self.contents.close(block) else { return false };
        self.policy.get_mut().fold(&mut self.contents, block);
        true
    }

    /// Returns the request to send to the model now, valid for the chat APIs.
    ///
    /// It consists of tools; the system prompt; one user turn of pinned messages and ledger; closed blocks;
    /// the open tail; and one user text of what changes from call to call. If it would exceed the budget,
    /// first the closed blocks are replaced by their lines, except for the user's last question, then fresh
    /// large parts by their notices; `unfit` says so, and what is still too much.
    ///
    /// The cost depends on the size of the window, not on the number of blocks.
    ///
    /// A view and its clones must be used with one `tokens`: a message is counted once, so a second
    /// counter would get the first one's numbers for what was already counted.
    #[must_use]
    pub fn prompt(&self, budget: &Budget, tokens: &dyn TokenCounter) -> Prompt {
        self.policy.get().prompt(&self.contents, budget, tokens)
    }

    /// Returns what [`prompt`](Self::prompt) shows without a budget, message by message; `None` under `strict`.
    #[must_use]
    pub fn arrangement(&self) -> Option<Arrangement> {
        match &self.policy {
            ActivePolicy::CacheAware(policy) => Some(policy.arrangement(&self.contents)),
            ActivePolicy::Strict(_) => None,
        }
    }

    /// Continues under `cache-aware` with these settings: another model has other prices.
    pub fn set_cache_aware(&mut self, settings: CacheAware) {
        self.contents.config.fold_policy = FoldPolicy::CacheAware(settings);
        self.contents.show_once();
        match &mut self.policy {
            ActivePolicy::CacheAware(policy) => policy.set(settings),
            ActivePolicy::Strict(_) => {
                self.policy = ActivePolicy::restore(&mut self.contents, None);
            }
        }
    }

    /// Sets the names that the model uses from now on. The ledger is rewritten; what is already in view keeps its
    /// names until it is restored.
    pub fn set_names(&mut self, names: Names) {
        let before = std::mem::replace(&mut self.contents.config.names, names);
        if let ActivePolicy::CacheAware(policy) = &mut self.policy {
            policy.rename(&self.contents, &before);
        }
    }

    /// Sets how many tokens of its own, instructions and tools, the agent sends before every prompt: `cache-aware`
    /// counts them. The number is stored with the snapshot.
    pub fn set_front_tokens(&mut self, tokens: u64) {
        if let ActivePolicy::CacheAware(policy) = &mut self.policy {
            policy.set_front_tokens(tokens);
        }
    }

    /// Notes that the model recalled something in a further call from the last prompt, with this many tokens after it,
    /// that is recorded nowhere: `cache-aware` takes its cost into account. Recorded calls are counted automatically.
    pub fn note_recall(&mut self, tokens: u64) {
        if let ActivePolicy::CacheAware(policy) = &mut self.policy {
            policy.note_recall(tokens);
        }
    }

    /// Notes that the provider's cache no longer holds anything of what was sent: it has to be written again in any
    /// case.
    pub fn cool(&mut self) {
        if let ActivePolicy::CacheAware(policy) = &mut self.policy {
            policy.cool();
        }
    }

    /// Sets what the provider billed for the last prompt: the next decision is based on it. `strict` ignores it.
    pub fn bill(&mut self, billed: &Billed) {
        if let ActivePolicy::CacheAware(policy) = &mut self.policy {
            policy.bill(billed);
        }
    }

    /// Sets whether the stable part of the prompt has to stay as it is, until the next call: a request may be one
    /// in which nothing can leave. `strict` ignores it.
    pub fn hold(&mut self, is_held: bool) {
        if let ActivePolicy::CacheAware(policy) = &mut self.policy {
            policy.hold(is_held);
        }
    }

    /// Sets the messages of other branches, which are recorded between those that this view shows: a restored
    /// view skips them.
    pub fn pass_over(&mut self, others: Vec<Range<u64>>) {
        self.contents.others = others;
    }

    /// Returns the messages of other branches.
    #[must_use]
    pub fn passed_over(&self) -> &[Range<u64>] {
        &self.contents.others
    }

    /// Returns the first message of the closed blocks and the open tail.
    #[must_use]
    pub fn first_shown(&self) -> Option<SeqNo> {
        self.contents.first_shown()
    }

    /// Keeps the message in every prompt from now on: at the beginning, under `cache-aware` once it has
    /// left its place. `message` is the exact message, and `whose` its origin.
    pub fn pin(&mut self, whose: Attribution, message: Arc<Message>) {
        if self.contents.can_pin(whose.seq(), &message) {
            self.policy.get_mut().pin(&mut self.contents, Pinned { whose, message });
        }
    }

    /// Returns whether a message is at the beginning of every prompt: one of the system prompt, or a
    /// pinned one that has left its place.
    #[must_use]
    pub fn is_standing(&self, seq: SeqNo) -> bool {
        self.contents.is_standing(seq)
    }

    /// Sets the todo list, recited at the end of every prompt; `None` for none.
    pub fn set_todo_list(&mut self, text: Option<String>) {
        self.contents.todo_list = text.filter(|text| !text.trim().is_empty());
    }

    /// Says `text` at the end of every prompt from now on, in place of what was said about the same
    /// matter; `None` removes that.
    pub fn notice(&mut self, about: &str, text: Option<String>) {
        let notices = &mut self.contents.notices;
        match text {
            Some(text) => notices.insert(about.to_owned(), text),
            None => notices.remove(about),
        };
    }

    /// Returns the same view, with prompts that end with hints to earlier blocks.
    #[must_use]
    pub fn hinting(&self, hints: Hints) -> Self {
        let mut view = self.clone();
        view.contents.hints = hints;
        view
    }

    /// Returns whether earlier blocks may be named at the end of its prompts, that is, whether some closed block is
    /// not in view.
    pub(crate) fn has_left(&self) -> bool {
        match self.contents.closed.first() {
            Some(first) => first.id.n() > 1,
            None => self.folds() > 0,
        }
    }

    /// Returns whether the block with this number is in view.
    pub(crate) fn shows_block(&self, n: u32) -> bool {
        self.contents.closed.iter().any(|block| block.id.n() == n)
    }

    /// Returns whether a block holds only messages of other branches.
    pub(crate) fn is_of_others(&self, block: &Block) -> bool {
        self.contents.is_of_others(block)
    }

    /// Returns the number of the block that left the view last; 0 while none has.
    pub(crate) fn last_left(&self) -> u32 {
        let first = self.contents.closed.first().map_or(0, |block| block.id.n());
        first.saturating_sub(1)
    }

    /// Returns what the model has not answered yet, preceded by its last message, in order; if there are many, the
    /// newest.
    pub(crate) fn newest(&self) -> Vec<&Message> {
        const MOST: usize = 12;
        let mut newest = Vec::new();
        for message in self.contents.entries().rev().map(Entry::message).take(MOST) {
            newest.push(message);
            if *message.role() == Role::Assistant {
                break;
            }
        }
        newest.reverse();
        newest
    }

    /// Returns what cannot be derived from the recorded messages, for [`restore`](Self::restore).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.contents.snapshot(self.policy.get().account(&self.contents))
    }

    /// Returns how often the stable part of the prompt has changed other than by growing at its end: by a fold, by the
    /// latest block leaving for lack of room, by a new pin. What a budget removes from one prompt is not counted: it
    /// concerns only that prompt, and the view stays as it is.
    #[must_use]
    pub fn prefix_moves(&self) -> u64 {
        let moves = self.policy.get().is_about_to_move(&self.contents);
        self.contents.moves + u64::from(moves)
    }

    /// Returns how much it shows, and when blocks leave it.
    #[must_use]
    pub fn config(&self) -> &ViewConfig {
        &self.contents.config
    }

    /// Returns the tools that the view gives to the model, in a stable order.
    #[must_use]
    pub fn tools(&self) -> &[ToolDefinition] {
        self.policy.get().tools().definitions()
    }

    /// Returns how many blocks were folded.
    #[must_use]
    pub fn folds(&self) -> u64 {
        self.contents.ledger.folds()
    }
}

impl fmt::Debug for LiveView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveView")
            .field("latest", &self.contents.latest().map(|latest| &latest.id))
            .field("open_tail", &self.contents.open_tail.len())
            .field("pins", &self.contents.pins.keys())
            .field("folds", &self.folds())
            .finish_non_exhaustive()
    }
}
