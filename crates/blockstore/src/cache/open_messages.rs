//! The open messages of a todo, kept as they were last searched for as long as nothing is committed to the todo. Where
//! each read asks a server, a search would otherwise wait for them several times.

use super::{Cache, Reading};
use crate::records::Records;
use crate::searcher::OpenBlock;
use crate::{Error, OpenMessages, Searcher};
use foldback_core::Block;
use foldback_kv::Todo;
use std::sync::Arc;

/// The open messages of a todo.
pub(super) struct Known {
    /// The todo's change counter when they were read.
    changed: u64,
    /// `None` if there were none.
    open: Option<Arc<OpenBlock>>,
}

impl Known {
    /// Returns about how much memory they use.
    pub(super) fn bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.bytes())
    }
}

impl Cache {
    pub(crate) fn searcher_with_open<E: From<Error>>(
        &self,
        todo: &Todo,
        describe: impl FnOnce(OpenMessages) -> Result<Block, E>,
    ) -> Result<Searcher, E> {
        if !self.records.are_remote() {
            return self.search_open(todo, &self.records, None, describe);
        }
        let changed = self.records.changed_in(todo)?;
        if let Some(searcher) = self.unchanged(todo, changed) {
            return Ok(searcher);
        }
        let slot = self.slot(todo);
        let position = slot.state.lock().position();
        let read = self.read(todo, &position, changed)?;
        let records = read.records.clone();
        let searcher = self.search_open(todo, &records, Some(read), describe)?;
        let open = searcher.known_open();
        let mut state = slot.state.lock();
        // They are not kept if there was a commit meanwhile, or if something is missing that the next search tries again.
        let is_whole = open.as_ref().is_none_or(|open| open.is_whole());
        if state.changed == Some(changed) && is_whole {
            state.open = Some(Known { changed, open });
            self.account(todo, &slot, &state);
        }
        Ok(searcher)
    }

    fn search_open<E: From<Error>>(
        &self,
        todo: &Todo,
        records: &Records,
        read: Option<Reading>,
        describe: impl FnOnce(OpenMessages) -> Result<Block, E>,
    ) -> Result<Searcher, E> {
        // First, so that messages which are closed meanwhile are found as open or as closed ones.
        let open = records.open_messages(todo)?.map(describe).transpose()?;
        let searcher = self.searcher_of(todo, read)?;
        Ok(match open {
            Some(open) => searcher.with_open_of(records, open)?,
            None => searcher,
        })
    }

    /// Returns the todo as it was last searched, if that was at this value of its change counter and nothing was missing.
    fn unchanged(&self, todo: &Todo, changed: u64) -> Option<Searcher> {
        let slot = self.slot(todo);
        let state = slot.state.lock();
        let known = state.open.as_ref().filter(|known| known.changed == changed)?;
        let is_broken = state.disk.as_ref().is_some_and(|disk| disk.is_broken());
        if state.changed != Some(changed)
            || self.has_other_index(todo, &state)
            || is_broken
            || !state.memory.read().omissions().is_empty()
        {
            return None;
        }
        Some(self.snapshot(todo, &state).with_known_open(known.open.clone()))
    }
}
