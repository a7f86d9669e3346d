//! Writing a todo's index: blocks are only ever appended.

use super::code_file::NewCodes;
use super::counted_terms::{CountedTerms, counted};
use super::manifest::Manifest;
use super::reader::kind;
use super::{Damage, DiskIndex, Folder};
use crate::Error;
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::records::{Records, pages};
use foldback_kv::Todo;
use rustc_hash::FxHashSet;
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{Index, TantivyDocument};

/// How much the writer may hold before it writes a segment: the least that tantivy accepts.
const WRITER_BYTES: usize = 15_000_000;

/// This many blocks are committed at once when an index is built from the beginning.
const MAX_BATCH: u32 = 4_096;

/// A batch ends after the block with which its payloads have about this many passages: 32 MiB.
const MAX_BATCH_PASSAGES: u64 = 16 << 10;

/// The columns of the index. A document is a block, or a passage of a payload: a passage has a place, and the number of
/// its block.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    /// The terms of a block.
    pub(super) terms: Field,
    number: Field,
    length: Field,
    time: Field,
    kind: Field,
    /// The payloads that a block carries.
    carried: Field,
    /// The terms of a passage.
    pub(super) passage: Field,
    place: Field,
    payload: Field,
    from_byte: Field,
    to_byte: Field,
    first_line: Field,
    last_line: Field,
    skip: Field,
}

impl Fields {
    pub(super) const NUMBER: &'static str = "number";
    pub(super) const LENGTH: &'static str = "length";
    pub(super) const TIME: &'static str = "time";
    pub(super) const KIND: &'static str = "kind";
    pub(super) const CARRIED: &'static str = "carried";
    pub(super) const PLACE: &'static str = "place";
    pub(super) const PAYLOAD: &'static str = "payload";
    pub(super) const FROM_BYTE: &'static str = "from_byte";
    pub(super) const TO_BYTE: &'static str = "to_byte";
    pub(super) const FIRST_LINE: &'static str = "first_line";
    pub(super) const LAST_LINE: &'static str = "last_line";
    pub(super) const SKIP: &'static str = "skip";

    pub(super) fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        // Exact lengths are in a column, so the rounded ones of tantivy are left out; terms are already analysed.
        let indexing = TextFieldIndexing::default()
            .set_index_option(IndexRecordOption::WithFreqs)
            .set_fieldnorms(false)
            .set_tokenizer(CountedTerms::NAME);
        let terms = TextOptions::default().set_indexing_options(indexing);
        let column: NumericOptions = FAST.into();
        let fields = Self {
            terms: schema.add_text_field("terms", terms.clone()),
            number: schema.add_u64_field(Self::NUMBER, column.clone()),
            length: schema.add_u64_field(Self::LENGTH, column.clone()),
            time: schema.add_i64_field(Self::TIME, column.clone()),
            kind: schema.add_u64_field(Self::KIND, column.clone()),
            carried: schema.add_u64_field(Self::CARRIED, column.clone()),
            passage: schema.add_text_field("passage", terms),
            place: schema.add_u64_field(Self::PLACE, column.clone()),
            payload: schema.add_u64_field(Self::PAYLOAD, column.clone()),
            from_byte: schema.add_u64_field(Self::FROM_BYTE, column.clone()),
            to_byte: schema.add_u64_field(Self::TO_BYTE, column.clone()),
            first_line: schema.add_u64_field(Self::FIRST_LINE, column.clone()),
            last_line: schema.add_u64_field(Self::LAST_LINE, column.clone()),
            skip: schema.add_u64_field(Self::SKIP, column),
        };
        (schema.build(), fields)
    }

    pub(super) fn of(found: &Schema) -> Result<Self, Damage> {
        let (schema, fields) = Self::schema();
        if schema == *found { Ok(fields) } else { Err("its columns differ".to_owned()) }
    }
}

/// The right to append to a todo's index, or to build its graph. It ends with the value, and with the process however
/// it ends.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock for appending; `None` when another process has it.
    pub(crate) fn take(folder: &Folder) -> Result<Option<Self>, Error> {
        Self::take_file(folder, folder.lock())
    }

    /// Takes the lock for building the graph; `None` when another process has it.
    pub(crate) fn take_graph(folder: &Folder) -> Result<Option<Self>, Error> {
        Self::take_file(folder, folder.graph_lock())
    }

    fn take_file(folder: &Folder, path: PathBuf) -> Result<Option<Self>, Error> {
        let failed = |error: std::io::Error| index_error(folder, "locked", &error);
        std::fs::create_dir_all(folder.root()).map_err(failed)?;
        let file =
            File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Appends blocks to the index of one todo. Its creator holds the [`Lock`].
pub(crate) struct IndexWriter<'a> {
    folder: &'a Folder,
    records: &'a Records,
    todo: &'a Todo,
}

impl<'a> IndexWriter<'a> {
    pub(crate) fn new(
        _lock: &'a Lock,
        folder: &'a Folder,
        records: &'a Records,
        todo: &'a Todo,
    ) -> Self {
        Self { folder, records, todo }
    }

    /// Deletes whatever index there is.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let failed = |error: std::io::Error| index_error(self.folder, "cleared", &error);
        for entry in std::fs::read_dir(self.folder.root()).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let gone = match path.is_dir() {
                true => std::fs::remove_dir_all(&path),
                false if [self.folder.lock(), self.folder.graph_lock()].contains(&path) => Ok(()),
                false => std::fs::remove_file(&path),
            };
            gone.or_else(ignore_missing).map_err(failed)?;
        }
        foldback_core::failpoint!("blockstore.index.cleared");
        Ok(())
    }

    /// Appends the blocks after those that `index` holds, up to `last`, or up to the end of the first batch after which
    /// `stop` returns true.
    pub(crate) fn append(
        &self,
        index: Option<&DiskIndex>,
        last: u32,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let mut is_new = index.is_none();
        let generation = self.generation(index)?;
        let mut first = index.map_or(0, DiskIndex::blocks) + 1;
        let mut totals = index.map(|index| index.manifest.totals()).unwrap_or_default();
        let mut omissions = index.map(|index| index.omissions().to_vec()).unwrap_or_default();
        let mut known: FxHashSet<u64> =
            index.into_iter().flat_map(|index| index.carried.payloads()).collect();
        let failed = |error: tantivy::TantivyError| self.failed(&error);
        let (index, fields) = self.open_or_create()?;
        let mut writer =
            index.writer_with_num_threads::<TantivyDocument>(1, WRITER_BYTES).map_err(failed)?;
        if last.saturating_sub(first) >= MAX_BATCH {
            // A rebuild writes few large segments, and merging them would only cost time.
            writer.set_merge_policy(Box::new(NoMergePolicy));
        }
        while first <= last {
            let mut codes = NewCodes::default();
            let mut to = first;
            let mut passages = 0;
            for page in pages(first..=last.min(first.saturating_add(MAX_BATCH - 1))) {
                let mut new = Vec::new();
                for mut doc in self.records.block_docs(self.todo, page)? {
                    omissions.append(&mut doc.omissions);
                    for payload in doc.payloads.iter().filter(|payload| known.insert(payload.n)) {
                        passages += payload.passages();
                        new.push((doc.n, *payload));
                    }
                    codes.push(&doc);
                    totals.terms += u64::from(doc.meta.len);
                    to = doc.n;
                    writer.add_document(block(doc, fields)).map_err(failed)?;
                    if passages >= MAX_BATCH_PASSAGES {
                        break;
                    }
                }
                let mut result = Ok(());
                omissions.extend(self.records.passage_docs(self.todo, &new, |doc| {
                    let place = totals.passages;
                    totals.passages += 1;
                    totals.passage_terms += u64::from(doc.meta.len);
                    result = writer.add_document(passage(place, doc, fields)).map(drop);
                    result.is_ok()
                })?);
                result.map_err(failed)?;
                if passages >= MAX_BATCH_PASSAGES {
                    break;
                }
            }
            // The vectors are written before the commit that counts on them.
            totals.vector_bytes = codes
                .append_to(
                    &self.folder.vectors(),
                    totals.vector_bytes,
                    (first, to),
                    self.folder.sealing(),
                )
                .map_err(|error| index_error(self.folder, "written", &error))?;
            if std::mem::take(&mut is_new) {
                let synced = self.folder.sync();
                synced.map_err(|error| index_error(self.folder, "written", &error))?;
            }
            foldback_core::failpoint!("blockstore.index.vectors-written");
            let (no, truth) = (self.todo.no(), (generation, self.anchor(to)?));
            let manifest = Manifest::new(no, to, totals, truth, omissions.clone());
            let payload = manifest.write().map_err(|error| self.failed(&error))?;
            let mut commit = writer.prepare_commit().map_err(failed)?;
            commit.set_payload(&payload);
            commit.commit().map_err(failed)?;
            foldback_core::failpoint!("blockstore.index.committed");
            let Some(next) = to.checked_add(1).filter(|_| !stop()) else { break };
            first = next;
        }
        writer.wait_merging_threads().map_err(failed)
    }

    /// Returns the generation of the vectors that are appended to an index, or with which it begins.
    fn generation(&self, index: Option<&DiskIndex>) -> Result<u32, Error> {
        let begun = index.map(|index| Ok(index.generation()));
        begun.unwrap_or_else(|| Ok(self.records.vector_state(self.todo)?.generation))
    }

    /// Returns the index to append to. It is opened anew for each run: a handle that outlives another process's writes
    /// leaves files that nobody removes.
    fn open_or_create(&self) -> Result<(Index, Fields), Error> {
        let (schema, fields) = Fields::schema();
        let index = if self.folder.holds_index() {
            self.folder.open_index()
        } else {
            std::fs::create_dir_all(self.folder.tantivy())
                .map_err(|error| index_error(self.folder, "created", &error))?;
            self.folder.create_index(schema)
        };
        Ok((index.map_err(|error| self.failed(&error))?, fields))
    }

    /// Returns the hash that ties an index which ends with this block to the truth; 0 if the block's record is damaged.
    fn anchor(&self, block: u32) -> Result<u64, Error> {
        match self.records.block_bytes(self.todo, block) {
            Ok(record) => Ok(Manifest::anchor(&record.unwrap_or_default())),
            Err(Error::Corrupt { .. }) => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> Error {
        index_error(self.folder, "written", error)
    }
}

pub(super) fn block(doc: BlockDoc, fields: Fields) -> TantivyDocument {
    let carried = doc.carried();
    let mut document = with_terms(fields.terms, &doc.terms);
    document.add_u64(fields.number, u64::from(doc.n));
    document.add_u64(fields.length, u64::from(doc.meta.len));
    document.add_i64(fields.time, doc.meta.time.0);
    document.add_u64(fields.kind, kind(doc.meta.block_type, doc.meta.script));
    carried.into_iter().for_each(|payload| document.add_u64(fields.carried, payload));
    document
}

pub(super) fn passage(place: u32, doc: PassageDoc, fields: Fields) -> TantivyDocument {
    let PassageDoc { meta, terms } = doc;
    let mut document = with_terms(fields.passage, &terms);
    document.add_u64(fields.number, u64::from(meta.block));
    document.add_u64(fields.length, u64::from(meta.len));
    document.add_u64(fields.place, u64::from(place));
    document.add_u64(fields.payload, meta.payload);
    document.add_u64(fields.from_byte, meta.place.bytes.start);
    document.add_u64(fields.to_byte, meta.place.bytes.end);
    document.add_u64(fields.first_line, meta.place.lines.0);
    document.add_u64(fields.last_line, meta.place.lines.1);
    document.add_u64(fields.skip, meta.place.skip);
    document
}

fn with_terms(field: Field, terms: &[(Box<str>, u32)]) -> TantivyDocument {
    let mut document = TantivyDocument::new();
    document.add_text(field, counted(terms));
    document
}

pub(crate) fn index_error(
    folder: &Folder,
    doing: &'static str,
    error: &dyn std::fmt::Display,
) -> Error {
    Error::Index { path: folder.root().to_owned(), doing, detail: error.to_string() }
}

fn ignore_missing(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
