//! Giving the messages of a todo vectors of another model, a batch at a time.
//!
//! How far that has come is kept with the todo, so that it goes on after a kill. While it lasts, old
//! and new vectors stand side by side, each with its model's id, and are never compared. The indexes
//! are left as they are until the last batch is in, and are then made again.

use crate::records::{Records, key, read};
use crate::{BlockStore, Error, vectors};
use foldback_core::{SeqNo, Vectors};
use foldback_kv::{Batch, Expect, Space, Todo};
use serde::{Deserialize, Serialize};

/// How far the vectors of a todo have come to be those of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorState {
    /// The model; empty before the first batch.
    pub model_id: String,
    /// No message below this number has vectors of another model, except where they could not be
    /// made.
    pub until: u64,
    /// Whether vectors were replaced that the indexes still hold.
    pub indexes_stale: bool,
    /// How often the indexes were dropped because of replaced vectors.
    pub(crate) generation: u32,
}

/// The number of the record in its space.
const RECORD: u64 = 0;

impl BlockStore {
    /// How far the vectors of a todo have come to be those of one model.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn vector_state(&self, todo: &Todo) -> Result<VectorState, Error> {
        self.records.vector_state(todo)
    }

    /// Replaces the vectors of some messages by those of `model_id`, and notes that all messages
    /// below `until` are done, in one transaction. Other writers of the todo are not disturbed. One
    /// process at a time may do this; that is for the caller to see to.
    ///
    /// # Errors
    /// [`Error::Refused`] when the todo holds fewer messages, because it was forgotten; when a vector
    /// is no vector, or the store fails. Nothing is written then.
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

    /// Ends a replacement: drops the indexes that hold replaced vectors, here and in every process,
    /// so that they are made again. Until this is done no index is changed.
    ///
    /// # Errors
    /// When the store fails or an index cannot be deleted; then this is to be called again.
    pub fn finish_vectors(&self, todo: &Todo) -> Result<(), Error> {
        let before = self.vector_state(todo)?;
        if !before.indexes_stale {
            return Ok(());
        }
        self.cache.clear_index(todo)?;
        let generation = before.generation.wrapping_add(1);
        let state = VectorState { indexes_stale: false, generation, ..before };
        self.records.put_vectors(todo, &state.model_id, &[], &state)?;
        self.cache.drop_slot(todo);
        Ok(())
    }
}

impl Records {
    pub(crate) fn vector_state(&self, todo: &Todo) -> Result<VectorState, Error> {
        match self.get(todo, Space::Index, RECORD)? {
            Some(bytes) => read(todo, key(Space::Index, todo, RECORD), &bytes),
            None => Ok(VectorState::default()),
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
        put.push((key(Space::Index, todo, RECORD), bytes));
        loop {
            let head = self.head(todo)?;
            // A todo that was forgotten has a head, and nothing else.
            let last = state.until.saturating_sub(1);
            let is_there = state.until == 0 || self.get(todo, Space::Message, last)?.is_some();
            if head.messages < state.until || !is_there {
                return Err(refused(format!("it holds no message {last}")));
            }
            // The head stays what it is: whoever records a message meanwhile is not disturbed, and
            // this is repeated.
            let head = head.to_number();
            let expect = Some(Expect { todo: todo.no(), head, next: head });
            match self.write(todo, Batch { expect, put: put.clone(), delete: Vec::new() }) {
                Err(error) if error.is_conflict() => {}
                done => return done,
            }
        }
    }
}
