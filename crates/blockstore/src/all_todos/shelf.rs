//! Blocks of many todos that are searched together: a volume, or what stands in none yet.

use super::Origin;
use super::catalogue::Run;
use crate::Error;
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::disk::DiskIndex;
use crate::memory_index::MemoryIndex;
use crate::parts::Parts;
use crate::payload_texts::PayloadText;
use crate::records::Records;
use foldback_kv::Todo;
use rustc_hash::FxHashSet;
use std::ops::RangeInclusive;

/// Of one payload, this many bytes are searched, from its beginning: what a person looks for in a log
/// stands in its head, or in what the conversation says of it.
const MAX_TEXT: u64 = 64 << 10;

/// Blocks of many todos, numbered from 1 in the order of their runs.
pub(super) struct Shelf {
    /// The volume's number; 0 of what stands in none.
    pub(super) number: u64,
    index: Index,
    empty: MemoryIndex,
    /// Each run and the number of its first block here.
    runs: Vec<(u32, Run)>,
    pub(super) origins: Vec<Origin>,
    pub(super) blocks: u32,
}

enum Index {
    Volume(Box<DiskIndex>),
    Tail(Box<MemoryIndex>),
}

impl Shelf {
    pub(super) fn volume(
        number: u64,
        disk: DiskIndex,
        runs: Vec<Run>,
        origins: Vec<Origin>,
    ) -> Self {
        Self::new(number, Index::Volume(Box::new(disk)), runs, origins)
    }

    pub(super) fn tail(memory: MemoryIndex, runs: Vec<Run>, origins: Vec<Origin>) -> Self {
        Self::new(0, Index::Tail(Box::new(memory)), runs, origins)
    }

    fn new(number: u64, index: Index, runs: Vec<Run>, origins: Vec<Origin>) -> Self {
        let mut blocks = 0;
        let mut placed = Vec::with_capacity(runs.len());
        for run in runs {
            placed.push((blocks + 1, run));
            blocks += run.blocks();
        }
        Self { number, index, empty: MemoryIndex::starting_at(1, 0), runs: placed, origins, blocks }
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        match &self.index {
            Index::Volume(disk) => {
                Parts { disk: Some(disk), memory: self.empty.until(0), open: None }
            }
            Index::Tail(memory) => {
                Parts { disk: None, memory: memory.until(memory.len()), open: None }
            }
        }
    }

    /// The index on disk, of a volume.
    pub(super) fn disk(&self) -> Option<&DiskIndex> {
        match &self.index {
            Index::Volume(disk) => Some(disk),
            Index::Tail(_) => None,
        }
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|(_, run)| run)
    }

    /// The run that a block belongs to, and the number that it has in its todo.
    pub(super) fn place(&self, n: u32) -> Option<(&Run, u32)> {
        let (start, run) =
            self.runs.get(self.runs.partition_point(|(start, _)| *start <= n).checked_sub(1)?)?;
        let n = run.first + (n - start);
        (n <= run.last).then_some((run, n))
    }

    /// Hands each block to `sink`: its number here, whether the one before and the one behind are its
    /// neighbours in its todo, and its run.
    pub(super) fn each_block(&self, mut sink: impl FnMut(u32, (bool, bool), &Run)) {
        for (start, run) in &self.runs {
            for n in run.first..=run.last {
                sink(start + (n - run.first), (n > run.first, n < run.last), run);
            }
        }
    }
}

/// What an index of blocks of many todos calls a payload: a number in one todo stands for another
/// payload in the next.
pub(super) fn payload_key(todo: u32, n: u64) -> u64 {
    u64::from(todo) << 32 | n & u64::from(u32::MAX)
}

/// The payload's number in its todo.
pub(super) fn payload_number(key: u64) -> u64 {
    key & u64::from(u32::MAX)
}

/// Takes blocks and passages, numbered for a shelf.
pub(super) trait Filling {
    fn block(&mut self, doc: BlockDoc) -> Result<(), Error>;
    fn passage(&mut self, doc: PassageDoc) -> Result<(), Error>;
}

/// Numbers blocks of many todos from 1.
#[derive(Default)]
pub(super) struct Numbering {
    last: u32,
    /// The payloads whose passages were taken.
    known: FxHashSet<u64>,
}

impl Numbering {
    /// Hands over the next blocks, which are the ones of this range of their todo, and the passages of
    /// those of their payloads that no block before them carried.
    pub(super) fn fill(
        &mut self,
        records: &Records,
        todo: &Todo,
        docs: Vec<BlockDoc>,
        filling: &mut impl Filling,
    ) -> Result<(), Error> {
        let mut new = Vec::new();
        for mut doc in docs {
            self.last += 1;
            doc.n = self.last;
            for payload in &mut doc.payloads {
                let key = payload_key(todo.no(), payload.n);
                if self.known.insert(key) {
                    let bytes = payload.bytes.min(MAX_TEXT);
                    new.push((doc.n, PayloadText { n: payload.n, bytes }));
                }
                payload.n = key;
            }
            filling.block(doc)?;
        }
        let mut result = Ok(());
        records.passage_docs(todo, &new, |mut doc| {
            doc.meta.payload = payload_key(todo.no(), doc.meta.payload);
            result = filling.passage(doc);
            result.is_ok()
        })?;
        result
    }
}

impl Filling for MemoryIndex {
    fn block(&mut self, doc: BlockDoc) -> Result<(), Error> {
        self.push_block(doc);
        Ok(())
    }

    fn passage(&mut self, doc: PassageDoc) -> Result<(), Error> {
        self.push_passage(doc);
        Ok(())
    }
}

/// A range of blocks, as a run without its end and its origin.
pub(super) fn run_of(todo: u32, blocks: &RangeInclusive<u32>) -> Run {
    Run { todo, first: *blocks.start(), last: *blocks.end(), messages: 0, origin: 0, generation: 0 }
}
