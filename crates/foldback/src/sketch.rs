//! A copy of a session's state.

use crate::branch::{between, joined};
use crate::holes::store_with_holes;
use crate::live::Live;
use crate::record::Draft;
use crate::{Error, Session};
use foldback_chunker::Event;
use foldback_core::Message;
use foldback_disclosure::{Arrangement, CacheAware};
use std::ops::Range;

/// A copy of a session's state: what it takes is not recorded, and the session stays as it is.
pub struct Sketch<'s> {
    session: &'s Session,
    live: Live,
}

impl Session {
    /// Returns the state in which a branch of the conversation continues, as [`follow`](Self::follow) would have it.
    ///
    /// # Errors
    /// When the store fails.
    pub fn sketch(&self, branch: &[Range<u64>]) -> Result<Sketch<'_>, Error> {
        let mut live = self.live.clone();
        if !self.follows(branch) {
            live.chunker.push(Event::Switch);
            live.open.clear();
            let ranges = joined(branch);
            let known = self.aside.iter().find(|(of, _)| *of == ranges);
            live.view = match known {
                Some((_, view)) => view.clone(),
                None => self.view_of(&self.live, branch, between(&ranges, self.len()), &[])?,
            };
        }
        Ok(Sketch { session: self, live })
    }
}

impl Sketch<'_> {
    /// Takes messages that came together. Returns the numbers that they would have.
    ///
    /// # Errors
    /// When one of them cannot be embedded.
    pub fn take(&mut self, messages: Vec<Message>) -> Result<Range<u64>, Error> {
        let first = self.live.chunker.next().0;
        for message in messages {
            let now = (self.session.memory.clock)();
            let (memory, todo) = (&self.session.memory, &self.session.todo);
            let mut incoming = memory.incoming(message);
            if !incoming.secrets.is_empty() {
                let seq = self.live.chunker.next();
                incoming = memory.redact(todo, seq, &incoming, &mut self.live, None)?;
            }
            let stored = store_with_holes(&incoming.message, Vec::new(), Vec::new(), now.0);
            let mut draft = Draft::default();
            self.session.append_stored(&mut self.live, &mut draft, &incoming, stored, None)?;
        }
        Ok(first..self.live.chunker.next().0)
    }

    /// See [`Session::set_cache_aware`].
    pub fn set_cache_aware(&mut self, settings: CacheAware) {
        self.live.view.set_cache_aware(settings);
    }

    /// See [`Session::cool`].
    pub fn cool(&mut self) {
        self.live.view.cool();
    }

    /// See [`Session::hold`].
    pub fn hold(&mut self, is_held: bool) {
        self.live.view.hold(is_held);
    }

    /// See [`Session::arrangement`].
    #[must_use]
    pub fn arrangement(&self) -> Option<Arrangement> {
        self.live.view.arrangement()
    }
}
