//! A session as the store last knew it.

use crate::Error;
use crate::error::Failure;
use crate::live::{Live, Open, Saved};
use crate::memory::Shared;
use crate::texts;
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::Head;
use foldback_chunker::Chunker;
use foldback_core::{Message, SeqNo, StoredMessage};
use foldback_disclosure::{LiveView, Shown};
use foldback_kv::Todo;
use std::sync::Arc;

impl Live {
    /// The state of a todo's session after its last durable message: the saved part, and around it
    /// the closed blocks in view and the open tail, read from the records.
    pub(crate) fn load(memory: &Shared, todo: &Todo) -> Result<Self, Error> {
        // Another process may write between two reads; what is read must be of one moment.
        loop {
            let head = memory.blocks.head(todo)?;
            let live = Self::load_at(memory, todo, head)?;
            if memory.blocks.head(todo)? != head {
                continue;
            }
            let (state, records) = (live.chunker.next().0, head.messages);
            if state != records {
                return Err(
                    Failure::StateMismatch { todo: todo.id().clone(), state, records }.into()
                );
            }
            return Ok(live);
        }
    }

    fn load_at(memory: &Shared, todo: &Todo, head: Head) -> Result<Self, Error> {
        let Some(bytes) = memory.blocks.session(todo)? else {
            return Ok(Self::new(memory, todo, head));
        };
        Self::of_bytes(memory, todo, head, &bytes)
    }

    /// The state that was saved as `bytes`, with what the records hold of it.
    pub(crate) fn of_bytes(
        memory: &Shared,
        todo: &Todo,
        head: Head,
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let list = Arc::new(memory.list_of(todo)?);
        let saved: Saved = rmp_serde::from_slice(bytes)
            .map_err(|error| Failure::State { todo: todo.id().clone(), what: error.to_string() })?;
        let state = saved.chunker.of_model(memory.embedder.model_id());
        let chunker = Chunker::restore(memory.chunker.clone(), state);
        let open_from = chunker.open_from();
        let open = read_open(memory, todo, open_from, chunker.next())?;
        let shown =
            |open: &Open| Shown::new(open.seq, open.message.clone(), open.offloads.clone(), None);
        let mut closed = Vec::new();
        for n in saved.view.first_in_view(saved.blocks).max(1)..=saved.blocks {
            let Some(block) = memory.blocks.block(todo, n)? else { continue };
            let body = read_open(memory, todo, block.range.first(), block.range.last().next())?;
            closed.push((block, body.iter().map(shown).collect()));
        }
        let pins = saved.view.pins().iter().map(|seq| texts::attributed(memory, todo, *seq));
        let pins = pins.collect::<Result<Vec<_>, Error>>()?;
        let names = saved.config.as_ref().map(|config| config.names().clone()).unwrap_or_default();
        let config = memory.view.clone().or(saved.config).unwrap_or_default().with_names(names);
        let view = LiveView::restore(
            config,
            memory.marks(todo),
            saved.view,
            pins,
            closed,
            open.iter().map(shown).collect(),
        );
        let numbers = Arc::new(memory.numbers_of(todo)?);
        let bytes = memory.bytes_held(todo, head.messages)?;
        Ok(Self { head, chunker, view, open, blocks: saved.blocks, list, numbers, bytes })
    }
}

pub(crate) fn read_open(
    memory: &Shared,
    todo: &Todo,
    from: SeqNo,
    to: SeqNo,
) -> Result<Vec<Open>, Error> {
    let stored = memory.blocks.messages(todo, from.0..to.0)?;
    (from.0..to.0)
        .map(SeqNo)
        .zip(&stored)
        .map(|(seq, stored)| {
            let message = readable(memory, todo, seq, stored)?;
            Ok(Open::new(seq, &Arc::new(message), stored))
        })
        .collect()
}

/// The exact message. A damaged payload is one text less to see, and no reason not to go on.
pub(crate) fn readable(
    memory: &Shared,
    todo: &Todo,
    seq: SeqNo,
    stored: &StoredMessage,
) -> Result<Message, Error> {
    match texts::fill(memory, todo, seq, stored, 0) {
        Err(error)
            if matches!(
                error.failure(),
                Failure::Payloads(PayloadError::Corrupt { .. } | PayloadError::NotFound { .. })
            ) =>
        {
            texts::light_message(todo, seq, stored, texts::DAMAGED)
        }
        message => message,
    }
}
