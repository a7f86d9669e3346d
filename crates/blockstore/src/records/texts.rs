//! Texts of blocks and payloads as the indexes take them.

use super::{Records, messages_of, read_block};
use crate::Error;
use crate::analysis::Analyzer;
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::block_text::payload_texts;
use crate::passage::{Cutter, Passage};
use crate::payload_texts::{MAX_TEXT, PayloadText, READ_BYTES};
use crate::vectors;
use crate::vectors::MessageVectors;
use foldback_core::Block;
use foldback_kv::{Space, Todo};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::panic::resume_unwind;
use std::thread;

impl Records {
    /// The blocks of a range as the indexes take them, in order and without a gap. What cannot be read
    /// is passed over. The range is one of [`pages`].
    pub(crate) fn block_docs(
        &self,
        todo: &Todo,
        page: RangeInclusive<u32>,
    ) -> Result<Vec<BlockDoc>, Error> {
        let Stored { blocks, seqs, messages } = self.stored(todo, page.clone())?;
        let vectors: BTreeMap<u64, Vec<u8>> =
            self.scan_around(todo, Space::Vector, seqs)?.into_iter().collect();
        let doc = |analyzer: &mut Analyzer, n: u32| {
            let Some(block) = blocks.get(&u64::from(n)) else { return BlockDoc::unreadable(n) };
            let vectors: Vec<(u64, MessageVectors)> = vectors
                .range(block.range.as_u64())
                .filter_map(|(seq, bytes)| Some((*seq, vectors::decode(bytes).ok()?)))
                .collect();
            BlockDoc::new(n, block, &messages_of(block, &messages), &vectors, analyzer)
        };
        let numbers: Vec<u32> = page.collect();
        Ok(in_parallel(&numbers, |part| {
            let mut analyzer = Analyzer::new();
            part.iter().map(|n| doc(&mut analyzer, *n)).collect()
        }))
    }

    /// A block that is not closed, as the indexes take those that are.
    pub(crate) fn open_doc(&self, todo: &Todo, block: &Block) -> Result<BlockDoc, Error> {
        let seqs = block.range.as_u64();
        let messages = self.scan_around(todo, Space::Message, seqs.clone())?.into_iter().collect();
        let vectors = self.scan_around(todo, Space::Vector, seqs)?;
        let vectors: Vec<(u64, MessageVectors)> = vectors
            .into_iter()
            .filter_map(|(seq, bytes)| Some((seq, vectors::decode(&bytes).ok()?)))
            .collect();
        let n = block.header.block_id.n();
        let messages = messages_of(block, &messages);
        Ok(BlockDoc::new(n, block, &messages, &vectors, &mut Analyzer::new()))
    }

    /// The passages of payloads, each given with the first block that carries it, until `take` says
    /// that it wants no more. What is missing or damaged is passed over, so that it does not hide the
    /// rest from a search.
    pub(crate) fn passage_docs(
        &self,
        todo: &Todo,
        payloads: &[(u32, PayloadText)],
        mut take: impl FnMut(PassageDoc) -> bool,
    ) -> Result<(), Error> {
        let Some(texts) = &self.texts else { return Ok(()) };
        let mut cut: Vec<(u32, u64, Passage)> = Vec::new();
        let mut analyse = |cut: &mut Vec<(u32, u64, Passage)>| {
            let docs = in_parallel(cut, |part| {
                let mut analyzer = Analyzer::new();
                let doc =
                    |(block, n, passage): &_| PassageDoc::new(*block, *n, passage, &mut analyzer);
                part.iter().filter_map(doc).collect()
            });
            cut.clear();
            docs.into_iter().all(&mut take)
        };
        for &(block, PayloadText { n, bytes }) in payloads {
            let mut cutter = Cutter::new();
            let end = bytes.min(MAX_TEXT);
            let mut at = 0;
            while at < end {
                let part = texts.read(todo, n, at..end.min(at + READ_BYTES));
                let part = part.map_err(|source| {
                    let todo = todo.id().clone();
                    Error::Payload { todo, n, source }
                })?;
                // What stands before the damage is searched.
                let Some(part) = part.filter(|part| !part.is_empty()) else { break };
                at += part.len() as u64;
                cutter.push(&part, &mut |passage| cut.push((block, n, passage)));
                if cut.len() >= PASSAGES && !analyse(&mut cut) {
                    return Ok(());
                }
            }
            cutter.finish(&mut |passage| cut.push((block, n, passage)));
        }
        analyse(&mut cut);
        Ok(())
    }

    /// About how many passages the payloads of the blocks have that `is_new` tells are not known; 0
    /// where they are not read.
    pub(crate) fn count_passages(
        &self,
        todo: &Todo,
        blocks: RangeInclusive<u32>,
        mut is_new: impl FnMut(u64) -> bool,
    ) -> Result<u64, Error> {
        if self.texts.is_none() {
            return Ok(0);
        }
        let mut count = 0;
        for page in pages(blocks) {
            let Stored { blocks, messages, .. } = self.stored(todo, page)?;
            for block in blocks.values() {
                let texts = payload_texts(&messages_of(block, &messages));
                count +=
                    texts.iter().filter(|t| is_new(t.n)).map(PayloadText::passages).sum::<u64>();
            }
        }
        Ok(count)
    }

    /// The blocks of a range and their messages, as far as they can be read.
    pub(super) fn stored(&self, todo: &Todo, page: RangeInclusive<u32>) -> Result<Stored, Error> {
        let numbers = u64::from(*page.start())..u64::from(*page.end()) + 1;
        let blocks: BTreeMap<u64, Block> = self
            .scan_around(todo, Space::Block, numbers)?
            .into_iter()
            .filter_map(|(n, bytes)| Some((n, read_block(todo, n, &bytes).ok()?)))
            .collect();
        let firsts = blocks.values().map(|block: &Block| block.range.first().0);
        let lasts = blocks.values().map(|block| block.range.last().0 + 1);
        let seqs = firsts.min().unwrap_or(0)..lasts.max().unwrap_or(0);
        let messages = self.scan_around(todo, Space::Message, seqs.clone())?.into_iter().collect();
        Ok(Stored { blocks, seqs, messages })
    }
}

/// The records of some blocks.
pub(super) struct Stored {
    blocks: BTreeMap<u64, Block>,
    /// The messages from the first to the last of them.
    seqs: Range<u64>,
    messages: BTreeMap<u64, Vec<u8>>,
}

/// So many blocks are read at once when an index is built.
const PAGE: u32 = 256;

/// So many passages are analysed at once.
const PASSAGES: usize = 1_024;

/// Fewer texts than this are not worth another thread.
const WORTH_A_THREAD: usize = 16;

/// A range of blocks in parts that are read at once.
pub(crate) fn pages(blocks: RangeInclusive<u32>) -> impl Iterator<Item = RangeInclusive<u32>> {
    let (mut from, last) = (Some(*blocks.start()), *blocks.end());
    std::iter::from_fn(move || {
        let first = from.filter(|from| *from <= last)?;
        let to = last.min(first.saturating_add(PAGE - 1));
        from = to.checked_add(1);
        Some(first..=to)
    })
}

/// Does the work on parts of `items` beside each other, and gives the results in order.
///
/// These are threads of its own, and not those of a shared pool: a pool's thread that waits takes
/// up other work meanwhile, and when that searches the same todo it would wait for itself.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(items.len() / WORTH_A_THREAD);
    if threads < 2 {
        return work(items);
    }
    thread::scope(|scope| {
        let work = &work;
        let parts = items.chunks(items.len().div_ceil(threads));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let done = running.into_iter().map(|part| part.join());
        done.flat_map(|part| part.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
