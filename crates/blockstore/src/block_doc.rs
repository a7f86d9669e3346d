//! A block as the indexes take it.

use crate::analysis::Analyzer;
use crate::block_text::block_terms;
use crate::vectors::MessageVectors;
use foldback_core::{Block, BlockType, StoredMessage, Timestamp};
use std::collections::BTreeMap;

/// What an index holds of one block. It is a pure function of the block's records.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BlockDoc {
    /// The block's number, from 1.
    pub(crate) n: u32,
    pub(crate) meta: BlockMeta,
    /// Each term and how often the block holds it, ascending.
    pub(crate) terms: Vec<(Box<str>, u32)>,
    pub(crate) vectors: Vec<DocVectors>,
}

/// What filters and BM25 need of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockMeta {
    /// How many terms it holds, repeated ones counted.
    pub(crate) len: u32,
    pub(crate) time: Timestamp,
    pub(crate) block_type: BlockType,
}

/// The vectors of a block that one model made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DocVectors {
    pub(crate) model_id: String,
    pub(crate) dim: usize,
    /// Row after row, each `dim` long.
    pub(crate) values: Vec<f32>,
    /// Where each row is from.
    pub(crate) places: Vec<Place>,
}

/// A row of a message's vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) seq: u64,
    pub(crate) row: u16,
}

impl BlockDoc {
    pub(crate) fn new(
        n: u32,
        block: &Block,
        messages: &[StoredMessage],
        vectors: &[(u64, MessageVectors)],
        analyzer: &mut Analyzer,
    ) -> Self {
        let mut counts: BTreeMap<Box<str>, u32> = BTreeMap::new();
        let mut len = 0u32;
        block_terms(block, messages, analyzer, |term| {
            len = len.saturating_add(1);
            match counts.get_mut(term) {
                Some(count) => *count = count.saturating_add(1),
                None => drop(counts.insert(term.into(), 1)),
            }
        });
        let time = Timestamp::parse(&block.header.create_time).unwrap_or_default();
        let meta = BlockMeta { len, time, block_type: block.header.block_type };
        let mut doc = Self { n, meta, terms: counts.into_iter().collect(), vectors: Vec::new() };
        for (seq, of_message) in vectors {
            doc.add_vectors(*seq, of_message);
        }
        doc
    }

    /// The place of a block whose record cannot be read: it is there, but nothing finds it.
    pub(crate) fn unreadable(n: u32) -> Self {
        let meta = BlockMeta { len: 0, time: Timestamp(0), block_type: BlockType::Chat };
        Self { n, meta, terms: Vec::new(), vectors: Vec::new() }
    }

    fn add_vectors(&mut self, seq: u64, of_message: &MessageVectors) {
        let MessageVectors { model_id, vectors } = of_message;
        let dim = vectors.dim();
        let place = match self
            .vectors
            .iter()
            .position(|group| group.model_id == *model_id && group.dim == dim)
        {
            Some(place) => place,
            None => {
                let model_id = model_id.clone();
                let (values, places) = (Vec::new(), Vec::new());
                self.vectors.push(DocVectors { model_id, dim, values, places });
                self.vectors.len() - 1
            }
        };
        let Some(group) = self.vectors.get_mut(place) else { return };
        for (row, values) in vectors.rows().enumerate() {
            // Of a text in which the model knows nothing there is nothing to compare.
            if values.iter().any(|value| *value != 0.0) {
                group.values.extend_from_slice(values);
                group.places.push(Place { seq, row: u16::try_from(row).unwrap_or(u16::MAX) });
            }
        }
    }
}
