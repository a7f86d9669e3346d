//! Which messages are to be embedded again.

use super::EmbeddingProgress;
use super::reembed::{LOOKS, NOTED, Work};
use crate::Error;
use crate::message_vectors::text_of;
use crate::texts;
use foldback_blockstore::Error as BlockError;
use foldback_core::{Message, SeqNo};
use foldback_kv::Todo;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The vectors of this many messages are read at once.
pub(super) const PART: u64 = 256;

impl Work {
    /// Returns how many messages have the wanted vectors, or need none.
    pub(crate) fn progress(&self) -> Result<EmbeddingProgress, Error> {
        let mut progress = EmbeddingProgress::default();
        self.for_each_todo(|todo| {
            let messages = self.blocks.head(todo)?.messages;
            progress.messages += messages;
            let done = self.done(todo)?.min(messages);
            progress.done += done;
            for part in parts(done..messages) {
                progress.done += part.end - part.start;
                for seq in self.blocks.without_vectors(todo, &self.model_id, part)? {
                    progress.done -= u64::from(self.due(todo, seq)?.is_some());
                }
            }
            Ok(true)
        })?;
        Ok(progress)
    }

    /// Returns whether anything needs doing or noting, as found before `stop`.
    pub(super) fn is_due(&self, stop: &AtomicBool) -> Result<bool, Error> {
        let mut looked = 0;
        let mut found = false;
        let is_over = |looked: u64| stop.load(Ordering::Relaxed) && looked >= LOOKS;
        self.for_each_todo(|todo| {
            let (from, to) = (self.done(todo)?, self.blocks.head(todo)?.messages);
            found = self.blocks.vector_state(todo)?.indexes_stale || to - from.min(to) >= NOTED;
            for part in parts(from..to) {
                if found || is_over(looked) {
                    break;
                }
                looked += part.end - part.start;
                for seq in self.blocks.without_vectors(todo, &self.model_id, part)? {
                    found = found || self.due(todo, seq)?.is_some();
                }
            }
            Ok(!(found || is_over(looked)))
        })?;
        Ok(found)
    }

    /// Returns the number below which all messages are done.
    pub(super) fn done(&self, todo: &Todo) -> Result<u64, Error> {
        let state = self.blocks.vector_state(todo)?;
        Ok(if state.model_id == self.model_id { state.until } else { 0 })
    }

    /// Returns a message that has no vectors of the wanted model, if it has something to embed.
    pub(super) fn due(&self, todo: &Todo, seq: SeqNo) -> Result<Option<Message>, Error> {
        let stored = match self.blocks.messages(todo, seq.0..seq.0 + 1) {
            Ok(stored) => stored,
            Err(BlockError::Corrupt { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(stored) = stored.first().filter(|stored| !stored.recall) else { return Ok(None) };
        // `verify` reports what is damaged.
        let message = texts::fill(self, todo, seq, stored, 0).ok();
        Ok(message.filter(|message| !text_of(message).trim().is_empty()))
    }
}

/// Returns a range in parts that are read at once.
fn parts(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(PART as usize).map(move |from| from..end.min(from + PART))
}
