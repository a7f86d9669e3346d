//! Reads the thread of a log, turn after turn.

use super::content::{Parts, write_output};
use super::entry::{Entry, Kind};
use super::meta::Meta;
use super::unit::Unit;
use super::usage::{Usage, tokens};
use crate::conversion::Conversion;
use crate::draft::{Draft, push_member};
use crate::format::Format;
use crate::format::anthropic_blocks::{counts, members_but};
use crate::format::pairs::{Turn, in_order};
use crate::object::Object;
use serde_json::value::RawValue;
use std::collections::VecDeque;

/// A thread while it is read.
pub(super) struct Thread<'e, 'r> {
    /// The messages of the active thread.
    active: Vec<Said>,
    /// The parts that were rolled back, each with the line of the message before it.
    branches: Vec<(Option<u64>, Vec<Said>)>,
    /// The current response.
    unit: Option<Unit<'r>>,
    /// The settings for what follows.
    context: Option<&'e Entry<'r>>,
    /// Where each turn of the user begins in `active`.
    turns: Vec<usize>,
    /// Where the current turn begins in `active`, if the log says so.
    turn: Option<usize>,
    /// The last response in `active` whose cost was not counted.
    uncounted: Option<usize>,
    /// Whether the log says that the last turn has ended.
    ended: bool,
    /// Calls without an id that wait for an output without one.
    nameless: VecDeque<String>,
    /// Whether something before it is missing.
    partial: bool,
}

/// One message, and whether the client wrote it in somebody's name.
struct Said {
    turn: Turn,
    injected: bool,
}

/// Returns the thread as one conversation, then each part that was rolled back; none without a message. What is not a
/// message stays with the first, after `records`; if there is none, it is added to them.
pub(super) fn conversations<'e, 'r>(
    entries: &'e [Entry<'r>],
    records: &mut Vec<(String, &'e Entry<'r>)>,
) -> Vec<Conversion> {
    let meta = Meta::of(entries);
    let mut thread = Thread::new(meta.is_partial());
    let is_copied = |at: usize| meta.copied.is_some_and(|(from, to)| (from..to).contains(&at));
    let own =
        || entries.iter().enumerate().filter(|(at, _)| !is_copied(*at)).map(|(_, entry)| entry);
    let events = super::events::Source::of(own());
    let mut usage = Usage::of(own());
    for (at, entry) in entries.iter().enumerate() {
        if is_copied(at) {
            records.push((format!("copied {}", entry.label()), entry));
        } else if !thread.read(entry, &events, &mut usage) {
            records.push((entry.label(), entry));
        }
    }
    thread.close();
    let open = thread.open_response();
    let id = meta.id();
    let mut all = Vec::with_capacity(thread.branches.len() + 1);
    let branches = std::mem::take(&mut thread.branches);
    let threads = std::iter::once((None, thread.active))
        .chain(branches.into_iter().map(|(fork, said)| (Some(fork), said)));
    for (number, (fork, said)) in threads.filter(|(_, said)| !said.is_empty()).enumerate() {
        let id = id.as_ref().map(|id| match number {
            0 => id.clone(),
            n => format!("{id}-branch-{n}"),
        });
        let mut conversion = Conversion::new(Format::CodexLog, id);
        meta.state(&mut conversion);
        if thread.partial {
            conversion.fact("partial", "true");
        }
        conversion.unfinished_response(open.filter(|_| fork.is_none()));
        if let Some(Some(line)) = fork {
            conversion.fact("fork_point", &format!("{{\"line\":{line}}}"));
        }
        for (label, entry) in records.drain(..) {
            conversion.record(&label, entry.line, entry.raw);
        }
        for draft in in_order(said.into_iter().map(|said| said.turn).collect()) {
            conversion.add(draft);
        }
        all.push(conversion);
    }
    all
}

/// Converts items of the Responses API to drafts of our messages. Items that are not messages are left out.
pub(super) fn drafts(entries: &[Entry<'_>]) -> Vec<Draft> {
    let mut thread = Thread::new(false);
    for entry in entries {
        super::item::read(&mut thread, entry, &entry.payload);
    }
    thread.close();
    in_order(thread.active.into_iter().map(|said| said.turn).collect())
}

impl<'e, 'r> Thread<'e, 'r> {
    fn new(partial: bool) -> Self {
        Self {
            active: Vec::new(),
            branches: Vec::new(),
            unit: None,
            context: None,
            turns: Vec::new(),
            turn: None,
            uncounted: None,
            ended: false,
            nameless: VecDeque::new(),
            partial,
        }
    }

    /// Takes the next record. Returns `false` if it is in no message.
    fn read(
        &mut self,
        entry: &'e Entry<'r>,
        events: &super::events::Source,
        usage: &mut Usage<'r>,
    ) -> bool {
        if let Some(usage) = usage.read(entry) {
            self.count(entry, usage);
        }
        match &entry.kind {
            Kind::Item(_) => return super::item::read(self, entry, &entry.payload),
            Kind::Event(kind) => match kind.as_ref() {
                "task_started" | "turn_started" => {
                    self.close();
                    self.turn = Some(self.active.len());
                }
                "task_complete" | "turn_complete" | "turn_aborted" => {
                    self.close();
                    self.ended = true;
                }
                "thread_rolled_back" => {
                    let turns = entry.payload.get("num_turns").and_then(|n| n.get().parse().ok());
                    self.roll_back(turns.unwrap_or(0));
                }
                _ => return events.read(self, entry),
            },
            Kind::TurnContext => {
                self.close();
                self.context = Some(entry);
            }
            Kind::Compacted => self.replace(entry),
            Kind::Meta | Kind::Usage | Kind::Other(_) => {}
        }
        false
    }

    /// Takes the replacement of a prompt, if nothing is left of what it replaces.
    fn replace(&mut self, entry: &'e Entry<'r>) {
        self.close();
        if !self.active.is_empty() || !self.branches.is_empty() {
            return;
        }
        self.partial = true;
        if let Some(items) = entry.payload.array("replacement_history") {
            for item in items.into_iter().filter_map(Object::of) {
                super::item::read(self, entry, &item);
            }
            self.close();
        } else if let Some(message) = entry.payload.get("message").filter(|m| m.get() != "\"\"") {
            let mut parts = Parts::default();
            parts.push_all(message);
            self.say("user", entry, parts, true, None);
        }
    }

    /// Returns the current response, or a new one.
    pub(super) fn unit(&mut self, entry: &Entry<'r>) -> &mut Unit<'r> {
        self.ended = false;
        self.unit.get_or_insert_with(|| Unit::begin(entry))
    }

    /// Returns the line of the last response, if more of it or its cost may still follow.
    fn open_response(&self) -> Option<u64> {
        let at = self.uncounted.filter(|_| !self.ended)?;
        Some(self.active.get(at)?.turn.draft.line())
    }

    /// Ends the current response.
    pub(super) fn close(&mut self) {
        if let Some(unit) = self.unit.take() {
            self.uncounted = Some(self.active.len());
            self.active.push(Said { turn: unit.end(self.context), injected: false });
        }
    }

    /// Adds a message that is not from the model.
    pub(super) fn say(
        &mut self,
        role: &str,
        entry: &Entry<'r>,
        parts: Parts,
        injected: bool,
        item: Option<String>,
    ) {
        self.close();
        let mut draft = Draft::new(role, entry.line);
        parts.write(&mut draft);
        self.finish(&mut draft, entry, item);
        if injected {
            draft.keep("injected", "true");
        } else {
            self.begin_turn();
        }
        self.push(draft, None, injected);
    }

    /// Adds the output of a call.
    pub(super) fn answer(
        &mut self,
        call: Option<String>,
        entry: &Entry<'r>,
        output: Option<&RawValue>,
        item: Option<String>,
    ) {
        self.close();
        let call = call.or_else(|| self.nameless.pop_front());
        let mut draft = Draft::new("tool", entry.line);
        if let Some(id) = &call {
            draft.answers(id);
        }
        if let Some(output) = output {
            write_output(output, &mut draft);
        }
        self.finish(&mut draft, entry, item);
        self.push(draft, call, false);
    }

    /// Adds the output of a call that ran inside the model's service, if the call holds it.
    pub(super) fn answer_builtin(&mut self, call: String, entry: &Entry<'r>, parts: Parts) {
        self.close();
        let mut draft = Draft::new("tool", entry.line);
        draft.answers(&call);
        parts.write(&mut draft);
        draft.keep("builtin", "true");
        self.push(draft, Some(call), false);
    }

    /// Remembers a call that has no id, under one that was made up for it.
    pub(super) fn remember_nameless(&mut self, id: String) {
        self.nameless.push_back(id);
    }

    fn finish(&self, draft: &mut Draft, entry: &Entry<'r>, item: Option<String>) {
        if let Some(timestamp) = entry.time() {
            draft.field("timestamp", timestamp.get());
        }
        if let Some(item) = item {
            draft.keep("items", &format!("[{item}]"));
        }
    }

    fn push(&mut self, draft: Draft, answers: Option<String>, injected: bool) {
        self.active.push(Said { turn: Turn { draft, calls: Vec::new(), answers }, injected });
    }

    /// Begins a turn with what the client wrote directly before the user's message, but never
    /// before the log says that it does. What is before the first turn belongs to none.
    fn begin_turn(&mut self) {
        let end = self.active.len();
        let Some(previous) = self.turns.last() else { return self.turns.push(end) };
        let floor = self.turn.take().unwrap_or(0).max(previous + 1);
        let before = self.active.get(floor..).unwrap_or_default();
        let injected = before.iter().rev().take_while(|said| said.injected).count();
        self.turns.push(end - injected);
    }

    /// Takes the last turns of the user out of the active thread.
    fn roll_back(&mut self, count: usize) {
        self.close();
        let kept = self.turns.len().saturating_sub(count);
        let Some(&cut) = self.turns.get(kept) else { return };
        self.turns.truncate(kept);
        let branch = self.active.split_off(cut.min(self.active.len()));
        let fork = self.active.last().map(|said| said.turn.draft.line());
        self.branches.push((fork, branch));
        self.turn = None;
        self.uncounted = None;
    }

    /// Records the cost of the last response.
    fn count(&mut self, entry: &Entry<'r>, usage: &RawValue) {
        self.close();
        let said = self.uncounted.take().and_then(|at| self.active.get_mut(at));
        let Some(Said { turn: Turn { draft, .. }, .. }) = said else { return };
        draft.keep("usage", usage.get());
        let [prompt, completion] = tokens(usage);
        draft.keep("prompt_tokens", &prompt.to_string());
        draft.keep("completion_tokens", &completion.to_string());
        if let Some(response) = entry.payload.get("response_id") {
            draft.keep("response", response.get());
        }
    }
}

/// Returns what an item says in addition to `taken`, and what its record says around it.
pub(super) fn rest_of(entry: &Entry<'_>, item: &Object<'_>, taken: &[&str]) -> String {
    let mut out = format!("{{\"line\":{}", entry.line);
    for (key, value) in &item.0 {
        let is_time = key == "timestamp" && entry.time().map(RawValue::get) == Some(value.get());
        let is_taken = taken.contains(&key.as_ref()) && counts(item, key, value);
        if !is_taken && !is_time {
            push_member(key, value.get(), &mut out);
        }
    }
    let mut around = |key: &str, object: &Object<'_>, known: &[&str]| {
        let rest = members_but(object, known);
        if rest != "{}" {
            push_member(key, &rest, &mut out);
        }
    };
    if matches!(&entry.kind, Kind::Event(kind) if kind == "item_completed") {
        around("event", &entry.payload, &["type", "item"]);
    }
    if let Some(wrapper) = entry.wrapper.as_ref().filter(|_| entry.kind != Kind::Compacted) {
        let time = entry.time().map(|_| "timestamp");
        let known: Vec<_> = ["type", "payload"].into_iter().chain(time).collect();
        around("record", wrapper, &known);
    }
    out.push('}');
    out
}
