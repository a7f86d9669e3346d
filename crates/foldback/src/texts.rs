//! Fills stored messages again, byte for byte.

use crate::Error;
use crate::error::Failure;
use crate::memory::Shared;
use foldback_backend_store::BackendStore;
use foldback_blockstore::BlockStore;
use foldback_core::{Message, SeqNo, Source, StoredMessage};
use foldback_disclosure::Attribution;
use foldback_kv::Todo;
use std::ops::Range;
use std::sync::Arc;

/// How deep a quote may quote. Answers quote messages that are not answers, so one step is enough;
/// the bound keeps a damaged record from running in circles.
const MAX_DEPTH: usize = 4;

/// Replaces a text that is damaged.
pub(crate) const DAMAGED: &str = "(this part is damaged)";
/// Replaces a text that cannot be read now, such as on a failing disk.
pub(crate) const UNREADABLE: &str = "(this part cannot be read now)";

/// A source of messages and their texts.
pub(crate) trait Texts {
    fn blocks(&self) -> &BlockStore;
    fn payloads(&self) -> &BackendStore;
}

impl Texts for Shared {
    fn blocks(&self) -> &BlockStore {
        &self.blocks
    }

    fn payloads(&self) -> &BackendStore {
        &self.payloads
    }
}

impl<T: Texts> Texts for Arc<T> {
    fn blocks(&self) -> &BlockStore {
        self.as_ref().blocks()
    }

    fn payloads(&self) -> &BackendStore {
        self.as_ref().payloads()
    }
}

/// Returns the exact messages of a range, in order.
pub(crate) fn exact_messages(
    memory: &impl Texts,
    todo: &Todo,
    range: Range<u64>,
) -> Result<Vec<Message>, Error> {
    let stored = memory.blocks().messages(todo, range.clone())?;
    range.zip(stored).map(|(seq, stored)| fill(memory, todo, SeqNo(seq), &stored, 0)).collect()
}

/// Returns one message exactly as it was recorded.
pub(crate) fn exact_message(
    memory: &impl Texts,
    todo: &Todo,
    seq: SeqNo,
) -> Result<Message, Error> {
    exact_at_depth(memory, todo, seq, 0)
}

/// Returns one message exactly as it was recorded, and whose it is.
pub(crate) fn attributed(
    memory: &impl Texts,
    todo: &Todo,
    seq: SeqNo,
) -> Result<(Attribution, Arc<Message>), Error> {
    let message = exact_message(memory, todo, seq)?;
    Ok((Attribution::find(memory.blocks(), todo, seq, &message)?, Arc::new(message)))
}

fn exact_at_depth(
    memory: &impl Texts,
    todo: &Todo,
    seq: SeqNo,
    depth: usize,
) -> Result<Message, Error> {
    let stored = memory.blocks().messages(todo, seq.0..seq.0 + 1)?;
    match stored.first() {
        Some(stored) => fill(memory, todo, seq, stored, depth),
        None => {
            let len = memory.blocks().head(todo)?.messages;
            Err(Failure::NoMessage { todo: todo.id().clone(), seq, len }.into())
        }
    }
}

/// Returns the message with `stand_in` in place of texts that are stored elsewhere.
pub(crate) fn light_message(
    todo: &Todo,
    seq: SeqNo,
    stored: &StoredMessage,
    stand_in: &str,
) -> Result<Message, Error> {
    let json = stored.json(|_, _| Ok::<_, Error>(stand_in.to_owned()))?;
    Message::from_json(&json).map_err(|error| {
        let what = error.to_string();
        Failure::Damaged { todo: todo.id().clone(), seq, what }.into()
    })
}

/// Returns the exact message of a stored one.
pub(crate) fn fill(
    memory: &impl Texts,
    todo: &Todo,
    seq: SeqNo,
    stored: &StoredMessage,
    depth: usize,
) -> Result<Message, Error> {
    let damaged =
        |what: String| Error::from(Failure::Damaged { todo: todo.id().clone(), seq, what });
    let json = stored.json(|source, range| match source {
        Source::Payload(n) => {
            let bytes = match range {
                None => memory.payloads().get(todo, n)?,
                Some((from, to)) => memory.payloads().read_range(todo, n, from..to)?,
            };
            String::from_utf8(bytes).map_err(|_| damaged(format!("payload {n} is not text")))
        }
        Source::Message(other, _) if depth >= MAX_DEPTH || other >= seq => {
            Err(damaged(format!("it quotes message {other}, which is itself a quote")))
        }
        Source::Message(other, site) => {
            let message = exact_at_depth(memory, todo, other, depth + 1)?;
            let gone = || damaged(format!("it quotes a text of message {other} that is not there"));
            let text = site.text(&message).ok_or_else(gone)?;
            let (from, to) = range.unwrap_or((0, text.len() as u64));
            let part = usize::try_from(from).ok().zip(usize::try_from(to).ok());
            part.and_then(|(from, to)| text.get(from..to)).map(str::to_owned).ok_or_else(gone)
        }
    })?;
    Message::from_json(&json).map_err(|error| damaged(error.to_string()))
}
