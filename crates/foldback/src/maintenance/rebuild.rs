//! Rebuilds a session's saved state from the records if the saved one is damaged.

use crate::error::Failure;
use crate::live::{Live, Open};
use crate::memory::Shared;
use crate::message_vectors::direction;
use crate::record::Draft;
use crate::recovery::readable;
use crate::{Error, Session};
use foldback_blockstore::{Error as BlockError, Head};
use foldback_chunker::{Event, Input};
use foldback_core::{Block, Message, SeqNo, StoredMessage, Timestamp};
use foldback_disclosure::{Shown, recall_note};
use foldback_kv::{Space, Todo};
use std::sync::Arc;

/// Messages are read in steps of this many.
const STEP: u64 = 256;

/// Rebuilds the saved state of a todo if it cannot be read or does not agree with the records, and
/// returns whether it did. Blocks stay as they are; messages after the last one may close new
/// blocks.
///
/// What only the state knew is lost: what was pinned by hand, notices, how often the prompt's stable
/// part has moved, and which blocks folded because of an explicit [`Close`](crate::Close) rather than a
/// message. The next prompt may show a result of the last block, or the answer of a recall tool, whole
/// instead of in its short form, or the other way around, and the phase and the tangle of the task are
/// counted anew from the messages and the todo list. The records stay as they are.
///
/// # Errors
/// When the records cannot be read, or another process writes at the same time.
pub(super) fn rebuild(memory: &Arc<Shared>, todo: &Todo) -> Result<bool, Error> {
    let blocks = memory.blocks.last_block(todo)?.map_or(0, |block| block.header.block_id.n());
    match Live::load(memory, todo) {
        Ok(live) if live.blocks == blocks => return Ok(false),
        Ok(_) => {}
        Err(error) => match error.failure() {
            Failure::State { .. } | Failure::StateMismatch { .. } => {}
            Failure::Blocks(BlockError::Corrupt { key, .. }) if key.space == Space::Session => {}
            _ => return Err(error),
        },
    }
    let empty = Live::new(memory, todo, memory.blocks.head(todo)?);
    let mut session = Session::with(memory.clone(), todo.clone(), empty);
    session.write(|session, live, draft| {
        let replay = Replay { session, head: live.head, blocks };
        *live = match replay.as_it_was()? {
            Some(live) => live,
            None => replay.around_its_blocks(draft)?,
        };
        live.take_list(memory.list_of(todo)?, memory);
        Ok(())
    })?;
    Ok(true)
}

/// A replay of the records of one todo from the first message.
struct Replay<'a> {
    session: &'a Session,
    head: Head,
    /// How many blocks are recorded.
    blocks: u32,
}

impl Replay<'_> {
    /// Returns the state if the same messages close the same blocks again.
    fn as_it_was(&self) -> Result<Option<Live>, Error> {
        let mut live = Live::new(&self.session.memory, &self.session.todo, self.head);
        let mut is_same = true;
        self.each_message(|message| {
            if !is_same {
                return Ok(());
            }
            let closed = message.take(&mut live);
            for closed in closed {
                is_same &= self.fold_if(&mut live, |block| block.range == closed.range)?;
            }
            Ok(())
        })?;
        // The recorder may have closed what was open at the end.
        if is_same && live.blocks < self.blocks {
            for closed in live.chunker.push(Event::End) {
                is_same &= self.fold_if(&mut live, |block| block.range == closed.range)?;
            }
        }
        Ok((is_same && live.blocks == self.blocks).then_some(live))
    }

    /// Returns the state of a session whose last block was closed explicitly, whatever else would have closed it.
    fn around_its_blocks(&self, draft: &mut Draft) -> Result<Live, Error> {
        let mut live = Live::new(&self.session.memory, &self.session.todo, self.head);
        self.each_message(|message| {
            let seq = message.seq;
            let closed = message.take(&mut live);
            if live.blocks == self.blocks {
                return self.session.close_blocks(&mut live, draft, &closed).map(drop);
            }
            let folded = self.fold_if(&mut live, |block| block.range.last() == seq)?;
            if folded && live.blocks == self.blocks {
                live.chunker.push(Event::End);
            }
            Ok(())
        })?;
        Ok(live)
    }

    /// Folds the next recorded block, if it exists and is the `wanted` one.
    fn fold_if(&self, live: &mut Live, wanted: impl Fn(&Block) -> bool) -> Result<bool, Error> {
        let Session { memory, todo, .. } = self.session;
        let block = memory.blocks.block(todo, live.blocks + 1)?;
        let Some(block) = block.filter(wanted) else { return Ok(false) };
        let folded = live.open.partition_point(|open| open.seq <= block.range.last());
        live.open.drain(..folded);
        live.view.fold(&block);
        live.blocks += 1;
        Ok(true)
    }

    fn each_message(
        &self,
        mut visit: impl FnMut(Recorded) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Session { memory, todo, .. } = self.session;
        let mut from = 0;
        while from < self.head.messages {
            let to = self.head.messages.min(from + STEP);
            let stored = memory.blocks.messages(todo, from..to)?;
            for (seq, stored) in (from..to).map(SeqNo).zip(stored) {
                let message = Arc::new(readable(memory, todo, seq, &stored)?);
                // Without its vectors, or with those of another model, a message is judged by its words.
                let model = memory.embedder.model_id();
                let vectors = memory.blocks.vectors(todo, seq).ok().flatten();
                let vectors = vectors.filter(|found| found.model_id == model);
                let embedder = memory.embedder.as_ref();
                let mean = vectors.and_then(|found| direction(embedder, &message, &found.vectors));
                visit(Recorded { seq, message, stored, mean })?;
            }
            from = to;
        }
        Ok(())
    }
}

/// A message as it was recorded, with the direction of its vectors.
struct Recorded {
    seq: SeqNo,
    message: Arc<Message>,
    stored: StoredMessage,
    mean: Option<Vec<f32>>,
}

impl Recorded {
    /// Passes the message to the chunker and the view, as when it was recorded.
    fn take(self, live: &mut Live) -> Vec<foldback_chunker::Closed> {
        let Self { seq, message, stored, mean } = self;
        let mut input = Input::of(&message);
        if let Some(mean) = &mean {
            input = input.with_vector(mean);
        }
        let mut note = None;
        if stored.recall {
            input = input.without_text();
            note = Some(recall_note(&message.text()));
        }
        let closed = live.chunker.push(Event::Message(input));
        let shown = Shown::new(seq, message.clone(), stored.offloads.clone(), note);
        live.view.append(shown.with_recorded_at(Timestamp(stored.recorded_at)));
        live.open.push(Open::new(seq, &message, &stored));
        closed
    }
}
