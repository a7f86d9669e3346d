//! A block and a passage of a payload in the form that the indexes take.

use crate::analysis::{Analyzer, Script};
use crate::block_text::{block_terms, payload_texts};
use crate::omission::Omission;
use crate::passage::{Passage, PassagePlace};
use crate::payload_texts::PayloadText;
use crate::vectors::MessageVectors;
use foldback_core::{Block, BlockType, StoredMessage, Timestamp};
use rustc_hash::FxHashMap;

/// The data that an index holds of one block. It is a pure function of the block's records.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BlockDoc {
    /// The block's number, from 1.
    pub(crate) n: u32,
    pub(crate) meta: BlockMeta,
    /// Each term and how often it occurs in the block, ascending.
    pub(crate) terms: Vec<(Box<str>, u32)>,
    pub(crate) vectors: Vec<DocVectors>,
    /// The payloads whose texts are searched with the block. An index holds their numbers.
    pub(crate) payloads: Vec<PayloadText>,
    /// The parts of its records that could not be read.
    pub(crate) omissions: Vec<Omission>,
}

/// The data that an index holds of one passage. It is a pure function of the payload's bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PassageDoc {
    pub(crate) meta: PassageMeta,
    /// Each term and how often it occurs in the passage, ascending.
    pub(crate) terms: Vec<(Box<str>, u32)>,
}

/// Which passage it is, and the data that BM25 needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassageMeta {
    /// The number of the first block that carries the payload.
    pub(crate) block: u32,
    /// The payload's number in its todo.
    pub(crate) payload: u64,
    pub(crate) place: PassagePlace,
    /// How many terms it holds, counting repetitions.
    pub(crate) len: u32,
}

/// The data that filters and BM25 need of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockMeta {
    /// How many terms it holds, counting repetitions.
    pub(crate) len: u32,
    pub(crate) time: Timestamp,
    pub(crate) block_type: BlockType,
    /// The script of its own words.
    pub(crate) script: Script,
}

/// The vectors of a block that one model made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DocVectors {
    pub(crate) model_id: String,
    pub(crate) dim: usize,
    /// Row after row, each `dim` long.
    pub(crate) values: Vec<f32>,
    /// The source of each row.
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
        let mut counts = Counts::default();
        block_terms(block, messages, analyzer, |term| counts.add(term));
        let time = Timestamp::parse(&block.header.create_time).unwrap_or_default();
        let (len, block_type) = (counts.len, block.header.block_type);
        let (terms, payloads) = (counts.terms(), payload_texts(messages));
        let script = Script::of(terms.iter().map(|(term, count)| (&**term, *count)));
        let meta = BlockMeta { len, time, block_type, script };
        let (vectors_by_model, omissions) = (Vec::new(), Vec::new());
        let mut doc = Self { n, meta, terms, vectors: vectors_by_model, payloads, omissions };
        for (seq, of_message) in vectors {
            doc.add_vectors(*seq, of_message);
        }
        doc
    }

    /// Returns the numbers of its payloads.
    pub(crate) fn carried(&self) -> Vec<u64> {
        self.payloads.iter().map(|payload| payload.n).collect()
    }

    /// Creates a placeholder for a block whose record cannot be read: it exists, but nothing finds
    /// it.
    pub(crate) fn unreadable(n: u32) -> Self {
        let (time, block_type) = (Timestamp(0), BlockType::Chat);
        let meta = BlockMeta { len: 0, time, block_type, script: Script::default() };
        let (terms, vectors, payloads) = (Vec::new(), Vec::new(), Vec::new());
        Self { n, meta, terms, vectors, payloads, omissions: Vec::new() }
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
            // A text in which the model knows nothing has nothing to compare.
            if values.iter().any(|value| *value != 0.0) {
                group.values.extend_from_slice(values);
                group.places.push(Place { seq, row: u16::try_from(row).unwrap_or(u16::MAX) });
            }
        }
    }
}

impl PassageDoc {
    /// Returns `None` for a passage that holds nothing to be found.
    pub(crate) fn new(
        block: u32,
        payload: u64,
        passage: &Passage,
        analyzer: &mut Analyzer,
    ) -> Option<Self> {
        let mut counts = Counts::default();
        analyzer.part_terms(&passage.text, passage.is_json, &mut |term| counts.add(term));
        let meta = PassageMeta { block, payload, place: passage.place.clone(), len: counts.len };
        (meta.len > 0).then(|| Self { meta, terms: counts.terms() })
    }
}

/// The terms of a text, and how often each occurs.
#[derive(Default)]
struct Counts {
    by_term: FxHashMap<Box<str>, u32>,
    len: u32,
}

impl Counts {
    fn add(&mut self, term: &str) {
        self.len = self.len.saturating_add(1);
        match self.by_term.get_mut(term) {
            Some(count) => *count = count.saturating_add(1),
            None => drop(self.by_term.insert(term.into(), 1)),
        }
    }

    /// Returns the terms, ascending.
    fn terms(self) -> Vec<(Box<str>, u32)> {
        let mut terms: Vec<_> = self.by_term.into_iter().collect();
        terms.sort_unstable();
        terms
    }
}
