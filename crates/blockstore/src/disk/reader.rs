//! Reading a todo's index.

mod segment;

pub(crate) use segment::TermsOf;
pub(in crate::disk) use segment::kind;

use super::codes::Codes;
use super::graph::Graph;
use super::manifest::{Fit, Manifest};
use super::writer::Fields;
use super::{Damage, Folder};
use crate::Error;
use crate::analysis::Scripts;
use crate::block_doc::{BlockMeta, PassageMeta};
use crate::carried::Carried;
use crate::omission::Omission;
use crate::records::Records;
use foldback_kv::Todo;
use segment::{Gathered, Segment};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, SegmentReader, Term};

/// An index on disk as it was when it was opened and checked. It holds the blocks from 1 on
/// without a gap.
pub(crate) struct DiskIndex {
    pub(crate) manifest: Manifest,
    metas: Vec<BlockMeta>,
    pub(crate) scripts: Scripts,
    /// The passages of the blocks' payloads, in the order of the blocks.
    passages: Vec<PassageMeta>,
    pub(crate) carried: Carried,
    segments: Vec<Segment>,
    pub(crate) codes: Codes,
    pub(crate) graph: Option<Arc<Graph>>,
    /// The segment and the document of each block.
    documents: Vec<(u32, u32)>,
    fields: Fields,
    /// Set when a search stumbled over it; then it is no longer used.
    broken: AtomicBool,
}

impl DiskIndex {
    /// Opens the index in the folder, checked to its last byte; `None` when there is none.
    ///
    /// `number` is that of the todo whose blocks it holds; [`OF_MANY`](super::OF_MANY) for an index of blocks of many
    /// todos. `graph` is one that was opened before; it is reused if it is still the one on disk.
    pub(crate) fn open(
        folder: &Folder,
        number: u32,
        graph: Option<&Arc<Graph>>,
    ) -> Result<Option<Self>, Damage> {
        // A writer removes the files of merged segments, perhaps between listing and opening them.
        let mut tries = 3;
        loop {
            tries -= 1;
            match Self::try_open(folder, number, graph) {
                Err(_) if tries > 0 && folder.holds_index() => {}
                result => return result,
            }
        }
    }

    fn try_open(
        folder: &Folder,
        number: u32,
        graph: Option<&Arc<Graph>>,
    ) -> Result<Option<Self>, Damage> {
        if !folder.holds_index() {
            return Ok(None);
        }
        let words = |error: tantivy::TantivyError| error.to_string();
        let index = folder.open_index().map_err(words)?;
        let fields = Fields::of(&index.schema())?;
        let metas = index.load_metas().map_err(words)?;
        if metas.payload.is_none() && metas.segments.is_empty() {
            // It was created, and the first batch never arrived.
            return Ok(None);
        }
        let manifest = Manifest::read(metas.payload.as_deref(), number)?;
        for path in metas.list_segment_files() {
            // A missing file is reported by the segment's reader, if it needs it.
            if let Ok(false) = index.directory().validate_checksum(&path) {
                return Err(format!("the checksum of {} does not match", path.display()));
            }
        }
        // Memory is reserved for the counted documents, so they must be present: each is a block or a passage, and
        // takes at least a byte.
        let held: u64 = metas.segments.iter().map(|segment| u64::from(segment.max_doc())).sum();
        let files = metas.list_segment_files().into_iter();
        let bytes = files.filter_map(|path| std::fs::metadata(folder.tantivy().join(path)).ok());
        let counted = u64::from(manifest.blocks) + u64::from(manifest.passages);
        if held != counted || held > bytes.map(|file| file.len()).sum() {
            return Err(format!("it holds {held} documents, but its manifest says {counted}"));
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
            return Err("its passages are not those of its manifest".to_owned());
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
            return Err("its blocks do not have the length that its manifest says".to_owned());
        }
        let (bytes, blocks) = (manifest.vector_bytes, manifest.blocks);
        let codes = Codes::read(&folder.vectors(), bytes, blocks, folder.sealing())?;
        let graph = Graph::open(folder, &codes, graph);
        let broken = AtomicBool::new(false);
        Ok(Some(Self {
            manifest,
            scripts: metas.iter().map(|meta| meta.script).collect(),
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

    /// Returns what an index lacks, without examining its other files; nothing if there is no index.
    pub(crate) fn omissions_of(folder: &Folder, number: u32) -> Vec<Omission> {
        let read = || {
            let index = folder.open_index().ok()?;
            let payload = index.load_metas().ok()?.payload;
            Some(Manifest::read(payload.as_deref(), number).ok()?.omissions)
        };
        read().unwrap_or_default()
    }

    /// Returns the parts of the blocks and their payloads that could not be read when they were indexed.
    pub(crate) fn omissions(&self) -> &[Omission] {
        &self.manifest.omissions
    }

    /// Returns where the part that it holds of a payload ends.
    pub(crate) fn text_end(&self, payload: u64) -> u64 {
        let last = self.carried.passages_of(payload).end.checked_sub(1);
        let last = last.and_then(|last| self.passages.get(last as usize));
        last.filter(|last| last.payload == payload).map_or(0, |last| last.place.bytes.end)
    }

    /// Returns the relation of the index to the truth.
    pub(crate) fn fit(&self, records: &Records, todo: &Todo) -> Result<Fit, Error> {
        let (index, truth) = (self.blocks(), records.last_block_n(todo)?);
        if index > truth {
            return Ok(Fit::Ahead { index, truth });
        }
        if records.vector_state(todo)?.generation != self.generation() {
            return Ok(Fit::Outdated);
        }
        if index == 0 {
            return Ok(Fit::Fits);
        }
        match records.block_bytes(todo, index) {
            Ok(Some(record)) if Manifest::anchor(&record) == self.manifest.anchor => Ok(Fit::Fits),
            // A record that was damaged after it was indexed is still the same block.
            Err(Error::Corrupt { .. }) => Ok(Fit::Fits),
            Ok(_) => Ok(Fit::Foreign { block: index }),
            Err(error) => Err(error),
        }
    }

    /// Returns how often the todo's vectors had been replaced when it was written.
    pub(crate) fn generation(&self) -> u32 {
        self.manifest.generation
    }

    /// Returns the number of the last block that it holds; the first is 1.
    pub(crate) fn blocks(&self) -> u32 {
        self.manifest.blocks
    }

    /// Returns the blocks, each with its number.
    pub(crate) fn metas(&self) -> impl Iterator<Item = (u32, BlockMeta)> {
        (1..).zip(self.metas.iter().copied())
    }

    pub(crate) fn meta(&self, n: u32) -> Option<BlockMeta> {
        self.metas.get(n.checked_sub(1)? as usize).copied()
    }

    /// Returns how many blocks hold `term`.
    pub(crate) fn df(&self, term: &str) -> Result<u64, Damage> {
        let term = self.term(term);
        self.segments.iter().map(|segment| segment.blocks.df(&term)).sum()
    }

    /// Returns the passages of the blocks' payloads, in order.
    pub(crate) fn passages(&self) -> &[PassageMeta] {
        &self.passages
    }

    /// Returns how many passages hold `term`.
    pub(crate) fn passage_df(&self, term: &str) -> Result<u64, Damage> {
        let term = self.passage_term(term);
        self.segments.iter().map(|segment| segment.passages.df(&term)).sum()
    }

    /// Hands each passage that holds `term` to `sink`: its place, how often it holds the term, which passage it is.
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

    /// Hands each block that holds `term` to `sink`: its number, how often it holds the term, its length.
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

    /// Returns how often block `n` holds `term`.
    pub(crate) fn tf(&self, term: &str, n: u32) -> Result<u32, Damage> {
        let place = n.checked_sub(1).and_then(|n| self.documents.get(n as usize));
        let Some(&(segment, doc)) = place else { return Ok(0) };
        let Some(segment) = self.segments.get(segment as usize) else { return Ok(0) };
        let terms = &segment.blocks.terms;
        let postings = terms.read_postings(&self.term(term), IndexRecordOption::WithFreqs);
        let Some(mut postings) = postings.map_err(|error| error.to_string())? else { return Ok(0) };
        // Seeking backwards is not allowed, and the first document may come later.
        let found = if postings.doc() < doc { postings.seek(doc) } else { postings.doc() };
        Ok(if found == doc { postings.term_freq() } else { 0 })
    }

    /// Returns every term of the blocks of a range, for comparison with the truth.
    pub(crate) fn terms_of(&self, blocks: RangeInclusive<u32>) -> Result<TermsOf, Damage> {
        let mut found = TermsOf::new();
        for segment in &self.segments {
            segment.blocks.terms_of(|n| blocks.contains(&n), &mut found)?;
        }
        Ok(found)
    }

    /// Returns every term of the passages at these places, for comparison with the truth.
    pub(crate) fn passage_terms_of(&self, places: Range<u32>) -> Result<TermsOf, Damage> {
        let mut found = TermsOf::new();
        for segment in &self.segments {
            segment.passages.terms_of(|place| places.contains(&place), &mut found)?;
        }
        Ok(found)
    }

    /// Returns about how much memory it uses, without what the system keeps of its files.
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

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::TodoId;
    use foldback_kv::Registry;
    use tantivy::{IndexWriter, TantivyDocument};

    /// A writer that was killed leaves an index without a commit, or with files of a commit that was never made.
    #[test]
    fn r1_an_index_that_was_cut_short_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let id = TodoId::new("t").unwrap();
        let todo = Registry::new(foldback_kv::memory()).create(&id, b"").unwrap();
        let folder = Folder::new(dir.path(), todo.no(), None);
        let open = || DiskIndex::open(&folder, todo.no(), None);
        assert!(matches!(open(), Ok(None)));
        std::fs::create_dir_all(folder.tantivy()).unwrap();
        assert!(matches!(open(), Ok(None)));
        let schema = Fields::schema().0;
        let index = folder.create_index(schema.clone()).unwrap();
        assert!(matches!(open(), Ok(None)));
        let writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        let mut document = TantivyDocument::new();
        document.add_u64(schema.get_field(Fields::NUMBER).unwrap(), 1);
        writer.add_document(document).unwrap();
        drop(writer);
        assert!(matches!(open(), Ok(None)));
        // A commit of another program carries no manifest.
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        writer.add_document(TantivyDocument::new()).unwrap();
        writer.commit().unwrap();
        assert!(open().is_err_and(|damage| damage.contains("manifest")));
    }
}
