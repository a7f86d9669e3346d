//! The identity of a thread, where its lines end, and which part of them it copied from another.

use super::entry::{Entry, Kind};
use crate::conversion::Conversion;
use crate::object::Object;
use foldback_core::Timestamp;
use std::borrow::Cow;
use std::collections::HashSet;

/// Keys of a thread's identity that are recorded as they are; the record itself is kept as well.
const FACTS: [&str; 13] = [
    "session_id",
    "cwd",
    "originator",
    "cli_version",
    "source",
    "thread_source",
    "model_provider",
    "git",
    "forked_from_id",
    "parent_thread_id",
    "history_mode",
    "history_base",
    "timestamp",
];

/// What the log says about its thread. Only the first statement is about it: forks and sub-agents
/// copy the lines of their parent, its statement included.
pub(super) struct Meta<'e, 'r> {
    entry: Option<&'e Entry<'r>>,
    /// The thread that lines were copied from.
    copied_from: Option<Cow<'r, str>>,
    /// The entries, by number, that were copied: from the first to before the second.
    pub(super) copied: Option<(usize, usize)>,
}

impl<'e, 'r> Meta<'e, 'r> {
    pub(super) fn of(entries: &'e [Entry<'r>]) -> Self {
        let mut metas = entries.iter().enumerate().filter(|(_, entry)| entry.kind == Kind::Meta);
        let Some((at, entry)) = metas.next() else {
            return Self { entry: None, copied_from: None, copied: None };
        };
        let own = entry.payload.text("id");
        let foreign = metas.find_map(|(at, meta)| {
            let id = meta.payload.text("id")?;
            (own.as_ref() != Some(&id)).then_some((at, id))
        });
        let Some((from, copied_from)) = foreign else {
            return Self { entry: Some(entry), copied_from: None, copied: None };
        };
        let behind = entries.iter().enumerate().skip(from);
        let starts = behind.filter(|(_, entry)| entry.is_turn_start());
        let turns: Vec<_> = starts.map(|(at, start)| (at, is_own(start, entry))).collect();
        let own = turns.iter().find(|(_, is_own)| *is_own == Some(true)).map(|(at, _)| *at);
        // Before its own first turn, all that a fork has is its parent's.
        let is_before = !turns.is_empty()
            && turns.iter().all(|(_, is_own)| *is_own == Some(false))
            && parents_of(entry).any(|parent| parent == copied_from);
        let begin = own.or_else(|| is_before.then_some(entries.len()));
        let copied = begin.map(|begin| (at + 1, begin));
        Self { entry: Some(entry), copied_from: Some(copied_from), copied }
    }

    /// Returns the id of the thread.
    pub(super) fn id(&self) -> Option<String> {
        self.entry?.payload.text("id").map(Cow::into_owned)
    }

    pub(super) fn state(&self, conversion: &mut Conversion) {
        let Some(entry) = self.entry else { return };
        for key in FACTS {
            if let Some(value) = entry.payload.get(key).filter(|value| value.get() != "null") {
                conversion.fact(key, value.get());
            }
        }
        if let Some(from) = &self.copied_from {
            conversion.fact_text("copied_from", from);
        }
    }

    /// Returns whether a part of the thread's history is elsewhere.
    pub(super) fn is_partial(&self) -> bool {
        let base = self.entry.and_then(|entry| entry.payload.get("history_base"));
        base.is_some_and(|base| base.get() != "null") || self.copied.is_some()
    }
}

/// Returns the entries of each thread, where the logs of several follow each other.
pub(super) fn threads<'e, 'r>(mut entries: &'e [Entry<'r>]) -> Vec<&'e [Entry<'r>]> {
    let mut all = Vec::new();
    while let Some((thread, rest)) =
        next_thread(entries).and_then(|at| entries.split_at_checked(at))
    {
        all.push(thread);
        entries = rest;
    }
    all.push(entries);
    all
}

/// Returns where another thread begins: with a statement about it that was not copied. Statements are copied before the
/// first own turn, from an older thread, which an earlier one names as its parent or whose statement is directly behind
/// another.
fn next_thread(entries: &[Entry<'_>]) -> Option<usize> {
    let mut behind = entries.iter().enumerate();
    let (mut last, own) = behind.find(|(_, entry)| entry.kind == Kind::Meta)?;
    let own_id = own.payload.text("id");
    let mut parents: HashSet<_> = parents_of(own).collect();
    let mut has_begun = false;
    for (at, entry) in behind {
        has_begun |= entry.is_turn_start() && is_own(entry, own) == Some(true);
        if entry.kind != Kind::Meta {
            continue;
        }
        if let Some(id) = entry.payload.text("id").filter(|id| own_id.as_ref() != Some(id)) {
            let is_newer = own_id.as_deref().and_then(time_of_id).zip(time_of_id(&id));
            let is_newer = is_newer.is_some_and(|(own, other)| own < other);
            if has_begun || is_newer || (at != last + 1 && !parents.contains(&id)) {
                return Some(at);
            }
            parents.extend(parents_of(entry));
        }
        last = at;
    }
    None
}

/// Returns the threads that a thread says it continues.
fn parents_of<'r>(meta: &Entry<'r>) -> impl Iterator<Item = Cow<'r, str>> + use<'r> {
    let payload = &meta.payload;
    let spawn = payload.object("source").and_then(|source| source.object("subagent"));
    let spawn = spawn.and_then(|subagent| subagent.object("thread_spawn"));
    let parents = [
        payload.text("forked_from_id"),
        payload.text("parent_thread_id"),
        payload.object("history_base").and_then(|base| base.text("thread_id")),
        spawn.and_then(|spawn| spawn.text("parent_thread_id")),
    ];
    parents.into_iter().flatten()
}

/// Returns whether a turn is the thread's own; `None` if that is not known. Ids of turns and threads begin with their
/// time; if they do not, the times of the records decide.
fn is_own(start: &Entry<'_>, meta: &Entry<'_>) -> Option<bool> {
    let turn = start.payload.text("turn_id");
    let thread = meta.payload.text("id");
    if let (Some(turn), Some(thread)) =
        (turn.as_deref().and_then(time_of_id), thread.as_deref().and_then(time_of_id))
    {
        return Some(turn >= thread);
    }
    let time = |value| Object::text_of(value).and_then(|text| Timestamp::parse(&text));
    let born = meta.payload.get("timestamp").or(meta.timestamp).and_then(time);
    Some(start.timestamp.and_then(time)? >= born?)
}

/// Returns the time in an id of version 7: its first 48 bits.
fn time_of_id(id: &str) -> Option<u64> {
    let mut parts = id.split('-');
    let (high, low, version) = (parts.next()?, parts.next()?, parts.next()?);
    let is_v7 = high.len() == 8 && low.len() == 4 && version.starts_with('7');
    u64::from_str_radix(&format!("{high}{low}"), 16).ok().filter(|_| is_v7)
}
