//! Ends and reports replacements of vectors that cannot be completed.

use super::reembed::Work;
use super::stored::{failures, own_model, set_failures};
use crate::Error;
use foldback_kv::Todo;
use std::time::Duration;

/// The interval for checking whether the process at work has ended.
const LOOK: Duration = Duration::from_millis(100);

/// How often this is checked before the process at work is left to end an unfinished replacement.
const PATIENCE: u32 = 50;

impl Work {
    /// Ends the replacements that this embedder cannot continue, so that indexes are maintained
    /// again: messages keep the vectors that they have, of either model. Returns `false` if another
    /// process is at work, which then does this.
    pub(crate) fn abandon(&self) -> Result<bool, Error> {
        let is_stale = |todo: &Todo| -> Result<bool, Error> {
            Ok(self.blocks.vector_state(todo)?.indexes_stale)
        };
        let mut any = false;
        self.for_each_todo(|todo| {
            any = is_stale(todo)?;
            Ok(!any)
        })?;
        if !any {
            return Ok(true);
        }
        let Some(_lock) = self.take_lock()? else { return Ok(false) };
        self.for_each_todo(|todo| {
            if is_stale(todo)? {
                // The holder of the index releases it after a batch.
                self.blocks.finish_vectors(todo, &|| false)?;
                drop(self.blocks.maintain(todo));
            }
            Ok(true)
        })?;
        Ok(true)
    }

    /// Does the same as [`abandon`](Self::abandon), but waits a while for the one at work: a thread
    /// of this very process may have begun the same.
    pub(crate) fn abandon_soon(&self) -> Result<(), Error> {
        for _ in 0..PATIENCE {
            if self.abandon()? {
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Returns what is wrong with the vectors of the store's todos, as sentences; with `repair` it
    /// is repaired, and the refusals are forgotten.
    pub(crate) fn examine(&self, repair: bool) -> Result<Vec<String>, Error> {
        let own = own_model(self.kv.as_ref())?;
        let repaired = if repair { " (repaired)" } else { "" };
        let mut findings = Vec::new();
        self.for_each_todo(|todo| {
            if self.blocks.check_vector_state(todo, repair)? {
                findings.push(format!(
                    "{}: the record of how far its vectors are replaced is damaged{repaired}",
                    todo.id()
                ));
            }
            let state = self.blocks.vector_state(todo)?;
            if state.indexes_stale && own.as_ref() != Some(&state.model_id) {
                findings.push(format!(
                    "{}: its vectors were being replaced by those of {}, which are no longer \
                     wanted, and its index is not maintained{repaired}",
                    todo.id(),
                    state.model_id
                ));
            }
            Ok(true)
        })?;
        if let Some(failures) = failures(self.kv.as_ref())? {
            findings.push(format!(
                "{} messages have no vectors of {}, which refused them; the last error: {}{repaired}",
                failures.messages, failures.model_id, failures.last
            ));
        }
        if repair && !findings.is_empty() {
            self.abandon_soon()?;
            set_failures(self.kv.as_ref(), &<_>::default())?;
        }
        Ok(findings)
    }
}
