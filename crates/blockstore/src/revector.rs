//! Replacing the vectors of a todo's messages by those of another model, a batch at a time.
//!
//! The progress is kept with the todo, so that it resumes after a kill. Meanwhile old and new vectors are stored side
//! by side, each with its model's id, and are never compared. The indexes are left unchanged until the last batch is
//! done, and are then rebuilt.

use crate::records::{Records, key, read};
use crate::{BlockStore, Error, vectors};
use foldback_core::{SeqNo, Vectors};
use foldback_kv::{Batch, Expect, Space, Todo, retry};
use serde::{Deserialize, Serialize};

/// How many of a todo's vectors are of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorState {
    /// The model; empty before the first batch.
    pub model_id: String,
    /// No message below this number has vectors of another model, unless they could not be made.
    pub until: u64,
    /// Whether vectors were replaced that the indexes still hold.
    pub indexes_stale: bool,
    /// How often the indexes were dropped because of replaced vectors.
    pub(crate) generation: u32,
}

impl VectorState {
    /// Returns the state assumed if the record is damaged: that every message must be examined, and that holders of an
    /// index in memory must read it again.
    fn unknown() -> Self {
        // Far from any number that was counted.
        Self { generation: 1 << 31, ..Self::default() }
    }
}

/// The number of the record in its space.
pub(crate) const STATE: u64 = 0;

impl BlockStore {
    /// Returns how many of a todo's vectors are of one model. If that cannot be read, no message counts as done.
    ///
    /// # Errors
    /// When the store fails.
    pub fn vector_state(&self, todo: &Todo) -> Result<VectorState, Error> {
        self.records.vector_state(todo)
    }

    /// Replaces the vectors of some messages by those of `model_id`, and notes that all messages below `until` are
    /// done, in one transaction. Other writers of the todo are not disturbed. One process at a time may do this; the
    /// caller must ensure that.
    ///
    /// # Errors
    /// [`Error::Refused`] when the todo holds fewer messages, because it was forgotten; when a vector is invalid, or
    /// the store fails. Nothing is written then.
    pub fn replace_vectors(
        &self,
        todo: &Todo,
        model_id: &str,
        vectors: &[(SeqNo, Vectors)],
        until: u64,
    ) -> Result<(), Error> {
        let before = self.vector_state(todo)?;
        let state = VectorState {
            model_id: model_id.to_owned(),
            until,
            indexes_stale: before.indexes_stale || !vectors.is_empty(),
            ..before
        };
        self.records.put_vectors(todo, model_id, vectors, &state)
    }

    /// Ends a replacement: drops the indexes that hold replaced vectors, here and in every process, so that they are
    /// rebuilt. Until this is done no index is changed. If another process holds an index, this waits until `stop` says
    /// not to; it returns whether the replacement was ended.
    ///
    /// # Errors
    /// When the store fails or an index cannot be deleted; then call this again.
    pub fn finish_vectors(&self, todo: &Todo, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let before = self.vector_state(todo)?;
        if !before.indexes_stale {
            return Ok(true);
        }
        if !self.cache.clear_index(todo, stop)? {
            return Ok(false);
        }
        let generation = before.generation.wrapping_add(1);
        let state = VectorState { indexes_stale: false, generation, ..before };
        self.records.put_vectors(todo, &state.model_id, &[], &state)?;
        self.cache.drop_slot(todo);
        Ok(true)
    }

    /// Returns whether the record of the progress is damaged; with `repair` it is rewritten, so that every message is
    /// examined again.
    ///
    /// # Errors
    /// When the store fails.
    pub fn check_vector_state(&self, todo: &Todo, repair: bool) -> Result<bool, Error> {
        let is_damaged = self.records.read_vector_state(todo)?.is_none();
        if is_damaged && repair {
            self.records.put_vectors(todo, "", &[], &VectorState::unknown())?;
            self.cache.drop_slot(todo);
        }
        Ok(is_damaged)
    }
}

impl Records {
    pub(crate) fn vector_state(&self, todo: &Todo) -> Result<VectorState, Error> {
        Ok(self.read_vector_state(todo)?.unwrap_or_else(VectorState::unknown))
    }

    /// Returns the state as it is recorded; `None` when the record is damaged.
    fn read_vector_state(&self, todo: &Todo) -> Result<Option<VectorState>, Error> {
        let bytes = match self.get(todo, Space::Index, STATE) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Some(VectorState::default())),
            Err(Error::Corrupt { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match read(todo, key(Space::Index, todo, STATE), &bytes) {
            Ok(state) => Ok(Some(state)),
            Err(Error::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn put_vectors(
        &self,
        todo: &Todo,
        model_id: &str,
        vectors: &[(SeqNo, Vectors)],
        state: &VectorState,
    ) -> Result<(), Error> {
        let refused = |why: String| Error::Refused { todo: todo.id().clone(), why };
        let mut put = Vec::with_capacity(vectors.len() + 1);
        for (seq, vectors) in vectors {
            let bytes = vectors::encode(model_id, vectors)
                .map_err(|why| refused(format!("the vectors of message {seq}: {why}")))?;
            put.push((key(Space::Vector, todo, seq.0), bytes));
        }
        let bytes = rmp_serde::to_vec_named(state)
            .map_err(|error| refused(format!("the state of its vectors: {error}")))?;
        put.push((key(Space::Index, todo, STATE), bytes));
        retry(|| {
            let head = self.head(todo)?;
            // A todo that was forgotten has a head, and nothing else.
            let last = state.until.saturating_sub(1);
            let is_there = state.until == 0 || self.get(todo, Space::Message, last)?.is_some();
            if head.messages < state.until || !is_there {
                return Err(refused(format!("it holds no message {last}")));
            }
            // The head stays unchanged: a writer that records a message meanwhile is not disturbed, and this is
            // repeated.
            let head = head.to_number();
            let expect = Some(Expect { todo: todo.no(), head, next: head });
            self.write(todo, Batch { expect, put: put.clone(), delete: Vec::new() })
        })
    }
}
