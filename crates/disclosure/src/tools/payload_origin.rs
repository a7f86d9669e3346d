//! The origin of a stored part.

use super::RecallSource;
use crate::attribution::{Attribution, readable, sound};
use foldback_backend_store::Meta;
use foldback_blockstore::Error;
use foldback_core::{Block, Message, Offload, SeqNo, Site, StoredMessage, Trust};
use std::ops::Range;

/// A message that carries the part, and what it says about it.
type Carrier = (SeqNo, StoredMessage);

/// For a part that was stored before origins were noted, the blocks up to this number are searched,
/// this many at once, and this many of the messages after the last block. That is done for each page
/// that is loaded of such a part.
const BLOCKS: u32 = 5_000;
const PAGE: u32 = 100;
const OPEN_TAIL: u64 = 1_000;

/// The origin of a stored part, as marks state it. What the model wrote as an argument of a call is
/// the model's; equal parts belong to the one that said them first.
#[derive(Debug, Default)]
pub(crate) struct PayloadOrigin {
    /// `None` if that can no longer be determined.
    pub(crate) from: Option<String>,
    pub(crate) trust: Trust,
}

impl PayloadOrigin {
    /// Returns, for a part that is quoted as a block's, who said it there. A damaged message shows
    /// nothing and is not to be trusted.
    pub(crate) fn within(
        recall: &RecallSource<'_>,
        meta: &Meta,
        block: &Block,
    ) -> Result<Self, Error> {
        let noted = match meta.origin.map(SeqNo).filter(|seq| block.range.contains(*seq)) {
            Some(SeqNo(seq)) => carrier_in(recall, meta, seq..seq + 1)?,
            None => None,
        };
        let carrier = match noted {
            None => carrier_in(recall, meta, block.range.as_u64())?,
            noted => noted,
        };
        Self::of(recall, meta, carrier, true)
    }

    /// Returns the origin of a part of the own todo.
    pub(crate) fn own(recall: &RecallSource<'_>, meta: &Meta) -> Result<Self, Error> {
        Self::of(recall, meta, carrier(recall, meta)?, true)
    }

    /// Returns the origin of a part that another todo granted: only the message that carries it is read
    /// there, so the call of a result is not stated; and it is trusted no more than a model, because the
    /// asker there may have been one.
    pub(crate) fn elsewhere(recall: &RecallSource<'_>, meta: &Meta) -> Result<Self, Error> {
        let origin = Self::of(recall, meta, carrier(recall, meta)?, false)?;
        Ok(Self { trust: origin.trust.min(Trust::Model), ..origin })
    }

    fn of(
        recall: &RecallSource<'_>,
        meta: &Meta,
        carrier: Option<Carrier>,
        is_own: bool,
    ) -> Result<Self, Error> {
        let stated = carrier.as_ref().and_then(|(seq, stored)| {
            let part = stored.offloads.iter().find(|offload| offload.n == meta.n)?;
            Some((*seq, readable(stored)?, part))
        });
        let Some((seq, message, part)) = stated else { return Ok(Self::default()) };
        let (from, trust) = said(recall, seq, &message, part, is_own)?;
        Ok(Self { from: Some(from), trust })
    }
}

fn said(
    recall: &RecallSource<'_>,
    seq: SeqNo,
    message: &Message,
    part: &Offload,
    is_own: bool,
) -> Result<(String, Trust), Error> {
    let whose = match part.site {
        Site::Content | Site::Part(_) if is_own => {
            Attribution::find(recall.blocks, recall.todo, seq, message)?
        }
        _ => Attribution::of(seq, message),
    };
    let from = match part.site {
        Site::Content | Site::Part(_) => whose.to_string(),
        Site::Arguments(index) | Site::Argument(index, _) => whose.of_call(message, index as usize),
    };
    Ok((from, whose.trust()))
}

/// Returns the message that carries the part: the one that was noted with it, or the first.
fn carrier(recall: &RecallSource<'_>, meta: &Meta) -> Result<Option<Carrier>, Error> {
    match meta.origin {
        Some(seq) => carrier_in(recall, meta, seq..seq + 1),
        None => match carrier_in_blocks(recall, meta)? {
            None => carrier_behind_blocks(recall, meta),
            found => Ok(found),
        },
    }
}

/// Returns the first of these messages that carries the part.
fn carrier_in(
    recall: &RecallSource<'_>,
    meta: &Meta,
    range: Range<u64>,
) -> Result<Option<Carrier>, Error> {
    let mut stored = sound(recall.blocks, recall.todo, range)?.into_iter();
    Ok(stored.find(|(_, stored)| stored.offloads.iter().any(|part| part.n == meta.n)))
}

/// Returns the first message that carries the part, according to the references of blocks.
fn carrier_in_blocks(recall: &RecallSource<'_>, meta: &Meta) -> Result<Option<Carrier>, Error> {
    let name = meta.reference().to_string();
    for after in (0..BLOCKS).step_by(PAGE as usize) {
        let page = sound_blocks(recall, after)?;
        if page.is_empty() {
            break;
        }
        for block in page.iter().filter(|block| block.header.data_ids.contains(&name)) {
            let found = carrier_in(recall, meta, block.range.as_u64())?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// Returns a page of blocks without the damaged ones.
fn sound_blocks(recall: &RecallSource<'_>, after: u32) -> Result<Vec<Block>, Error> {
    match recall.blocks.blocks(recall.todo, after, PAGE as usize) {
        // The error reports only the first damaged one.
        Err(Error::Corrupt { .. }) => {}
        page => return page,
    }
    let one = |n: u32| match recall.blocks.block(recall.todo, n) {
        Err(Error::Corrupt { .. }) => None,
        block => block.transpose(),
    };
    (after + 1..=after + PAGE).filter_map(one).collect()
}

/// Returns the first message after the last block that carries the part.
fn carrier_behind_blocks(recall: &RecallSource<'_>, meta: &Meta) -> Result<Option<Carrier>, Error> {
    let last = match recall.blocks.last_block(recall.todo) {
        Err(Error::Corrupt { .. }) => None,
        last => last?,
    };
    let end = recall.blocks.head(recall.todo)?.messages;
    let first = last.map_or(0, |block| block.range.as_u64().end);
    carrier_in(recall, meta, first.max(end.saturating_sub(OPEN_TAIL))..end)
}
