//! An index that is written once and never changed, of blocks of many todos.

use super::code_file::NewCodes;
use super::manifest::{Manifest, Totals};
use super::writer::{Fields, block, index_error, passage};
use super::{Folder, OF_MANY};
use crate::Error;
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::omission::Omission;
use tantivy::indexer::NoMergePolicy;
use tantivy::{IndexWriter, TantivyDocument};

/// How much the writer may hold before it writes a segment: a volume has a few of them.
const WRITER_BYTES: usize = 64_000_000;

/// The vectors of this many blocks are written at once.
const CODES_BATCH: u32 = 4_096;

/// Writes an index from its first block to its last. The index counts only after
/// [`finish`](Self::finish).
pub(crate) struct VolumeWriter<'a> {
    folder: &'a Folder,
    writer: IndexWriter<TantivyDocument>,
    fields: Fields,
    codes: NewCodes,
    /// The last block whose vectors are in their file, and the last of all.
    written: u32,
    last: u32,
    totals: Totals,
    omissions: Vec<Omission>,
}

impl<'a> VolumeWriter<'a> {
    /// Starts an index in an empty folder.
    pub(crate) fn create(folder: &'a Folder) -> Result<Self, Error> {
        let (schema, fields) = Fields::schema();
        std::fs::create_dir_all(folder.tantivy())
            .map_err(|error| index_error(folder, "created", &error))?;
        let failed = |error: tantivy::TantivyError| index_error(folder, "written", &error);
        let index = folder.create_index(schema).map_err(failed)?;
        let writer: IndexWriter<TantivyDocument> =
            index.writer_with_num_threads(1, WRITER_BYTES).map_err(failed)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        let (codes, totals, omissions) = (NewCodes::default(), Totals::default(), Vec::new());
        Ok(Self { folder, writer, fields, codes, written: 0, last: 0, totals, omissions })
    }

    /// Adds the next block; blocks count from 1.
    pub(crate) fn block(&mut self, mut doc: BlockDoc) -> Result<(), Error> {
        self.last = doc.n;
        self.lack(std::mem::take(&mut doc.omissions));
        self.totals.terms += u64::from(doc.meta.len);
        self.codes.push(&doc);
        self.add(block(doc, self.fields))?;
        if self.last - self.written >= CODES_BATCH { self.write_codes() } else { Ok(()) }
    }

    /// Adds the next passage of a payload that one of the blocks carries.
    pub(crate) fn passage(&mut self, doc: PassageDoc) -> Result<(), Error> {
        let place = self.totals.passages;
        self.totals.passages += 1;
        self.totals.passage_terms += u64::from(doc.meta.len);
        self.add(passage(place, doc, self.fields))
    }

    /// Notes a part that could not be read.
    pub(crate) fn lack(&mut self, omissions: Vec<Omission>) {
        self.omissions.extend(omissions);
    }

    /// Makes the index durable.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        // The vectors are written before the commit that counts on them.
        if self.written < self.last {
            self.write_codes()?;
        }
        let omissions = std::mem::take(&mut self.omissions);
        let manifest = Manifest::new(OF_MANY, self.last, self.totals, (0, 0), omissions);
        let payload = manifest.write().map_err(|error| self.failed(&error))?;
        let folder = self.folder;
        let failed = |error: tantivy::TantivyError| index_error(folder, "written", &error);
        let mut commit = self.writer.prepare_commit().map_err(failed)?;
        commit.set_payload(&payload);
        commit.commit().map_err(failed)?;
        foldback_core::failpoint!("blockstore.volume.committed");
        self.writer.wait_merging_threads().map_err(failed)?;
        folder.sync().map_err(|error| index_error(folder, "written", &error))
    }

    fn write_codes(&mut self) -> Result<(), Error> {
        let codes = std::mem::take(&mut self.codes);
        let written = codes.append_to(
            &self.folder.vectors(),
            self.totals.vector_bytes,
            (self.written + 1, self.last),
            self.folder.sealing(),
        );
        self.totals.vector_bytes = written.map_err(|error| self.failed(&error))?;
        self.written = self.last;
        Ok(())
    }

    fn add(&self, document: TantivyDocument) -> Result<(), Error> {
        self.writer.add_document(document).map(drop).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> Error {
        index_error(self.folder, "written", error)
    }
}
