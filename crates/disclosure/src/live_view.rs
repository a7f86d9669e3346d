//! What a session shows to the model.

use crate::account::{Account, Declared};
use crate::called::Called;
use crate::entry::{Entry, Form, Kind, Shown};
use crate::failure::{FAILURES_KEPT, Failure, error_head, target};
use crate::ledger::{RULE, TOO_MANY, ledger_line};
use crate::opening::{Pinned, pinned_parts, user_turn};
use crate::quote::escaped;
use crate::repair::sendable;
use crate::tools::{definitions, shortest};
use crate::{Attribution, Marks, Schedule, Snapshot, ViewConfig};
use foldback_core::{
    Block, BlockId, Estimate, Message, Pairing, PairingTracker, Part, Role, SeqNo, TokenCounter,
    ToolDefinition, message_tokens,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What a session shows to the model: standing instructions, pinned messages, the ledger, the
/// latest block, the open tail, and what changes from call to call.
///
/// It is pure data, of constant size, and cheap to clone: messages are shared. Give it every
/// message by [`append`](Self::append) and every sealed block by [`fold`](Self::fold), once they
/// are durable or on a copy; ask for the request by [`prompt`](Self::prompt).
#[derive(Clone)]
pub struct LiveView {
    pub(crate) config: ViewConfig,
    /// What recorded text stands between.
    pub(crate) marks: Marks,
    /// Standing instructions: those in front of the first other message.
    pub(crate) head: Vec<(SeqNo, Form)>,
    /// The first message that was no instruction.
    begins: Option<SeqNo>,
    pub(crate) pins: BTreeMap<SeqNo, Pinned>,
    /// Pinned messages and ledger, as one user turn. Under the schedule that folds by cost, the pinned
    /// messages that left their place; there may be none.
    pub(crate) opening: Option<Form>,
    /// The lines of blocks, while they are few.
    pub(crate) ledger: Vec<String>,
    /// The closed blocks in view, the latest last. Under the strict schedule at most that one.
    pub(crate) held: Vec<Sealed>,
    pub(crate) tail: Vec<Entry>,
    /// Messages from here on may show large parts whole.
    fresh_from: SeqNo,
    /// The notes of memory tools' answers that are in view, and of the newest that are not.
    pub(crate) notes: BTreeMap<SeqNo, String>,
    pub(crate) failures: Vec<Failure>,
    /// The newest calls that are not in view.
    pub(crate) called: Called,
    pub(crate) todo_list: Option<String>,
    pub(crate) notices: BTreeMap<String, String>,
    pub(crate) folds: u64,
    pub(crate) moves: u64,
    tracker: PairingTracker,
    /// The calls that wait for their result.
    open_calls: Vec<OpenCall>,
    pub(crate) tools: Arc<Tools>,
    /// Under the schedule that folds by cost: what was spent.
    pub(crate) account: Option<Account>,
    /// Under that schedule: what is told of the blocks that left, a message each.
    pub(crate) told: Vec<Form>,
}

/// Tools as they are declared, and their tokens once they were counted.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) definitions: Vec<ToolDefinition>,
    tokens: OnceLock<usize>,
    estimate: OnceLock<u64>,
}

impl Tools {
    fn new(definitions: Vec<ToolDefinition>) -> Self {
        Self { definitions, tokens: OnceLock::new(), estimate: OnceLock::new() }
    }

    /// Counted once: a view is used with one counter.
    pub(crate) fn tokens(&self, counter: &dyn TokenCounter) -> usize {
        *self.tokens.get_or_init(|| self.count(counter))
    }

    pub(crate) fn estimate(&self) -> u64 {
        *self.estimate.get_or_init(|| self.count(&Estimate) as u64)
    }

    fn count(&self, counter: &dyn TokenCounter) -> usize {
        let texts = self.definitions.iter().flat_map(|t| [&t.name, &t.description, &t.parameters]);
        texts.map(|text| counter.count(text)).sum()
    }
}

/// A call that waits for its result.
#[derive(Clone, Debug)]
struct OpenCall {
    id: String,
    tool: String,
    target: String,
}

/// A closed block in view.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) id: BlockId,
    pub(crate) line: String,
    pub(crate) entries: Vec<Entry>,
}

impl LiveView {
    /// A view that shows nothing yet. What it tells of recorded texts beside messages stands between
    /// `marks`.
    #[must_use]
    pub fn new(config: ViewConfig, marks: Marks) -> Self {
        let (account, tools) = match config.schedule {
            Schedule::Strict => (None, definitions()),
            Schedule::CacheAware(_) => (Some(Account::default()), shortest()),
        };
        let mut view = Self {
            config,
            marks,
            head: Vec::new(),
            begins: None,
            pins: BTreeMap::new(),
            opening: None,
            ledger: Vec::new(),
            held: Vec::new(),
            tail: Vec::new(),
            fresh_from: SeqNo(0),
            notes: BTreeMap::new(),
            failures: Vec::new(),
            called: Called::default(),
            todo_list: None,
            notices: BTreeMap::new(),
            folds: 0,
            moves: 0,
            tracker: PairingTracker::default(),
            open_calls: Vec::new(),
            tools: Arc::new(Tools::new(tools)),
            account,
            told: Vec::new(),
        };
        view.write_opening();
        view
    }

    /// The view as it was when the snapshot was taken: the same prompts, byte for byte. One that was
    /// taken under the other schedule goes on under this one.
    ///
    /// `pins` are the messages that [`Snapshot::pins`] names and whose they are, `closed` the blocks from
    /// [`Snapshot::first_in_view`] on with their messages, `tail` the messages behind them. A note of
    /// a memory tool's answer that is not given is taken from the snapshot.
    #[must_use]
    pub fn restore(
        config: ViewConfig,
        marks: Marks,
        snapshot: Snapshot,
        pins: Vec<(Attribution, Arc<Message>)>,
        closed: Vec<(Block, Vec<Shown>)>,
        tail: Vec<Shown>,
    ) -> Self {
        let mut view = Self::new(config, marks);
        view.begins = snapshot.begins;
        view.ledger = snapshot.ledger;
        view.folds = snapshot.folds;
        view.moves = snapshot.moves;
        view.fresh_from = snapshot.fresh_from;
        view.notes = snapshot.notes;
        view.failures = snapshot.failures;
        view.called = snapshot.called;
        view.todo_list = snapshot.todo_list;
        view.notices = snapshot.notices;
        for (whose, message) in pins {
            let seq = whose.seq();
            if view.stands(seq, &message) {
                if let Some(message) = sendable(&message) {
                    view.head.push((seq, Form::new(message)));
                }
            } else {
                view.pins.insert(seq, Pinned { whose, message });
            }
        }
        view.head.sort_by_key(|(seq, _)| *seq);
        for (block, messages) in closed {
            view.replay(messages);
            // As after the fold: what comes next begins a unit of its own.
            let entries = std::mem::take(&mut view.tail);
            let line = ledger_line(&block.header, &Estimate);
            view.held.push(Sealed { id: block.header.block_id, line, entries });
        }
        view.replay(tail);
        match (view.account.is_some(), snapshot.account) {
            (true, Some(account)) => view.resume(account),
            (true, None) => view.begin_account(),
            (false, Some(_)) => view.become_strict(),
            (false, None) => view.settle(),
        }
        view.write_opening();
        view
    }

    /// Takes the next message. Instructions in front of all other messages stand at the head for
    /// good; a later one stands in its place, as a user's text that says what it is, and folds like
    /// other messages. The first user's message is pinned as the task.
    pub fn append(&mut self, shown: Shown) {
        self.before_append(&shown.message);
        let message = &shown.message;
        if self.stands(shown.seq, message) {
            if let Some(sent) = sendable(message) {
                self.moves += u64::from(self.has_begun());
                self.head.push((shown.seq, Form::new(sent)));
            }
            return;
        }
        self.begins.get_or_insert(shown.seq);
        let showed = self.shows_block();
        if *message.role() == Role::User
            && !message.content().is_blank()
            && !self.pins.values().any(|pin| *pin.message.role() == Role::User)
        {
            let whose = Attribution::of(shown.seq, message);
            let message = Arc::clone(message);
            match self.account {
                // It stands where it was said.
                Some(_) => drop(self.pins.insert(shown.seq, Pinned { whose, message })),
                None => self.pin(whose, message),
            }
        }
        if let Some(note) = &shown.recall {
            self.notes.insert(shown.seq, note.clone());
        }
        if let Some((pairing, call)) = self.place(&shown) {
            if pairing == Pairing::Answers && shown.recall.is_none() {
                self.watch(&shown, call);
            }
            // A block that no longer fits beside the tail leaves, and what follows moves up.
            self.moves += u64::from(showed && !self.shows_block());
        }
    }

    /// Takes a sealed block: it becomes the latest one. Under the strict schedule, what was the latest
    /// leaves the view, and whatever is no longer fresh becomes light; under the other, that happens
    /// when it pays.
    ///
    /// Gives `false`, and changes nothing, when `block` is not newer than the latest block.
    pub fn fold(&mut self, block: &Block) -> bool {
        let id = &block.header.block_id;
        if self.latest().is_some_and(|latest| id.n() <= latest.id.n()) {
            return false;
        }
        // A reminder behind what the model has not seen yet does not make that old.
        let sealed = self.latest().into_iter().flat_map(|latest| latest.entries.iter().rev());
        let newest =
            self.tail.iter().rev().chain(sealed).find(|entry| entry.kind != Kind::Instruction);
        self.fresh_from = newest.map_or(block.range.last().next(), |newest| newest.unit);
        let split = self.tail.partition_point(|entry| entry.seq <= block.range.last());
        let open = self.tail.split_off(split);
        let entries = std::mem::replace(&mut self.tail, open);
        let line = ledger_line(&block.header, &Estimate);
        for failure in &mut self.failures {
            if block.range.contains(SeqNo(failure.seq)) {
                failure.block = Some(id.n());
            }
        }
        let sealed = Sealed { id: id.clone(), line: line.clone(), entries };
        if self.account.is_some() {
            self.held.push(sealed);
            return true;
        }
        let left = std::mem::replace(&mut self.held, vec![sealed]);
        let left = left.iter().flat_map(|sealed| &sealed.entries);
        self.called.take(left, self.config.called_tokens());
        self.moves += 1;
        self.list(line);
        self.settle();
        self.forget_notes();
        self.write_opening();
        true
    }

    /// Takes the line of a block into the ledger.
    pub(crate) fn list(&mut self, line: String) {
        self.folds += 1;
        if self.lists_blocks() {
            self.ledger.push(line);
        } else {
            self.ledger.clear();
        }
    }

    /// The latest closed block.
    pub(crate) fn latest(&self) -> Option<&Sealed> {
        self.held.last()
    }

    /// Keeps the message in every prompt from now on, at the beginning. It does not stand again in
    /// the latest block or the tail. `message` is the exact message, and `whose` says whose it is.
    pub fn pin(&mut self, whose: Attribution, message: Arc<Message>) {
        let seq = whose.seq();
        let is_new = !self.pins.contains_key(&seq)
            && !self.head.iter().any(|(at, _)| *at == seq)
            && !message.content().is_blank();
        if !is_new {
            return;
        }
        if self.account.is_some() {
            self.pins.insert(seq, Pinned { whose, message });
            self.keep_pin(seq);
            return;
        }
        self.moves += u64::from(self.has_begun());
        let entries = self.held.iter_mut().flat_map(|sealed| &mut sealed.entries);
        for entry in entries.chain(&mut self.tail).filter(|entry| entry.seq == seq) {
            entry.pin();
        }
        self.pins.insert(seq, Pinned { whose, message });
        self.write_opening();
    }

    /// The todo list, recited at the end of every prompt; `None` for none.
    pub fn set_todo_list(&mut self, text: Option<String>) {
        self.todo_list = text.filter(|text| !text.trim().is_empty());
    }

    /// Says `text` at the end of every prompt from now on, in place of what was said about the same
    /// matter; `None` says no more about it.
    pub fn notice(&mut self, about: &str, text: Option<String>) {
        match text {
            Some(text) => self.notices.insert(about.to_owned(), text),
            None => self.notices.remove(about),
        };
    }

    /// What the recorded messages do not tell, for [`restore`](Self::restore).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let head = self.head.iter().map(|(seq, _)| *seq);
        let mut pins: Vec<SeqNo> = head.chain(self.pins.keys().copied()).collect();
        pins.sort_unstable();
        Snapshot {
            pins,
            begins: self.begins,
            ledger: self.ledger.clone(),
            folds: self.folds,
            moves: self.moves,
            fresh_from: self.fresh_from,
            notes: self.notes.clone(),
            failures: self.failures.clone(),
            called: self.called.clone(),
            todo_list: self.todo_list.clone(),
            notices: self.notices.clone(),
            account: self.account_now(),
        }
    }

    /// How often the stable part of the prompt has changed otherwise than by growing at its end: by
    /// a fold, by the latest block leaving for want of room, by a new pin. What a budget takes out
    /// of one prompt is not counted: it is that prompt's matter, and the view stays as it is.
    #[must_use]
    pub fn prefix_moves(&self) -> u64 {
        self.moves + u64::from(self.plan().is_some_and(|plan| plan.moves))
    }

    /// The tools that the view gives to the model, in a stable order.
    #[must_use]
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools.definitions
    }

    /// How many blocks were folded.
    #[must_use]
    pub fn folds(&self) -> u64 {
        self.folds
    }

    /// Whether the latest block is shown whole, when no budget forbids it: it and the tail together
    /// fit the window. One unit that is larger than the window on its own does not count.
    #[must_use]
    pub fn shows_block(&self) -> bool {
        // The whole tail counts, so that a block that had to leave does not come back before the
        // next fold.
        self.latest().is_some_and(|latest| {
            if self.account.is_some() {
                return true;
            }
            let max = self.config.window_max;
            counted(&latest.entries, max) + visible(&self.tail) <= max
        })
    }

    /// The messages of the tail and of the closed blocks from `from` on that count against the
    /// window.
    pub(crate) fn window(&self, from: usize) -> usize {
        let max = self.config.window_bound();
        let held = self.held.iter().skip(from).map(|sealed| counted(&sealed.entries, max));
        held.sum::<usize>() + counted(&self.tail, max)
    }

    /// Whether the ledger holds lines, rather than the sentence that there are too many.
    pub(crate) fn lists_blocks(&self) -> bool {
        self.folds <= self.config.ledger_max_lines as u64
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.folds > 0 || !self.tail.is_empty() || !self.pins.is_empty()
    }

    /// Whether the message is a standing instruction.
    fn stands(&self, seq: SeqNo, message: &Message) -> bool {
        message.role().is_instruction() && self.begins.is_none_or(|begins| seq < begins)
    }

    /// Puts recorded messages into the tail again.
    fn replay(&mut self, messages: Vec<Shown>) {
        for mut shown in messages {
            if self.stands(shown.seq, &shown.message) {
                continue;
            }
            if shown.recall.is_none() {
                shown.recall = self.notes.get(&shown.seq).cloned();
            }
            self.place(&shown);
        }
    }

    /// Puts the message into the tail. Gives how it stands to the calls before it and, where it
    /// answers one, that call; `None` where there is nothing to show.
    fn place(&mut self, shown: &Shown) -> Option<(Pairing, Option<OpenCall>)> {
        let mut entry = Entry::new(shown, self.config.fresh_tokens)?;
        let is_reminder = entry.kind == Kind::Instruction;
        let waits = !self.tracker.open().is_empty();
        // A unit is what the chunker takes for one: all results belong to the message before them,
        // whatever they answer, and so does an instruction while calls wait.
        if entry.kind == Kind::Result || (is_reminder && waits) {
            entry.unit = self.tail.last().map_or(entry.seq, |before| before.unit);
        }
        let pairing = match is_reminder {
            // It is shown as a user's text, but unlike a user's it gives up no call.
            true => Pairing::Free { abandoned: Vec::new() },
            false => self.tracker.observe(entry.message()),
        };
        let mut answered = None;
        if pairing == Pairing::Answers {
            let id = entry.message().tool_call_id();
            let at =
                self.open_calls.iter().position(|open| id.is_some_and(|id| id.as_str() == open.id));
            answered = at.map(|at| self.open_calls.remove(at));
        } else if entry.kind != Kind::Result && !is_reminder {
            self.open_calls.clear();
            for call in shown.message.tool_calls() {
                let id = crate::repair::legal_id(call.id.as_str()).into_owned();
                let tool = call.name.clone();
                self.open_calls.push(OpenCall { id, tool, target: target(call) });
            }
        }
        if self.account.is_none() && self.pins.contains_key(&entry.seq) {
            entry.pin();
        }
        self.tail.push(entry);
        Some((pairing, answered))
    }

    /// Keeps a failure in sight until the same tool succeeds on the same target.
    fn watch(&mut self, shown: &Shown, call: Option<OpenCall>) {
        let Some(OpenCall { tool, target, .. }) = call else { return };
        self.failures.retain(|failure| failure.tool != tool || failure.target != target);
        let Some(head) = error_head(&shown.message) else { return };
        let stored = shown.offloads.first().map(|offload| offload.reference().to_string());
        let seq = shown.seq.0;
        self.failures.push(Failure { seq, tool, target, head, stored, block: None });
        let over = self.failures.len().saturating_sub(FAILURES_KEPT);
        self.failures.drain(..over);
    }

    pub(crate) fn settle(&mut self) {
        let fresh_from = self.fresh_from;
        let stale = |entry: &&mut Entry| entry.seq < fresh_from;
        let held = self.held.iter_mut().flat_map(|sealed| &mut sealed.entries);
        held.filter(stale).for_each(|entry| entry.settle(true));
        self.tail.iter_mut().filter(stale).for_each(|entry| entry.settle(false));
    }

    /// Forgets the notes of what left the view, but for the newest.
    fn forget_notes(&mut self) {
        let Some(first) = self.first_shown() else { return };
        let gone: Vec<SeqNo> = self.notes.range(..first).map(|(seq, _)| *seq).collect();
        let over = gone.len().saturating_sub(self.config.consulted_max);
        for seq in gone.into_iter().take(over) {
            self.notes.remove(&seq);
        }
    }

    /// The first message of the closed blocks and the tail.
    pub(crate) fn first_shown(&self) -> Option<SeqNo> {
        self.entries().next().map(|entry| entry.seq)
    }

    /// The messages of the closed blocks and the tail.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.held.iter().flat_map(|sealed| &sealed.entries).chain(&self.tail)
    }

    fn write_opening(&mut self) {
        if self.account.is_some() {
            self.write_pins();
            return;
        }
        let mut parts: Vec<Part> = Vec::new();
        for pinned in self.pins.values() {
            parts.extend(pinned_parts(self.marks, pinned));
        }
        let mut ledger = String::from(RULE);
        if !self.lists_blocks() {
            ledger.push('\n');
            ledger.push_str(TOO_MANY);
        }
        for line in &self.ledger {
            ledger.push('\n');
            ledger.push_str(&escaped(line));
        }
        parts.push(Part::Text(ledger));
        self.opening = Some(user_turn(parts));
    }

    /// Declares these from now on.
    pub(crate) fn declare(&mut self, declared: Declared) {
        let tools = match declared {
            Declared::Nothing | Declared::Load => shortest(),
            Declared::All => definitions(),
        };
        self.tools = Arc::new(Tools::new(tools));
    }

    /// The tokens of a message as it was recorded.
    pub(crate) fn recorded_tokens(message: &Message) -> u64 {
        message_tokens(&Estimate, message) as u64
    }
}

impl fmt::Debug for LiveView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveView")
            .field("latest", &self.latest().map(|latest| &latest.id))
            .field("tail", &self.tail.len())
            .field("pins", &self.pins.keys())
            .field("folds", &self.folds)
            .finish_non_exhaustive()
    }
}

/// How many of `entries` are shown.
pub(crate) fn visible(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| entry.is_visible()).count()
}

/// How many of them count against a window of `max`: all but those of one unit that is larger on
/// its own.
fn counted(entries: &[Entry], max: usize) -> usize {
    let units: Vec<SeqNo> =
        entries.iter().filter(|entry| entry.is_visible()).map(|entry| entry.unit).collect();
    let largest = units.chunk_by(|a, b| a == b).map(<[SeqNo]>::len).max().unwrap_or(0);
    units.len() - if largest > max { largest } else { 0 }
}
