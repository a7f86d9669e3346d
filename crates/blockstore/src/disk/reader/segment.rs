//! A segment of an index: its blocks and passages, and their places.

use super::super::Damage;
use super::super::writer::Fields;
use crate::analysis::Script;
use crate::block_doc::{BlockMeta, PassageMeta};
use crate::passage::PassagePlace;
use foldback_core::{BlockType, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use tantivy::columnar::Column;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, InvertedIndexReader, SegmentReader, TERMINATED, Term};

pub(super) struct Segment {
    pub(super) blocks: Texts,
    pub(super) passages: Texts,
}

impl Segment {
    /// Reads which blocks and passages the segment holds, and notes each in `gathered`.
    pub(super) fn read(
        reader: &SegmentReader,
        fields: Fields,
        segment: u32,
        gathered: &mut Gathered,
    ) -> Result<Self, Damage> {
        let words = |error: tantivy::TantivyError| error.to_string();
        if reader.has_deletes() {
            return Err("it has deleted blocks, but blocks are never deleted".to_owned());
        }
        let fast = reader.fast_fields();
        let time = fast.column_opt::<i64>(Fields::TIME).map_err(words)?;
        let kind = Numbers::open(reader, Fields::KIND)?;
        let number = Numbers::open(reader, Fields::NUMBER)?;
        let length = Numbers::open(reader, Fields::LENGTH)?;
        let place = Numbers::open(reader, Fields::PLACE)?;
        let payload = Numbers::open(reader, Fields::PAYLOAD)?;
        let carried = Numbers::open(reader, Fields::CARRIED)?;
        let from_byte = Numbers::open(reader, Fields::FROM_BYTE)?;
        let to_byte = Numbers::open(reader, Fields::TO_BYTE)?;
        let first_line = Numbers::open(reader, Fields::FIRST_LINE)?;
        let last_line = Numbers::open(reader, Fields::LAST_LINE)?;
        let skip = Numbers::open(reader, Fields::SKIP)?;
        let bad = || "one of its documents is neither a block nor a passage".to_owned();
        let mut numbers = vec![NOT_THIS; reader.max_doc() as usize];
        let mut places = numbers.clone();
        for ((doc, n), at) in (0..).zip(&mut numbers).zip(&mut places) {
            let block = number.small(doc)?;
            let len = length.small(doc)?;
            if place.is_of(doc) {
                *at = place.small(doc)?;
                let bytes = from_byte.get(doc)?..to_byte.get(doc)?;
                let lines = (first_line.get(doc)?, last_line.get(doc)?);
                let place = PassagePlace { bytes, lines, skip: skip.get(doc)? };
                let meta = PassageMeta { block, payload: payload.get(doc)?, place, len };
                let entry = gathered.passages.get_mut(*at as usize).ok_or_else(bad)?;
                if entry.replace(meta).is_some() {
                    return Err(format!("it holds passage {at} twice"));
                }
            } else {
                *n = block;
                let time = time.as_ref().and_then(|time| time.first(doc)).ok_or_else(bad)?;
                let (block_type, script) = of_kind(kind.get(doc)?).ok_or_else(bad)?;
                let meta = BlockMeta { len, time: Timestamp(time), block_type, script };
                let (carried, document) = (carried.all(doc), (segment, doc));
                let block = IndexedBlock { meta, carried, document };
                let entry = n.checked_sub(1).and_then(|n| gathered.blocks.get_mut(n as usize));
                if entry.ok_or_else(bad)?.replace(block).is_some() {
                    return Err(format!("it holds block {n} twice"));
                }
            }
        }
        let texts = |field, numbers| {
            Ok::<_, Damage>(Texts { terms: reader.inverted_index(field).map_err(words)?, numbers })
        };
        Ok(Self { blocks: texts(fields.terms, numbers)?, passages: texts(fields.passage, places)? })
    }
}

/// The data collected from the segments of an index.
pub(super) struct Gathered {
    pub(super) blocks: Vec<Option<IndexedBlock>>,
    pub(super) passages: Vec<Option<PassageMeta>>,
}

#[derive(Clone)]
pub(super) struct IndexedBlock {
    pub(super) meta: BlockMeta,
    /// The numbers of its payloads.
    pub(super) carried: Vec<u64>,
    /// Its segment, and its document there.
    pub(super) document: (u32, u32),
}

/// The blocks of a segment, or its passages.
pub(super) struct Texts {
    pub(super) terms: Arc<InvertedIndexReader>,
    /// The number of the block that each document is, or the place of the passage; [`NOT_THIS`] for
    /// neither.
    numbers: Vec<u32>,
}

impl Texts {
    /// Returns how many of them hold `term`.
    pub(super) fn df(&self, term: &Term) -> Result<u64, Damage> {
        self.terms.doc_freq(term).map(u64::from).map_err(|error| error.to_string())
    }

    /// Hands the number of each that holds `term` to `sink`, and how often it does.
    pub(super) fn postings(
        &self,
        term: &Term,
        mut sink: impl FnMut(u32, u32) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let postings = self.terms.read_postings(term, IndexRecordOption::WithFreqs);
        let Some(mut postings) = postings.map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let mut doc = postings.doc();
        while doc != TERMINATED {
            let number = self.numbers.get(doc as usize).copied().unwrap_or(NOT_THIS);
            sink(number, postings.term_freq())?;
            doc = postings.advance();
        }
        Ok(())
    }

    /// Adds every term of those that are `wanted` to `found`.
    pub(super) fn terms_of(
        &self,
        wanted: impl Fn(u32) -> bool,
        found: &mut TermsOf,
    ) -> Result<(), Damage> {
        let mut terms = self.terms.terms().stream().map_err(|error| error.to_string())?;
        while terms.advance() {
            let term: Box<str> = String::from_utf8_lossy(terms.key()).into();
            let mut postings = self
                .terms
                .read_postings_from_terminfo(terms.value(), IndexRecordOption::WithFreqs)
                .map_err(|error| error.to_string())?;
            let mut doc = postings.doc();
            while doc != TERMINATED {
                let number = self.numbers.get(doc as usize).copied().unwrap_or(NOT_THIS);
                if wanted(number) {
                    found.entry(number).or_default().insert(term.clone(), postings.term_freq());
                }
                doc = postings.advance();
            }
        }
        Ok(())
    }
}

/// Texts by number, each with its terms and how often it holds them.
pub(crate) type TermsOf = BTreeMap<u32, BTreeMap<Box<str>, u32>>;

/// Marks a document that is a passage among blocks, or a block among passages.
const NOT_THIS: u32 = u32::MAX;

/// A column of numbers of a segment. Not every document has one, and a few have several.
struct Numbers(Option<Column<u64>>);

impl Numbers {
    pub(super) fn open(reader: &SegmentReader, name: &str) -> Result<Self, Damage> {
        reader.fast_fields().column_opt(name).map(Self).map_err(|error| error.to_string())
    }

    fn is_of(&self, doc: u32) -> bool {
        self.0.as_ref().is_some_and(|column| column.first(doc).is_some())
    }

    pub(super) fn get(&self, doc: u32) -> Result<u64, Damage> {
        let found = self.0.as_ref().and_then(|column| column.first(doc));
        found.ok_or_else(|| "one of its documents lacks a number".to_owned())
    }

    fn all(&self, doc: u32) -> Vec<u64> {
        self.0.iter().flat_map(|column| column.values_for_doc(doc)).collect()
    }

    fn small(&self, doc: u32) -> Result<u32, Damage> {
        u32::try_from(self.get(doc)?).map_err(|_| "one of its numbers is too large".to_owned())
    }
}

/// The types of blocks by their numbers.
const TYPES: [BlockType; 3] = [BlockType::ToolCall, BlockType::Qa, BlockType::Chat];

/// Returns the type and the script of a block as a number of its column.
pub(in crate::disk) fn kind(block_type: BlockType, script: Script) -> u64 {
    let block_type = TYPES.iter().position(|one| *one == block_type).unwrap_or_default();
    let script = Script::ALL.iter().position(|one| *one == script).unwrap_or_default();
    (script * TYPES.len() + block_type) as u64
}

fn of_kind(kind: u64) -> Option<(BlockType, Script)> {
    let kind = usize::try_from(kind).ok()?;
    Some((*TYPES.get(kind % TYPES.len())?, *Script::ALL.get(kind / TYPES.len())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_of_one_type_and_script() {
        for block_type in TYPES {
            for script in Script::ALL {
                assert_eq!(of_kind(kind(block_type, script)), Some((block_type, script)));
            }
        }
        assert_eq!((of_kind(9), of_kind(u64::MAX)), (None, None));
    }
}
