//! What a search reads of a todo that has changed. Where each read asks a server, it is read at once.

use super::{Cache, State};
use crate::Error;
use crate::records::Records;
use foldback_kv::Todo;

/// The records of a todo, for a state that catches up with them.
pub(super) struct Reading {
    /// The todo's change counter before they were read, so that they are at least as new.
    pub(super) changed: u64,
    pub(super) records: Records,
    /// That of the state when they were read.
    since: Option<u64>,
}

/// How far a state has read its todo.
pub(super) struct Position {
    changed: Option<u64>,
    /// The last block and the message after it.
    end: Option<(u32, u64)>,
}

impl Reading {
    /// Returns whether it is still of use to the state.
    pub(super) fn continues(&self, state: &State) -> bool {
        self.since == state.changed
    }
}

impl State {
    pub(super) fn position(&self) -> Position {
        let end = match self.anchor {
            None if self.blocks == 0 && self.changed.is_some() => Some((0, 0)),
            Some((n, anchor)) if n == self.blocks => anchor.end.map(|end| (n, end)),
            _ => None,
        };
        Position { changed: self.changed, end }
    }
}

impl Cache {
    /// Reads what is new of a todo for a state.
    pub(super) fn read_new(&self, todo: &Todo, state: &State) -> Result<Reading, Error> {
        let changed = self.records.changed_in(todo)?;
        if state.changed == Some(changed) {
            return Ok(Reading { changed, records: self.records.clone(), since: state.changed });
        }
        self.read(todo, &state.position(), changed)
    }

    /// Reads a todo whose change counter is given, from a position on.
    pub(super) fn read(
        &self,
        todo: &Todo,
        from: &Position,
        changed: u64,
    ) -> Result<Reading, Error> {
        let records = match from.end.filter(|_| self.records.are_remote()) {
            Some((block, message)) => self.records.with_tail(todo, block, message)?,
            None => self.records.clone(),
        };
        Ok(Reading { changed, records, since: from.changed })
    }
}
