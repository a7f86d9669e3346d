//! The contents of a live view, whichever fold policy decides what leaves it.

use crate::called::Called;
use crate::entry::{Entry, Form, Kind, Shown};
use crate::failures::{Failures, OpenCall};
use crate::fold_policy::Account;
use crate::ledger::{Ledger, ledger_line};
use crate::opening::Pinned;
use crate::repair::sendable;
use crate::{Attribution, Hints, Marks, Snapshot, ViewConfig};
use foldback_core::{Block, BlockId, Estimate, Message, Pairing, PairingTracker, Role, SeqNo};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The contents of a live view: what a prompt shows, and what it says about messages that left.
#[derive(Clone)]
pub(crate) struct Contents {
    pub(crate) config: ViewConfig,
    /// The marks around recorded text.
    pub(crate) marks: Marks,
    /// The instructions before the first other message.
    pub(crate) system_prompt: Vec<(SeqNo, Form)>,
    /// The first message that was not an instruction.
    begins: Option<SeqNo>,
    pub(crate) pins: BTreeMap<SeqNo, Pinned>,
    pub(crate) ledger: Ledger,
    /// The closed blocks in view, the latest last.
    pub(crate) closed: Vec<ClosedBlock>,
    pub(crate) open_tail: Vec<Entry>,
    /// From this message on, large parts may be shown whole.
    fresh_from: SeqNo,
    /// The notes of memory tools' answers that are in view, and of the newest ones that are not.
    pub(crate) notes: BTreeMap<SeqNo, String>,
    pub(crate) failures: Failures,
    /// The newest calls that are not in view.
    pub(crate) called: Called,
    pub(crate) todo_list: Option<String>,
    pub(crate) notices: BTreeMap<String, String>,
    /// How earlier blocks relate to what is said now.
    pub(crate) hints: Hints,
    /// How often the stable part of the prompt has changed elsewhere than at its end.
    pub(crate) moves: u64,
    /// Messages of other branches of the conversation.
    pub(crate) others: Vec<Range<u64>>,
    /// The numbers of closed blocks, each with its first message that is shown with a later block.
    kept_back: Vec<(u32, SeqNo)>,
    tracker: PairingTracker,
}

/// A closed block in view.
#[derive(Clone, Debug)]
pub(crate) struct ClosedBlock {
    pub(crate) id: BlockId,
    /// Its line in the ledger, once it has left.
    pub(crate) line: String,
    pub(crate) entries: Vec<Entry>,
}

impl Contents {
    pub(crate) fn new(config: ViewConfig, marks: Marks) -> Self {
        let ledger = Ledger::new(config.ledger_max_lines);
        Self {
            config,
            marks,
            system_prompt: Vec::new(),
            begins: None,
            pins: BTreeMap::new(),
            ledger,
            closed: Vec::new(),
            open_tail: Vec::new(),
            fresh_from: SeqNo(0),
            notes: BTreeMap::new(),
            failures: Failures::default(),
            called: Called::default(),
            todo_list: None,
            notices: BTreeMap::new(),
            hints: Hints::default(),
            moves: 0,
            others: Vec::new(),
            kept_back: Vec::new(),
            tracker: PairingTracker::default(),
        }
    }

    /// Rebuilds the contents from the snapshot and the messages that were in view, each as it is while it is new.
    pub(crate) fn restore(
        config: ViewConfig,
        marks: Marks,
        snapshot: Snapshot,
        pins: Vec<(Attribution, Arc<Message>)>,
        closed: Vec<(Block, Vec<Shown>)>,
        open_tail: Vec<Shown>,
        folded: u32,
    ) -> Self {
        let mut contents = Self::new(config, marks);
        contents.begins = snapshot.begins;
        contents.ledger.resume(snapshot.ledger, snapshot.folds);
        contents.moves = snapshot.moves;
        contents.fresh_from = snapshot.fresh_from;
        contents.notes = snapshot.notes;
        contents.failures = Failures::resume(snapshot.failures);
        contents.called = snapshot.called;
        contents.todo_list = snapshot.todo_list;
        contents.notices = snapshot.notices;
        contents.others = snapshot.others;
        contents.kept_back = snapshot.kept_back;
        for (whose, message) in pins {
            let seq = whose.seq();
            if contents.is_system_prompt(seq, &message) {
                if let Some(message) = sendable(&message) {
                    contents.system_prompt.push((seq, Form::new(message)));
                }
            } else {
                contents.pins.insert(seq, Pinned { whose, message });
            }
        }
        contents.system_prompt.sort_by_key(|(seq, _)| *seq);
        for (block, mut messages) in closed {
            let n = block.header.block_id.n();
            if n <= folded {
                // Of this block, only what is shown with a later block is left.
                let kept = contents.kept_back.iter().find(|(of, _)| *of == n);
                let kept = kept.map(|(_, first)| *first);
                messages.retain(|shown| kept.is_some_and(|first| shown.seq >= first));
                contents.replay(messages);
                continue;
            }
            contents.replay(messages);
            // As after the fold: the next message begins a unit of its own.
            let entries = contents.take_first(n, contents.open_tail.len());
            if entries.is_empty() && contents.is_of_others(&block) {
                continue;
            }
            let line = ledger_line(&block.header, &Estimate);
            contents.closed.push(ClosedBlock { id: block.header.block_id, line, entries });
        }
        contents.replay(open_tail);
        contents
    }

    pub(crate) fn snapshot(&self, account: Option<Account>) -> Snapshot {
        let system_prompt = self.system_prompt.iter().map(|(seq, _)| *seq);
        let mut pins: Vec<SeqNo> = system_prompt.chain(self.pins.keys().copied()).collect();
        pins.sort_unstable();
        Snapshot {
            pins,
            begins: self.begins,
            ledger: self.ledger.lines().to_vec(),
            folds: self.ledger.folds(),
            moves: self.moves,
            fresh_from: self.fresh_from,
            notes: self.notes.clone(),
            failures: self.failures.unresolved().to_vec(),
            called: self.called.clone(),
            todo_list: self.todo_list.clone(),
            notices: self.notices.clone(),
            others: self.others.clone(),
            kept_back: self.kept_back.clone(),
            account,
        }
    }

    /// Returns whether the message belongs to the system prompt.
    pub(crate) fn is_system_prompt(&self, seq: SeqNo, message: &Message) -> bool {
        message.role().is_instruction() && self.begins.is_none_or(|begins| seq < begins)
    }

    /// Takes a message of the system prompt.
    pub(crate) fn extend_system_prompt(&mut self, seq: SeqNo, message: &Arc<Message>) {
        if let Some(message) = sendable(message) {
            self.moves += u64::from(self.has_begun());
            self.system_prompt.push((seq, Form::new(message)));
        }
    }

    /// Notes that the conversation begins here at the latest.
    pub(crate) fn begin(&mut self, seq: SeqNo) {
        self.begins.get_or_insert(seq);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.ledger.folds() > 0 || !self.open_tail.is_empty() || !self.pins.is_empty()
    }

    /// Returns whether the message is the first from a user.
    pub(crate) fn is_task(&self, message: &Message) -> bool {
        *message.role() == Role::User
            && !message.content().is_blank()
            && !self.pins.values().any(|pin| *pin.message.role() == Role::User)
    }

    /// Returns the user's last question if a closed block from `from` on holds it in its place.
    pub(crate) fn question_of(&self, from: usize) -> Option<SeqNo> {
        let asks = |entry: &&Entry| entry.is_question();
        if self.open_tail.iter().any(|entry| asks(&entry)) {
            return None;
        }
        let mut closed = self.closed.iter().skip(from).flat_map(|block| &block.entries);
        let last = closed.rfind(asks)?;
        (!last.is_pinned()).then_some(last.seq)
    }

    /// Returns whether a message is at the beginning of every prompt: one of the system prompt, or a
    /// pinned one that has left its place.
    pub(crate) fn is_standing(&self, seq: SeqNo) -> bool {
        let in_place = || self.entries().any(|entry| entry.seq == seq && !entry.is_pinned());
        self.system_prompt.iter().any(|(at, _)| *at == seq)
            || (self.pins.contains_key(&seq) && !in_place())
    }

    /// Returns whether a message can be pinned and is not already at the beginning.
    pub(crate) fn can_pin(&self, seq: SeqNo, message: &Message) -> bool {
        !self.pins.contains_key(&seq)
            && !self.system_prompt.iter().any(|(at, _)| *at == seq)
            && !message.content().is_blank()
    }

    /// Moves the text of a pinned message to the beginning from now on.
    pub(crate) fn show_at_beginning(&mut self, seq: SeqNo) {
        self.entries_mut().filter(|entry| entry.seq == seq).for_each(Entry::pin);
        self.show_once();
    }

    /// Returns whether a block holds only messages of other branches.
    pub(crate) fn is_of_others(&self, block: &Block) -> bool {
        let (first, last) = (block.range.first().0, block.range.last().0);
        self.others.iter().any(|range| range.contains(&first) && range.contains(&last))
    }

    /// Puts recorded messages back into the open tail.
    fn replay(&mut self, messages: Vec<Shown>) {
        for mut shown in messages {
            let is_others = self.others.iter().any(|range| range.contains(&shown.seq.0));
            if is_others || self.is_system_prompt(shown.seq, &shown.message) {
                continue;
            }
            if shown.recall.is_none() {
                shown.recall = self.notes.get(&shown.seq).cloned();
            }
            self.place(&shown);
        }
    }

    /// Puts the message into the open tail. Returns the call that it answers.
    pub(crate) fn place(&mut self, shown: &Shown) -> Option<OpenCall> {
        let mut entry = Entry::new(shown, &self.config)?;
        entry.follows_result =
            self.entries().next_back().is_some_and(|before| before.kind == Kind::Result);
        let is_reminder = entry.kind == Kind::Instruction;
        let waits = !self.tracker.open().is_empty();
        // Units are those of the chunker: all results belong to the message before them, whatever
        // they answer, and so does an instruction while calls wait.
        if entry.kind == Kind::Result || (is_reminder && waits) {
            entry.unit = self.open_tail.last().map_or(entry.seq, |before| before.unit);
        }
        let mut answered = None;
        // A reminder is shown as a user's text, but unlike a user's text it abandons no call.
        if !is_reminder {
            if self.tracker.observe(entry.message()) == Pairing::Answers {
                answered = self.failures.answered(entry.message().tool_call_id());
            } else if entry.kind != Kind::Result {
                self.failures.expect(shown.message.tool_calls());
            }
        }
        entry.answered = self.answered_by(&entry).map(Arc::new);
        self.open_tail.push(entry);
        self.show_last_once();
        answered
    }

    /// Takes the closed block's messages out of the open tail. Returns `None` and changes nothing if it
    /// is not newer than the latest block.
    pub(crate) fn close(&mut self, block: &Block) -> Option<ClosedBlock> {
        let id = &block.header.block_id;
        if self.latest().is_some_and(|latest| id.n() <= latest.id.n()) {
            return None;
        }
        // A reminder after what the model has not yet seen does not make that old.
        let latest = self.latest().into_iter().flat_map(|latest| latest.entries.iter().rev());
        let mut newest = self.open_tail.iter().rev().chain(latest);
        let newest = newest.find(|entry| entry.kind != Kind::Instruction);
        self.fresh_from = newest.map_or(block.range.last().next(), |newest| newest.unit);
        let split = self.open_tail.partition_point(|entry| entry.seq <= block.range.last());
        let entries = self.take_first(block.header.block_id.n(), split);
        self.failures.close(block);
        let line = ledger_line(&block.header, &Estimate);
        Some(ClosedBlock { id: id.clone(), line, entries })
    }

    /// Takes the first entries out of the open tail, for the block `n`. If the conversation has forked, calls at their
    /// end that wait for results stay: the results come later, in another block.
    fn take_first(&mut self, n: u32, count: usize) -> Vec<Entry> {
        if self.others.is_empty() {
            let open_tail = self.open_tail.split_off(count);
            return std::mem::replace(&mut self.open_tail, open_tail);
        }
        let mut waiting: Option<(usize, Vec<&str>)> = None;
        for (at, entry) in self.open_tail.iter().take(count).enumerate() {
            match entry.kind {
                Kind::Calls => {
                    let calls = entry.message().tool_calls().iter();
                    waiting = Some((at, calls.map(|call| call.id.as_str()).collect()));
                }
                Kind::Result => {
                    let id = entry.message().tool_call_id().map(|id| id.as_str());
                    waiting
                        .iter_mut()
                        .for_each(|(_, calls)| calls.retain(|call| Some(*call) != id));
                }
                Kind::Plain => waiting = None,
                Kind::Instruction => {}
            }
        }
        let end = waiting.filter(|(_, calls)| !calls.is_empty()).map_or(count, |(at, _)| at);
        let open_tail = self.open_tail.split_off(end);
        let first = open_tail.first().map(|first| first.seq).filter(|_| end < count);
        self.kept_back
            .extend(first.filter(|first| !self.is_kept_back(*first)).map(|first| (n, first)));
        std::mem::replace(&mut self.open_tail, open_tail)
    }

    /// Forgets what is shown with a later block than its own, once that block has left.
    pub(crate) fn forget_kept_back(&mut self) {
        let first = self.first_shown().unwrap_or(SeqNo(u64::MAX));
        self.kept_back.retain(|(_, kept)| *kept >= first);
    }

    fn is_kept_back(&self, seq: SeqNo) -> bool {
        self.kept_back.iter().any(|(_, kept)| *kept == seq)
    }

    /// Shows what is no longer fresh in its light form.
    pub(crate) fn settle(&mut self) {
        self.settle_before(self.fresh_from);
    }

    /// Shows what precedes this message in its light form.
    pub(crate) fn settle_before(&mut self, fresh: SeqNo) {
        let seen = |entry: &&mut Entry| entry.seq < fresh;
        let closed = self.closed.iter_mut().flat_map(|block| &mut block.entries);
        closed.filter(seen).for_each(|entry| entry.settle(true));
        self.open_tail.iter_mut().filter(seen).for_each(|entry| entry.settle(false));
        self.show_once();
    }

    /// Returns the latest closed block.
    pub(crate) fn latest(&self) -> Option<&ClosedBlock> {
        self.closed.last()
    }

    /// Returns the messages of the closed blocks and the open tail.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.closed.iter().flat_map(|block| &block.entries).chain(&self.open_tail)
    }

    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.closed.iter_mut().flat_map(|block| &mut block.entries).chain(&mut self.open_tail)
    }

    /// Returns the first message of the closed blocks and the open tail.
    pub(crate) fn first_shown(&self) -> Option<SeqNo> {
        self.entries().next().map(|entry| entry.seq)
    }

    /// Returns how many messages of the open tail and of the closed blocks from `from` on count
    /// against the window.
    pub(crate) fn window(&self, from: usize) -> usize {
        let max = self.config.window_bound();
        let closed = self.closed.iter().skip(from).map(|block| counted(&block.entries, max));
        closed.sum::<usize>() + counted(&self.open_tail, max)
    }
}

/// Returns how many of `entries` are shown.
pub(crate) fn visible(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| entry.is_visible()).count()
}

/// Returns how many of them count against a window of `max`: all except those of one unit that is
/// larger on its own.
pub(crate) fn counted(entries: &[Entry], max: usize) -> usize {
    let units: Vec<SeqNo> =
        entries.iter().filter(|entry| entry.is_visible()).map(|entry| entry.unit).collect();
    let largest = units.chunk_by(|a, b| a == b).map(<[SeqNo]>::len).max().unwrap_or(0);
    units.len() - if largest > max { largest } else { 0 }
}
