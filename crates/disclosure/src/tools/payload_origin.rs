//! Whose words a stored part is.

use super::Shelf;
use crate::attribution::{Attribution, readable};
use foldback_backend_store::Meta;
use foldback_blockstore::Error;
use foldback_core::{Block, Message, Offload, SeqNo, Site, StoredMessage, Trust};

/// Blocks that are read at once, and in all, to find a part that was stored before it was noted where
/// it came from.
const PAGE: usize = 100;
const LOOK_THROUGH: u32 = 5_000;

/// Whose words a stored part is, as marks tell. What the model wrote as an argument of a call is the
/// model's; of equal parts it is whose said them first.
#[derive(Debug, Default)]
pub(crate) struct PayloadOrigin {
    /// `None` where that cannot be told any more.
    pub(crate) from: Option<String>,
    pub(crate) trust: Trust,
}

impl PayloadOrigin {
    /// Looked for where it was noted, or, of what was stored before that was done, in the block
    /// `within` and in all others. What is damaged tells nothing, and is not to be trusted.
    pub(crate) fn find(
        shelf: &Shelf<'_>,
        meta: &Meta,
        within: Option<&Block>,
    ) -> Result<Self, Error> {
        match Self::known(shelf, meta, within) {
            Ok(known) => Ok(known.unwrap_or_default()),
            Err(Error::Corrupt { .. }) => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn known(
        shelf: &Shelf<'_>,
        meta: &Meta,
        within: Option<&Block>,
    ) -> Result<Option<Self>, Error> {
        let carrier = match (meta.origin, within) {
            (Some(seq), _) => {
                let stored = shelf.blocks.messages(shelf.todo, seq..seq + 1)?;
                stored.into_iter().next().map(|stored| (SeqNo(seq), stored))
            }
            (None, Some(block)) => carrier_in(shelf, meta, block)?,
            (None, None) => carrier(shelf, meta)?,
        };
        let Some((seq, stored)) = carrier else { return Ok(None) };
        let offload = stored.offloads.iter().find(|offload| offload.n == meta.n);
        let message = readable(&stored);
        offload.zip(message).map(|(part, message)| Self::of(shelf, seq, &message, part)).transpose()
    }

    fn of(shelf: &Shelf<'_>, seq: SeqNo, message: &Message, part: &Offload) -> Result<Self, Error> {
        let (from, trust) = match part.site {
            Site::Content | Site::Part(_) => {
                let whose = Attribution::find(shelf.blocks, shelf.todo, seq, message)?;
                (whose.to_string(), whose.trust())
            }
            Site::Arguments(index) | Site::Argument(index, _) => {
                let whose = Attribution::of(seq, message);
                (whose.of_call(message, index as usize), whose.trust())
            }
        };
        Ok(Self { from: Some(from), trust })
    }
}

/// The first message of a block that carries the part.
fn carrier_in(
    shelf: &Shelf<'_>,
    meta: &Meta,
    block: &Block,
) -> Result<Option<(SeqNo, StoredMessage)>, Error> {
    let stored = shelf.blocks.messages(shelf.todo, block.range.as_u64())?;
    let carries = |stored: &StoredMessage| stored.offloads.iter().any(|part| part.n == meta.n);
    Ok(block.range.iter().zip(stored).find(|(_, stored)| carries(stored)))
}

/// The first message that carries the part, by what blocks say that they refer to.
fn carrier(shelf: &Shelf<'_>, meta: &Meta) -> Result<Option<(SeqNo, StoredMessage)>, Error> {
    let name = meta.reference().to_string();
    let mut after = 0;
    while after < LOOK_THROUGH {
        let page = shelf.blocks.blocks(shelf.todo, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.header.block_id.n();
        for block in page.iter().filter(|block| block.header.data_ids.contains(&name)) {
            let found = carrier_in(shelf, meta, block)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}
