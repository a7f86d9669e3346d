//! Reading a todo's index.

use super::codes::Codes;
use super::graph::Graph;
use super::manifest::{Fit, Manifest};
use super::writer::Fields;
use super::{Damage, Folder};
use crate::Error;
use crate::block_doc::{BlockMeta, PassageMeta};
use crate::carried::Carried;
use crate::passage::PassagePlace;
use crate::records::Records;
use foldback_core::{BlockType, Timestamp};
use foldback_kv::Todo;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tantivy::columnar::Column;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Index, InvertedIndexReader, SegmentReader, TERMINATED, Term};

/// An index on disk as it was when it was opened and checked. It holds the blocks from 1 on
/// without a gap.
pub(crate) struct DiskIndex {
    pub(crate) manifest: Manifest,
    metas: Vec<BlockMeta>,
    /// The passages of the blocks' payloads, in the order of the blocks.
    passages: Vec<PassageMeta>,
    pub(crate) carried: Carried,
    segments: Vec<Segment>,
    pub(crate) codes: Codes,
    pub(crate) graph: Option<Arc<Graph>>,
    /// The segment and the document of each block.
    documents: Vec<(u32, u32)>,
    fields: Fields,
    /// Set when a search stumbled over it; then it is used no more.
    broken: AtomicBool,
}

struct Segment {
    blocks: Texts,
    passages: Texts,
}

/// The blocks of a segment, or its passages.
struct Texts {
    terms: Arc<InvertedIndexReader>,
    /// The number of the block that each document is, or the place of the passage; none is
    /// [`NOT_THIS`].
    numbers: Vec<u32>,
}

/// Stands for a document that is a passage among blocks, and a block among passages.
const NOT_THIS: u32 = u32::MAX;

/// What is gathered from the segments of an index.
struct Gathered {
    blocks: Vec<Option<IndexedBlock>>,
    passages: Vec<Option<PassageMeta>>,
}

#[derive(Clone)]
struct IndexedBlock {
    meta: BlockMeta,
    /// The numbers of its payloads.
    carried: Vec<u64>,
    /// Its segment, and its document there.
    document: (u32, u32),
}

impl DiskIndex {
    /// The index in the folder, checked to its last byte; `None` when there is none.
    ///
    /// `graph` is one that was opened before; it is used again when it is still the one on disk.
    pub(crate) fn open(
        folder: &Folder,
        todo: &Todo,
        graph: Option<&Arc<Graph>>,
    ) -> Result<Option<Self>, Damage> {
        // A writer removes the files of merged segments, perhaps between reading which there are
        // and opening them.
        let mut tries = 3;
        loop {
            tries -= 1;
            match Self::try_open(folder, todo, graph) {
                Err(_) if tries > 0 && folder.holds_index() => {}
                result => return result,
            }
        }
    }

    fn try_open(
        folder: &Folder,
        todo: &Todo,
        graph: Option<&Arc<Graph>>,
    ) -> Result<Option<Self>, Damage> {
        if !folder.holds_index() {
            return Ok(None);
        }
        let words = |error: tantivy::TantivyError| error.to_string();
        let index = Index::open_in_dir(folder.tantivy()).map_err(words)?;
        let fields = Fields::of(&index.schema())?;
        let metas = index.load_metas().map_err(words)?;
        if metas.payload.is_none() && metas.segments.is_empty() {
            // It was created, and the first batch never arrived.
            return Ok(None);
        }
        let manifest = Manifest::read(metas.payload.as_deref(), todo.no())?;
        for path in metas.list_segment_files() {
            // A file that is missing is told by the segment's reader, if it needs it.
            if let Ok(false) = index.directory().validate_checksum(&path) {
                return Err(format!("the checksum of {} does not hold", path.display()));
            }
        }
        let mut gathered = Gathered {
            blocks: vec![None; manifest.blocks as usize],
            passages: vec![None; manifest.passages as usize],
        };
        let mut segments = Vec::with_capacity(metas.segments.len());
        for (meta, place) in metas.segments.iter().zip(0..) {
            let reader = SegmentReader::open(&index.segment(meta.clone())).map_err(words)?;
            segments.push(Segment::read(&reader, fields, place, &mut gathered)?);
        }
        let passages = gathered.passages.into_iter().collect::<Option<Vec<_>>>();
        let passages = passages.ok_or_else(|| "it leaves passages out".to_owned())?;
        let passage_terms: u64 = passages.iter().map(|meta| u64::from(meta.len)).sum();
        let blocks_of = passages.iter().map(|meta| meta.block);
        if passage_terms != manifest.passage_terms || !blocks_of.is_sorted() {
            return Err("its passages are not those that its manifest says".to_owned());
        }
        let blocks = gathered.blocks.into_iter().collect::<Option<Vec<_>>>();
        let blocks = blocks.ok_or_else(|| "it leaves blocks out".to_owned())?;
        let mut carried = Carried::default();
        let (mut metas, mut documents) = (Vec::new(), Vec::new());
        for (n, block) in (1..).zip(blocks) {
            metas.push(block.meta);
            documents.push(block.document);
            carried.add_block(n, block.carried);
        }
        (0..).zip(&passages).for_each(|(place, meta)| carried.add_passage(meta.payload, place));
        if metas.iter().map(|meta| u64::from(meta.len)).sum::<u64>() != manifest.terms {
            return Err("its blocks are not of the length that its manifest says".to_owned());
        }
        let codes = Codes::read(&folder.vectors(), manifest.vector_bytes, manifest.blocks)?;
        let graph = Graph::open(folder, &codes, graph);
        let broken = AtomicBool::new(false);
        Ok(Some(Self {
            manifest,
            metas,
            passages,
            carried,
            segments,
            codes,
            graph,
            documents,
            fields,
            broken,
        }))
    }

    /// How the index stands to the truth.
    pub(crate) fn fit(&self, records: &Records, todo: &Todo) -> Result<Fit, Error> {
        let (index, truth) = (self.blocks(), records.last_block_n(todo)?);
        if index > truth {
            return Ok(Fit::Ahead { index, truth });
        }
        if index == 0 {
            return Ok(Fit::Fits);
        }
        match records.block_bytes(todo, index) {
            Ok(Some(record)) if Manifest::anchor(&record) == self.manifest.anchor => Ok(Fit::Fits),
            // A record that is damaged since it was indexed is still the same block.
            Err(Error::Corrupt { .. }) => Ok(Fit::Fits),
            Ok(_) => Ok(Fit::Foreign { block: index }),
            Err(error) => Err(error),
        }
    }

    /// It holds the blocks 1 to this one.
    pub(crate) fn blocks(&self) -> u32 {
        self.manifest.blocks
    }

    /// The blocks, each with its number.
    pub(crate) fn metas(&self) -> impl Iterator<Item = (u32, BlockMeta)> {
        (1..).zip(self.metas.iter().copied())
    }

    pub(crate) fn meta(&self, n: u32) -> Option<BlockMeta> {
        self.metas.get(n.checked_sub(1)? as usize).copied()
    }

    /// How many blocks hold `term`.
    pub(crate) fn df(&self, term: &str) -> Result<u64, Damage> {
        let term = self.term(term);
        self.segments.iter().map(|segment| segment.blocks.df(&term)).sum()
    }

    /// The passages of the blocks' payloads, in order.
    pub(crate) fn passages(&self) -> &[PassageMeta] {
        &self.passages
    }

    /// How many passages hold `term`.
    pub(crate) fn passage_df(&self, term: &str) -> Result<u64, Damage> {
        let term = self.passage_term(term);
        self.segments.iter().map(|segment| segment.passages.df(&term)).sum()
    }

    /// Hands each passage that holds `term` to `sink`: its place, how often it holds it, which it is.
    pub(crate) fn passage_postings(
        &self,
        term: &str,
        mut sink: impl FnMut(u32, u32, &PassageMeta),
    ) -> Result<(), Damage> {
        let term = self.passage_term(term);
        for segment in &self.segments {
            segment.passages.postings(&term, |place, tf| {
                let meta = self.passages.get(place as usize);
                sink(place, tf, meta.ok_or("it names a passage that it does not hold")?);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Hands each block that holds `term` to `sink`: its number, how often it holds it, its length.
    pub(crate) fn postings(
        &self,
        term: &str,
        mut sink: impl FnMut(u32, u32, u32),
    ) -> Result<(), Damage> {
        let term = self.term(term);
        for segment in &self.segments {
            segment.blocks.postings(&term, |n, tf| {
                sink(n, tf, self.meta(n).ok_or("it names a block that it does not hold")?.len);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// How often block `n` holds `term`.
    pub(crate) fn tf(&self, term: &str, n: u32) -> Result<u32, Damage> {
        let place = n.checked_sub(1).and_then(|n| self.documents.get(n as usize));
        let Some(&(segment, doc)) = place else { return Ok(0) };
        let Some(segment) = self.segments.get(segment as usize) else { return Ok(0) };
        let terms = &segment.blocks.terms;
        let postings = terms.read_postings(&self.term(term), IndexRecordOption::WithFreqs);
        let Some(mut postings) = postings.map_err(|error| error.to_string())? else { return Ok(0) };
        // Seeking backwards is not allowed, and the first document may be behind.
        let found = if postings.doc() < doc { postings.seek(doc) } else { postings.doc() };
        Ok(if found == doc { postings.term_freq() } else { 0 })
    }

    /// Every term of the blocks of a range, for comparison with the truth.
    pub(crate) fn terms_of(&self, blocks: RangeInclusive<u32>) -> Result<TermsOf, Damage> {
        let mut found = TermsOf::new();
        for segment in &self.segments {
            segment.blocks.terms_of(|n| blocks.contains(&n), &mut found)?;
        }
        Ok(found)
    }

    /// Every term of the passages at these places, for comparison with the truth.
    pub(crate) fn passage_terms_of(&self, places: Range<u32>) -> Result<TermsOf, Damage> {
        let mut found = TermsOf::new();
        for segment in &self.segments {
            segment.passages.terms_of(|place| places.contains(&place), &mut found)?;
        }
        Ok(found)
    }

    /// About how much memory it takes, without what the system keeps of its files.
    pub(crate) fn bytes(&self) -> usize {
        self.codes.bytes()
            + self.metas.len() * 40
            + self.passages.len() * (size_of::<PassageMeta>() + 8)
            + self.carried.bytes()
            + self.graph.as_ref().map_or(0, |graph| graph.bytes())
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    pub(crate) fn set_broken(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    fn term(&self, term: &str) -> Term {
        Term::from_field_text(self.fields.terms, term)
    }

    fn passage_term(&self, term: &str) -> Term {
        Term::from_field_text(self.fields.passage, term)
    }
}

/// Texts by number, each with its terms and how often it holds them.
pub(crate) type TermsOf = BTreeMap<u32, BTreeMap<Box<str>, u32>>;

impl Texts {
    /// How many of them hold `term`.
    fn df(&self, term: &Term) -> Result<u64, Damage> {
        self.terms.doc_freq(term).map(u64::from).map_err(|error| error.to_string())
    }

    /// Hands the number of each that holds `term` to `sink`, and how often it does.
    fn postings(
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
    fn terms_of(&self, wanted: impl Fn(u32) -> bool, found: &mut TermsOf) -> Result<(), Damage> {
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

impl Segment {
    /// Reads which blocks and passages the segment holds, and notes each in `gathered`.
    fn read(
        reader: &SegmentReader,
        fields: Fields,
        segment: u32,
        gathered: &mut Gathered,
    ) -> Result<Self, Damage> {
        let words = |error: tantivy::TantivyError| error.to_string();
        if reader.has_deletes() {
            return Err("it has deleted blocks, and blocks are never deleted".to_owned());
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
        let bad = || "a document of it is neither a block nor a passage".to_owned();
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
                let block_type = block_type(kind.get(doc)?).ok_or_else(bad)?;
                let meta = BlockMeta { len, time: Timestamp(time), block_type };
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

/// A column of numbers of a segment. Not every document has one, and a few have several.
struct Numbers(Option<Column<u64>>);

impl Numbers {
    fn open(reader: &SegmentReader, name: &str) -> Result<Self, Damage> {
        reader.fast_fields().column_opt(name).map(Self).map_err(|error| error.to_string())
    }

    fn is_of(&self, doc: u32) -> bool {
        self.0.as_ref().is_some_and(|column| column.first(doc).is_some())
    }

    fn get(&self, doc: u32) -> Result<u64, Damage> {
        let found = self.0.as_ref().and_then(|column| column.first(doc));
        found.ok_or_else(|| "a document of it lacks a number".to_owned())
    }

    fn all(&self, doc: u32) -> Vec<u64> {
        self.0.iter().flat_map(|column| column.values_for_doc(doc)).collect()
    }

    fn small(&self, doc: u32) -> Result<u32, Damage> {
        u32::try_from(self.get(doc)?).map_err(|_| "a number of it is too large".to_owned())
    }
}

/// The type of a block as a number of its column.
pub(super) fn kind(block_type: BlockType) -> u64 {
    match block_type {
        BlockType::ToolCall => 0,
        BlockType::Qa => 1,
        BlockType::Chat => 2,
    }
}

fn block_type(kind: u64) -> Option<BlockType> {
    [BlockType::ToolCall, BlockType::Qa, BlockType::Chat].get(kind as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::TodoId;
    use foldback_kv::Registry;
    use tantivy::{IndexWriter, TantivyDocument};

    /// A writer that was killed leaves an index without a commit, or with files of a commit that
    /// never came.
    #[test]
    fn r1_an_index_that_was_cut_short_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let id = TodoId::new("t").unwrap();
        let todo = Registry::new(foldback_kv::memory()).create(&id, b"").unwrap();
        let folder = Folder::new(dir.path(), todo.no());
        let open = || DiskIndex::open(&folder, &todo, None);
        assert!(matches!(open(), Ok(None)));
        std::fs::create_dir_all(folder.tantivy()).unwrap();
        assert!(matches!(open(), Ok(None)));
        let schema = Fields::schema().0;
        let index = Index::create_in_dir(folder.tantivy(), schema.clone()).unwrap();
        assert!(matches!(open(), Ok(None)));
        let writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        let mut document = TantivyDocument::new();
        document.add_u64(schema.get_field(Fields::NUMBER).unwrap(), 1);
        writer.add_document(document).unwrap();
        drop(writer);
        assert!(matches!(open(), Ok(None)));
        // A commit that is not of this program carries no manifest.
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        writer.add_document(TantivyDocument::new()).unwrap();
        writer.commit().unwrap();
        assert!(open().is_err_and(|damage| damage.contains("manifest")));
    }
}
