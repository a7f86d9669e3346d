//! Texts of blocks and payloads in the form that the indexes take.

use super::scanned::{Scanned, messages_of, vectors_of};
use super::{Records, read_block};
use crate::analysis::Analyzer;
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::block_text::payload_texts;
use crate::omission::{Omission, OmissionPart};
use crate::passage::{Cutter, Passage};
use crate::payload_texts::{PayloadText, READ_BYTES};
use crate::{Error, WhyUnsearched};
use foldback_core::Block;
use foldback_kv::{Space, Todo};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread;

impl Records {
    /// Passes on the blocks of a range as [`block_docs`](Self::block_docs) returns them, page after page. While one page
    /// is analysed and taken, the next is read: on a server, reading takes about as long.
    pub(crate) fn each_block_docs(
        &self,
        todo: &Todo,
        blocks: RangeInclusive<u32>,
        mut take: impl FnMut(Vec<BlockDoc>),
    ) -> Result<(), Error> {
        let pages: Vec<_> = pages(blocks).collect();
        if let [page] = &*pages {
            take(self.block_docs(todo, page.clone())?);
            return Ok(());
        }
        let (send, read) = sync_channel(READ_AHEAD);
        thread::scope(|scope| {
            scope.spawn(move || {
                for page in pages {
                    let page = self.page(todo, page);
                    let is_last = page.is_err();
                    // Nobody receives it after an error.
                    if send.send(page).is_err() || is_last {
                        break;
                    }
                }
            });
            read.into_iter().try_for_each(|page| page.map(|page| take(page.docs())))
        })
    }

    /// Returns the blocks of a range in the form that the indexes take, in order and without a gap, each with the parts
    /// that cannot be read. The range is one of [`pages`].
    pub(crate) fn block_docs(
        &self,
        todo: &Todo,
        page: RangeInclusive<u32>,
    ) -> Result<Vec<BlockDoc>, Error> {
        Ok(self.page(todo, page)?.docs())
    }

    fn page(&self, todo: &Todo, numbers: RangeInclusive<u32>) -> Result<Page, Error> {
        let stored = self.stored(todo, numbers.clone())?;
        let vectors = self.scanned(todo, Space::Vector, stored.seqs.clone())?;
        Ok(Page { numbers, stored, vectors })
    }

    /// Returns a block that is not closed, in the form that the indexes take.
    pub(crate) fn open_doc(&self, todo: &Todo, block: &Block) -> Result<BlockDoc, Error> {
        let seqs = block.range.as_u64();
        let messages = self.scanned(todo, Space::Message, seqs.clone())?;
        let vectors = self.scanned(todo, Space::Vector, seqs)?;
        let n = block.header.block_id.n();
        Ok(block_doc(n, block, &messages, &vectors, &mut Analyzer::new()))
    }

    /// Passes on the passages of payloads, each with the first block that carries it, until `take` wants no more.
    /// Returns the payloads that cannot be read, or were not wanted: they do not hide the rest from a search.
    pub(crate) fn passage_docs(
        &self,
        todo: &Todo,
        payloads: &[(u32, PayloadText)],
        mut take: impl FnMut(PassageDoc) -> bool,
    ) -> Result<Vec<Omission>, Error> {
        let mut omissions = Vec::new();
        if self.texts.is_none() {
            return Ok(omissions);
        }
        let omission = |&(block, text): &(u32, PayloadText), from, why| Omission {
            block,
            part: OmissionPart::Payload { text, from },
            why,
        };
        let mut cut: Vec<(u32, u64, Passage)> = Vec::new();
        // Returns the payload of the passage that was not wanted.
        let mut analyse = |cut: &mut Vec<(u32, u64, Passage)>| {
            let docs = in_parallel(cut, |part| {
                let mut analyzer = Analyzer::new();
                let doc =
                    |(block, n, passage): &_| PassageDoc::new(*block, *n, passage, &mut analyzer);
                part.iter().filter_map(doc).collect()
            });
            cut.clear();
            docs.into_iter().find_map(|doc| {
                let payload = doc.meta.payload;
                (!take(doc)).then_some(payload)
            })
        };
        let mut unwanted = None;
        'payloads: for payload in payloads {
            let (block, text) = *payload;
            let mut cutter = Cutter::new();
            let mut at = 0;
            while at < text.end() {
                match self.read_text(todo, text, at) {
                    Ok(part) => {
                        at += part.len() as u64;
                        cutter.push(&part, &mut |passage| cut.push((block, text.n, passage)));
                    }
                    // What precedes the damage is searched.
                    Err(why) => {
                        omissions.push(omission(payload, at, why));
                        break;
                    }
                }
                if cut.len() >= PASSAGES {
                    unwanted = analyse(&mut cut);
                    if unwanted.is_some() {
                        break 'payloads;
                    }
                }
            }
            cutter.finish(&mut |passage| cut.push((block, text.n, passage)));
        }
        let unwanted = unwanted.or_else(|| analyse(&mut cut));
        if let Some(unwanted) = unwanted {
            let rest = payloads.iter().skip_while(|(_, text)| text.n != unwanted);
            let new =
                rest.map(|payload| omission(payload, 0, WhyUnsearched::NoRoom)).collect::<Vec<_>>();
            let is_new =
                |omission: &Omission| new.iter().any(|new| new.payload() == omission.payload());
            omissions.retain(|omission| !is_new(omission));
            omissions.extend(new);
        }
        Ok(omissions)
    }

    /// Returns bytes of a payload's text from a place before its end on: at least one.
    pub(crate) fn read_text(
        &self,
        todo: &Todo,
        text: PayloadText,
        from: u64,
    ) -> Result<Vec<u8>, WhyUnsearched> {
        let texts = self.texts.as_ref().ok_or(WhyUnsearched::Missing)?;
        let part = texts.read(todo, text.n, from..text.end().min(from + READ_BYTES))?;
        if part.is_empty() { Err(WhyUnsearched::Damaged) } else { Ok(part) }
    }

    /// Returns about how many passages the payloads of the blocks have for which `is_new` holds; 0 if they are not
    /// read.
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
                let texts = payload_texts(&messages_of(0, block, &messages, &mut Vec::new()));
                count +=
                    texts.iter().filter(|t| is_new(t.n)).map(PayloadText::passages).sum::<u64>();
            }
        }
        Ok(count)
    }

    /// Returns the blocks of a range and their messages, as far as they can be read.
    pub(super) fn stored(&self, todo: &Todo, page: RangeInclusive<u32>) -> Result<Stored, Error> {
        let numbers = u64::from(*page.start())..u64::from(*page.end()) + 1;
        let Scanned { found, mut damaged } = self.scanned(todo, Space::Block, numbers)?;
        let mut blocks = BTreeMap::new();
        for (n, bytes) in found {
            match read_block(todo, n, &bytes) {
                Ok(block) => drop(blocks.insert(n, block)),
                Err(_) => drop(damaged.insert(n)),
            }
        }
        let firsts = blocks.values().map(|block: &Block| block.range.first().0);
        let lasts = blocks.values().map(|block| block.range.last().0 + 1);
        let seqs = firsts.min().unwrap_or(0)..lasts.max().unwrap_or(0);
        let messages = self.scanned(todo, Space::Message, seqs.clone())?;
        Ok(Stored { blocks, damaged, seqs, messages })
    }
}

/// The records of some blocks.
pub(super) struct Stored {
    blocks: BTreeMap<u64, Block>,
    /// The numbers of the blocks that are damaged.
    damaged: BTreeSet<u64>,
    /// The messages from the first to the last of them.
    seqs: Range<u64>,
    messages: Scanned,
}

/// The records of a page of blocks, with the vectors of their messages.
struct Page {
    numbers: RangeInclusive<u32>,
    stored: Stored,
    vectors: Scanned,
}

impl Page {
    fn docs(self) -> Vec<BlockDoc> {
        let Self { numbers, stored: Stored { blocks, damaged, messages, .. }, vectors } = self;
        let doc = |analyzer: &mut Analyzer, n: u32| match blocks.get(&u64::from(n)) {
            Some(block) => block_doc(n, block, &messages, &vectors, analyzer),
            None => {
                let is_damaged = damaged.contains(&u64::from(n));
                let why = if is_damaged { WhyUnsearched::Damaged } else { WhyUnsearched::Missing };
                let omissions = vec![Omission { block: n, part: OmissionPart::Block, why }];
                BlockDoc { omissions, ..BlockDoc::unreadable(n) }
            }
        };
        let numbers: Vec<u32> = numbers.collect();
        in_parallel(&numbers, |part| {
            let mut analyzer = Analyzer::new();
            part.iter().map(|n| doc(&mut analyzer, *n)).collect()
        })
    }
}

/// Returns a block in the form that the indexes take, with the parts that cannot be read.
fn block_doc(
    n: u32,
    block: &Block,
    messages: &Scanned,
    vectors: &Scanned,
    analyzer: &mut Analyzer,
) -> BlockDoc {
    let mut omissions = Vec::new();
    let messages = messages_of(n, block, messages, &mut omissions);
    let vectors = vectors_of(n, block, vectors, &mut omissions);
    BlockDoc { omissions, ..BlockDoc::new(n, block, &messages, &vectors, analyzer) }
}

/// This many blocks are read at once when an index is built.
const PAGE: u32 = 256;

/// This many pages wait to be analysed, beside the one that is being read.
const READ_AHEAD: usize = 2;

/// This many passages are analysed at once.
const PASSAGES: usize = 1_024;

/// Fewer texts than this are not worth another thread.
const WORTH_A_THREAD: usize = 16;

/// Returns a range of blocks in parts that are read at once.
pub(crate) fn pages(blocks: RangeInclusive<u32>) -> impl Iterator<Item = RangeInclusive<u32>> {
    let (mut from, last) = (Some(*blocks.start()), *blocks.end());
    std::iter::from_fn(move || {
        let first = from.filter(|from| *from <= last)?;
        let to = last.min(first.saturating_add(PAGE - 1));
        from = to.checked_add(1);
        Some(first..=to)
    })
}

/// Does the work on parts of `items` in parallel, and returns the results in order.
///
/// The threads are its own, and not those of a shared pool: a pool's thread that waits takes up other work meanwhile,
/// and when that searches the same todo it would wait for itself.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let worth = items.len() / WORTH_A_THREAD;
    if worth < 2 {
        return work(items);
    }
    // Counting cores reads the files of control groups, which takes longer than a search of a small todo.
    let threads = thread::available_parallelism().map_or(1, usize::from).min(worth);
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
