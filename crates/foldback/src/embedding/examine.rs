//! Replacements of vectors that came to nothing: ended, and told of.

use super::reembed::Work;
use super::stored::{failures, own_model, set_failures};
use crate::Error;
use foldback_kv::Todo;
use std::time::Duration;

/// How often is looked whether the process at work has ended.
const LOOK: Duration = Duration::from_millis(100);

/// So often is looked, before the end of an unfinished replacement is left to whoever is at work.
const PATIENCE: u32 = 50;

impl Work {
    /// Ends the replacements that this embedder cannot go on with, so that indexes are kept again:
    /// what has vectors of the one model and what of the other stays as it is. `false` when another
    /// process is at work, which sees to it.
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
                // Whoever holds the index gives it back after a batch.
                self.blocks.finish_vectors(todo, &|| false)?;
                drop(self.blocks.maintain(todo));
            }
            Ok(true)
        })?;
        Ok(true)
    }

    /// As [`abandon`](Self::abandon), and waits a while for whoever is at work: a thread of this very
    /// process may have begun the same.
    pub(crate) fn abandon_soon(&self) -> Result<(), Error> {
        for _ in 0..PATIENCE {
            if self.abandon()? {
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// What is wrong with the vectors of the store's todos, as sentences; with `repair` it is set
    /// right, and what was refused is forgotten.
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
                    "{}: its vectors were being replaced by those of {}, which are not wanted any \
                     more, and its index is not kept{repaired}",
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
