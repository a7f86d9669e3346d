//! The state of a session between two messages: small, copied before each write, and stored with it.

use crate::Error;
use crate::error::Failure;
use crate::memory::Shared;
use crate::redaction::Numbers;
use foldback_blockstore::Head;
use foldback_chunker::{Chunker, State};
use foldback_core::{Message, Offload, SeqNo, StoredMessage, TodoList, ToolCallId};
use foldback_disclosure::{LiveView, Snapshot, ViewConfig};
use foldback_kv::Todo;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The state of a session beyond the records.
#[derive(Clone)]
pub(crate) struct Live {
    /// The todo's position when this was read or written.
    pub(crate) head: Head,
    pub(crate) chunker: Chunker,
    pub(crate) view: LiveView,
    /// The messages of the open tail.
    pub(crate) open: Vec<Open>,
    /// How many blocks are closed.
    pub(crate) blocks: u32,
    /// The todo list; empty for none. It has a record of its own.
    pub(crate) list: Arc<TodoList>,
    /// The numbers of its secrets, if those are replaced.
    pub(crate) numbers: Arc<Numbers>,
    /// How many bytes its messages have, if that is limited; `None` if damage keeps them from being counted.
    pub(crate) bytes: Option<u64>,
}

/// A message of the open tail, as the description of its block will need it.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) seq: SeqNo,
    pub(crate) message: Arc<Message>,
    pub(crate) offloads: Vec<Offload>,
    pub(crate) recorded_at: i64,
    /// Whether it is the answer of a memory tool.
    pub(crate) recall: bool,
}

/// The part of [`Live`] that cannot be derived from the records.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) chunker: State,
    pub(crate) view: Snapshot,
    pub(crate) blocks: u32,
    /// How the todo is shown. Older stores end before it.
    #[serde(default)]
    pub(crate) config: Option<ViewConfig>,
}

impl Live {
    /// Returns the empty state of this todo at this head.
    pub(crate) fn new(memory: &Shared, todo: &Todo, head: Head) -> Self {
        let state = State::default().of_model(memory.embedder.model_id());
        Self {
            head,
            chunker: Chunker::restore(memory.chunker.clone(), state),
            view: LiveView::new(memory.view.clone().unwrap_or_default(), memory.marks(todo)),
            open: Vec::new(),
            blocks: 0,
            list: Arc::default(),
            numbers: Arc::default(),
            bytes: Some(0),
        }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let saved = Saved {
            chunker: self.chunker.state().clone(),
            view: self.view.snapshot(),
            blocks: self.blocks,
            config: Some(self.view.config().clone()),
        };
        rmp_serde::to_vec(&saved)
            .map_err(|_| Failure::Internal("the session's state has no bytes").into())
    }

    /// Returns the tool whose result `message` is, according to the open tail.
    pub(crate) fn tool_of<'a>(&'a self, message: &'a Message) -> Option<&'a str> {
        let id: &ToolCallId = message.tool_call_id()?;
        let calls = self.open.iter().rev().flat_map(|open| open.message.tool_calls());
        calls.into_iter().find(|call| call.id == *id).map(|c| c.name.as_str()).or(message.name())
    }
}

impl Open {
    pub(crate) fn new(seq: SeqNo, message: &Arc<Message>, stored: &StoredMessage) -> Self {
        Self {
            seq,
            message: message.clone(),
            offloads: stored.offloads.clone(),
            recorded_at: stored.recorded_at,
            recall: stored.recall,
        }
    }
}
