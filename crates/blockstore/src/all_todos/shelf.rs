//! Blocks of many todos that are searched together: a volume, or the blocks that are in none yet.

use super::Origin;
use super::catalogue::Run;
use crate::Error;
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::disk::DiskIndex;
use crate::memory_index::MemoryIndex;
use crate::omission::{NextTried, Omission};
use crate::parts::Parts;
use crate::payload_texts::PayloadText;
use crate::records::Records;
use foldback_kv::Todo;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The number of bytes searched of one payload, from its beginning: what a person looks for in a log is in its head, or
/// in what the conversation says about it.
const MAX_TEXT: u64 = 64 << 10;

/// Blocks of many todos, numbered from 1 in the order of their runs.
pub(super) struct Shelf {
    /// The volume's number; 0 for blocks that are in none.
    pub(super) number: u64,
    index: Index,
    /// The payload texts that a volume lacks, if they could be read since.
    filled_in: MemoryIndex,
    /// Which of its omissions a search tries next.
    pub(super) next_tried: NextTried,
    /// Each run and the number of its first block here.
    runs: Vec<(u32, Run)>,
    pub(super) origins: Vec<Origin>,
    pub(super) blocks: u32,
}

enum Index {
    Volume(Arc<DiskIndex>),
    Tail(Box<MemoryIndex>),
}

impl Shelf {
    pub(super) fn volume(
        number: u64,
        disk: Arc<DiskIndex>,
        runs: Vec<Run>,
        origins: Vec<Origin>,
    ) -> Self {
        Self::new(number, Index::Volume(disk), runs, origins)
    }

    /// Returns the same shelf, with the payload texts that the volume lacks if they can be read by now. That takes at
    /// most this many bytes of memory.
    pub(super) fn filled_in(
        self,
        records: &Records,
        todo: impl Fn(u32) -> Result<Option<Todo>, Error>,
        room: usize,
    ) -> Result<Self, Error> {
        let mut filled_in = MemoryIndex::starting_at(self.blocks + 1, room);
        let mut lacking: BTreeMap<u32, Vec<(u32, PayloadText)>> = BTreeMap::new();
        for omission in self.disk().map_or(&[][..], DiskIndex::omissions) {
            if let (Some(text), Some((run, _))) = (omission.payload(), self.place(omission.block)) {
                lacking.entry(run.todo).or_default().push((omission.block, text));
            }
        }
        for (no, lacking) in lacking {
            // A forgotten todo lacks nothing.
            let Some(todo) = todo(no)? else { continue };
            let omissions = records.passage_docs(&todo, &lacking, |mut doc| {
                doc.meta.payload = payload_key(no, doc.meta.payload);
                // What precedes the damage is in the volume.
                let held = self.disk().map_or(0, |disk| disk.text_end(doc.meta.payload));
                doc.meta.place.bytes.end <= held || filled_in.push_passage(doc)
            })?;
            filled_in.lack(omissions);
        }
        Ok(Self { filled_in, ..self })
    }

    /// Returns the volume as it was opened; what it lacks is looked up again.
    pub(super) fn opened_again(&self) -> Option<Self> {
        let Index::Volume(disk) = &self.index else { return None };
        let runs = self.runs().copied().collect();
        Some(Self::volume(self.number, disk.clone(), runs, self.origins.clone()))
    }

    /// Returns the parts that could not be read, and may be tried again.
    pub(super) fn open_omissions(&self) -> &[Omission] {
        match &self.index {
            Index::Volume(_) => self.filled_in.omissions(),
            Index::Tail(memory) => memory.omissions(),
        }
    }

    /// Returns the parts of its blocks that are not searched.
    pub(super) fn omissions(&self) -> impl Iterator<Item = &Omission> {
        let in_volume = self.disk().map_or(&[][..], DiskIndex::omissions);
        in_volume
            .iter()
            .filter(|omission| omission.payload().is_none())
            .chain(self.open_omissions())
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
        let filled_in = MemoryIndex::starting_at(blocks + 1, 0);
        let next_tried = NextTried::default();
        Self { number, index, filled_in, next_tried, runs: placed, origins, blocks }
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        match &self.index {
            Index::Volume(disk) => {
                Parts { disk: Some(disk), memory: self.filled_in.until(0), open: None }
            }
            Index::Tail(memory) => {
                Parts { disk: None, memory: memory.until(memory.len()), open: None }
            }
        }
    }

    /// Returns the index on disk, if it is a volume.
    pub(super) fn disk(&self) -> Option<&DiskIndex> {
        match &self.index {
            Index::Volume(disk) => Some(disk),
            Index::Tail(_) => None,
        }
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|(_, run)| run)
    }

    /// Returns the run that a block belongs to, and the number that it has in its todo.
    pub(super) fn place(&self, n: u32) -> Option<(&Run, u32)> {
        let (start, run) =
            self.runs.get(self.runs.partition_point(|(start, _)| *start <= n).checked_sub(1)?)?;
        let n = run.first + (n - start);
        (n <= run.last).then_some((run, n))
    }

    /// Hands each block to `sink`: its number here, whether the blocks before and after it here are its neighbours in
    /// its todo, and its run.
    pub(super) fn each_block(&self, mut sink: impl FnMut(u32, (bool, bool), &Run)) {
        for (start, run) in &self.runs {
            for n in run.first..=run.last {
                sink(start + (n - run.first), (n > run.first, n < run.last), run);
            }
        }
    }
}

/// Returns the name of a payload in an index of blocks of many todos: a number in one todo means another payload in the
/// next.
pub(super) fn payload_key(todo: u32, n: u64) -> u64 {
    u64::from(todo) << 32 | n & u64::from(u32::MAX)
}

/// Returns the payload's number in its todo.
pub(super) fn payload_number(key: u64) -> u64 {
    key & u64::from(u32::MAX)
}

/// Takes blocks and passages, numbered for a shelf.
pub(super) trait Filling {
    fn block(&mut self, doc: BlockDoc) -> Result<(), Error>;
    /// Returns whether there was room for it.
    fn passage(&mut self, doc: PassageDoc) -> Result<bool, Error>;
    /// Notes a part that could not be read, or found no room.
    fn lack(&mut self, omissions: Vec<Omission>);
}

/// Numbers blocks of many todos from 1.
#[derive(Default)]
pub(super) struct Numbering {
    last: u32,
    /// The payloads whose passages were taken.
    known: FxHashSet<u64>,
}

impl Numbering {
    /// Passes on the next blocks, which are the ones of this range of their todo, and the passages of those of their
    /// payloads that no block before them carried.
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
            doc.omissions.iter_mut().for_each(|omission| omission.block = self.last);
            for payload in &mut doc.payloads {
                let key = payload_key(todo.no(), payload.n);
                if self.known.insert(key) {
                    let bytes = payload.bytes.min(MAX_TEXT);
                    new.push((doc.n, PayloadText { bytes, ..*payload }));
                }
                payload.n = key;
            }
            filling.block(doc)?;
        }
        let mut result = Ok(());
        let omissions = records.passage_docs(todo, &new, |mut doc| {
            doc.meta.payload = payload_key(todo.no(), doc.meta.payload);
            match filling.passage(doc) {
                Ok(has_room) => has_room,
                Err(error) => {
                    result = Err(error);
                    false
                }
            }
        })?;
        filling.lack(omissions);
        result
    }
}

impl Filling for MemoryIndex {
    fn block(&mut self, doc: BlockDoc) -> Result<(), Error> {
        self.push_block(doc);
        Ok(())
    }

    fn passage(&mut self, doc: PassageDoc) -> Result<bool, Error> {
        Ok(self.push_passage(doc))
    }

    fn lack(&mut self, omissions: Vec<Omission>) {
        self.lack(omissions);
    }
}

/// Returns a range of blocks, as a run without its end and its origin.
pub(super) fn run_of(todo: u32, blocks: &RangeInclusive<u32>) -> Run {
    Run { todo, first: *blocks.start(), last: *blocks.end(), messages: 0, origin: 0, generation: 0 }
}
