//! The newest records of a todo, read at once: what a search of a todo that has changed would otherwise ask a server for
//! one after the other.

use super::Records;
use crate::{Error, revector};
use foldback_kv::{Key, Space, Todo};
use std::ops::Range;
use std::sync::Arc;

/// The newest records of a todo, and its head, which was read before them.
pub(super) struct Tail {
    todo: u32,
    head: u64,
    parts: Vec<Part>,
}

/// The records of a range.
struct Part {
    space: Space,
    range: Range<u64>,
    found: Vec<(u64, Vec<u8>)>,
}

/// Where there are this many records of a kind, none is read ahead.
const MOST: usize = 256;

impl Records {
    /// Returns the same records. Of a todo's blocks those from `block` on, and of its messages those from `message` on,
    /// are as they are now, unless there are many or some are damaged.
    pub(crate) fn with_tail(&self, todo: &Todo, block: u32, message: u64) -> Result<Self, Error> {
        let ranges = [
            (Space::Block, u64::from(block)..Key::N_END),
            (Space::Message, message..Key::N_END),
            (Space::Vector, message..Key::N_END),
            (Space::Index, revector::STATE..revector::STATE + 1),
        ];
        let scans = match self.kv.scan_each(todo.no(), &ranges, MOST) {
            Ok(scans) => scans,
            // Each record is then read alone, so that damage affects no other.
            Err(foldback_kv::Error::Corrupt { .. } | foldback_kv::Error::CorruptHead { .. }) => {
                return Ok(self.clone());
            }
            Err(error) => return Err(Error::of(todo.id(), error)),
        };
        if scans.found.iter().any(|found| found.len() >= MOST) {
            return Ok(self.clone());
        }
        let parts = ranges.into_iter().zip(scans.found);
        let parts = parts.map(|((space, range), found)| Part { space, range, found });
        let tail = Tail { todo: todo.no(), head: scans.head, parts: parts.collect() };
        Ok(Self { tail: Some(Arc::new(tail)), ..self.clone() })
    }

    pub(super) fn tail_of(&self, todo: &Todo) -> Option<&Tail> {
        self.tail.as_deref().filter(|tail| tail.todo == todo.no())
    }
}

impl Tail {
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Returns the records of a range, if all of it was read.
    pub(super) fn scan(
        &self,
        space: Space,
        range: Range<u64>,
        limit: usize,
    ) -> Option<Vec<(u64, Vec<u8>)>> {
        let holds = |known: &Range<u64>| known.start <= range.start && range.end <= known.end;
        let part = self.parts.iter().find(|part| part.space == space && holds(&part.range))?;
        let found = part.found.iter().filter(|(n, _)| range.contains(n));
        Some(found.take(limit).cloned().collect())
    }

    /// Returns a record, if it was read; the inner `None` is one that does not exist.
    pub(super) fn get(&self, space: Space, n: u64) -> Option<Option<Vec<u8>>> {
        let found = self.scan(space, n..n.saturating_add(1), 1)?;
        Some(found.into_iter().next().map(|(_, bytes)| bytes))
    }

    /// Returns the last record, if it was read; with the inner `None` there is none at all.
    pub(super) fn last(&self, space: Space) -> Option<Option<(u64, Vec<u8>)>> {
        let has_end = |part: &&Part| part.space == space && part.range.end == Key::N_END;
        let part = self.parts.iter().find(has_end)?;
        let last = part.found.last().cloned();
        (last.is_some() || part.range.start == 0).then_some(last)
    }
}
