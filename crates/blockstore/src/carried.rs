//! The payloads that the blocks of an index carry, and the places of their passages.

use rustc_hash::FxHashMap;
use std::ops::Range;

/// The payloads of an index's blocks. A payload that several blocks carry is indexed once.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    by_block: FxHashMap<u32, Vec<u64>>,
    by_payload: FxHashMap<u64, Payload>,
}

#[derive(Debug, Default)]
struct Payload {
    /// The blocks that carry it, ascending.
    blocks: Vec<u32>,
    /// The places of its passages.
    passages: Range<u32>,
}

impl Carried {
    /// Notes what block `n` carries. Blocks come in order.
    pub(crate) fn add_block(&mut self, n: u32, payloads: Vec<u64>) {
        for payload in &payloads {
            self.by_payload.entry(*payload).or_default().blocks.push(n);
        }
        if !payloads.is_empty() {
            self.by_block.insert(n, payloads);
        }
    }

    /// Notes a passage. Those of one payload are adjacent.
    pub(crate) fn add_passage(&mut self, payload: u64, place: u32) {
        let passages = &mut self.by_payload.entry(payload).or_default().passages;
        if passages.start == passages.end {
            passages.start = place;
        }
        passages.end = place + 1;
    }

    /// Returns whether any block carries this payload.
    pub(crate) fn holds(&self, payload: u64) -> bool {
        self.by_payload.contains_key(&payload)
    }

    /// Returns the payloads of block `n`, in the order of its messages.
    pub(crate) fn payloads_of(&self, n: u32) -> &[u64] {
        self.by_block.get(&n).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the blocks that carry a payload, ascending.
    pub(crate) fn blocks_of(&self, payload: u64) -> &[u32] {
        self.by_payload.get(&payload).map(|known| known.blocks.as_slice()).unwrap_or_default()
    }

    /// Returns the places of a payload's passages.
    pub(crate) fn passages_of(&self, payload: u64) -> Range<u32> {
        self.by_payload.get(&payload).map_or(0..0, |known| known.passages.clone())
    }

    /// Returns all payloads.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = u64> {
        self.by_payload.keys().copied()
    }

    /// Returns about how much memory it uses.
    pub(crate) fn bytes(&self) -> usize {
        self.by_block.len() * 64 + self.by_payload.len() * 96
    }
}
