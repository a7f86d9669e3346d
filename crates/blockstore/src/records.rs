//! The truth: messages, blocks, vectors and session states, read and written as records.

use crate::analysis::Analyzer;
use crate::block_doc::{BlockDoc, PassageDoc};
use crate::block_text::payload_texts;
use crate::passage::{Cutter, Passage};
use crate::payload_texts::{MAX_TEXT, PayloadText, PayloadTexts, READ_BYTES};
use crate::vectors::{self, MessageVectors};
use crate::{Commit, Error, Head};
use foldback_core::{Block, Offload, PayloadRef, StoredMessage};
use foldback_kv::{Batch, Expect, Key, Kv, Space, Todo};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

/// So many blocks are read at once when an index is built.
const PAGE: u32 = 256;

/// So many passages are analysed at once.
const PASSAGES: usize = 1_024;

/// Fewer texts than this are not worth another thread.
const WORTH_A_THREAD: usize = 16;

/// What other crates may add to a commit. Grants alone concern two todos.
const OTHERS: [Space; 5] =
    [Space::Payload, Space::PayloadBytes, Space::PayloadHash, Space::Grant, Space::Plan];

/// The records of all todos; each method reads those of one.
#[derive(Clone)]
pub(crate) struct Records {
    kv: Arc<dyn Kv>,
    texts: Option<Arc<dyn PayloadTexts>>,
}

impl Records {
    pub(crate) fn new(kv: Arc<dyn Kv>, texts: Option<Arc<dyn PayloadTexts>>) -> Self {
        Self { kv, texts }
    }

    pub(crate) fn changed(&self) -> Result<u64, Error> {
        self.kv.changed().map_err(Error::Kv)
    }

    pub(crate) fn head(&self, todo: &Todo) -> Result<Head, Error> {
        let head = self.kv.head(todo.no()).map_err(|error| Error::of(todo.id(), error))?;
        Ok(Head::from_number(head))
    }

    /// Checks the commit, and writes it in one transaction.
    pub(crate) fn commit(&self, commit: Commit<'_>, model_id: &str) -> Result<(), Error> {
        let todo = commit.todo;
        let refused = |why: String| Error::Refused { todo: todo.id().clone(), why };
        let head = commit.head;
        let next = head.after(commit.messages.len());
        let mut put = Vec::with_capacity(2 * commit.messages.len() + commit.blocks.len() + 1);
        for (seq, message) in (head.messages..).zip(commit.messages) {
            let bytes = rmp_serde::to_vec(&message.stored)
                .map_err(|error| refused(format!("message {seq} cannot be written: {error}")))?;
            put.push((key(Space::Message, todo, seq), bytes));
            if !message.vectors.is_empty() {
                let bytes = vectors::encode(model_id, &message.vectors)
                    .map_err(|why| refused(format!("the vectors of message {seq}: {why}")))?;
                put.push((key(Space::Vector, todo, seq), bytes));
            }
        }
        self.check_blocks(&commit, next.messages)?;
        for block in commit.blocks {
            let n = block.header.block_id.n();
            let bytes = rmp_serde::to_vec(block)
                .map_err(|error| refused(format!("block {n} cannot be written: {error}")))?;
            put.push((key(Space::Block, todo, u64::from(n)), bytes));
        }
        put.push((key(Space::Session, todo, 0), commit.session));
        let extra = commit.extra.iter().map(|(key, _)| (key.space, key.todo));
        let deleted = commit.delete.iter().map(|delete| (delete.space, delete.todo));
        for (space, no) in extra.chain(deleted) {
            if no != todo.no() && space != Space::Grant {
                let own = todo.no();
                return Err(refused(format!("it is for todo number {own} and writes to {no}")));
            }
            if !OTHERS.contains(&space) {
                return Err(refused(format!("its additional records are of the kind {space}")));
            }
        }
        put.extend(commit.extra);
        let expect =
            Some(Expect { todo: todo.no(), head: head.to_number(), next: next.to_number() });
        self.write(todo, Batch { expect, put, delete: commit.delete })
    }

    /// Blocks follow each other without a gap, and end before the open tail.
    fn check_blocks(&self, commit: &Commit<'_>, next: u64) -> Result<(), Error> {
        let Some(first) = commit.blocks.first() else { return Ok(()) };
        let todo = commit.todo;
        let last = self.last_block(todo)?;
        let (mut n, mut seq) = match &last {
            Some(last) => (last.header.block_id.n(), last.range.last().0 + 1),
            None => (0, 0),
        };
        if first.header.block_id.n() <= n {
            // Another process has closed this block meanwhile, without a message.
            let found = self.head(todo)?;
            return Err(Error::conflict(todo.id(), commit.head, found));
        }
        for block in commit.blocks {
            let id = &block.header.block_id;
            n += 1;
            let wrong = if id.n() != n
                || id.todo() != todo.id()
                || block.header.todo_id != *todo.id()
            {
                format!("block number {n} of {} was expected, and it is {id}", todo.id())
            } else if block.range.first().0 != seq {
                format!(
                    "block {id} begins at message {}, and {seq} was expected",
                    block.range.first()
                )
            } else if block.range.last().0 >= next {
                format!("block {id} ends at message {}, and there are {next}", block.range.last())
            } else {
                seq = block.range.last().0 + 1;
                continue;
            };
            return Err(Error::Refused { todo: todo.id().clone(), why: wrong });
        }
        Ok(())
    }

    pub(crate) fn session(&self, todo: &Todo) -> Result<Option<Vec<u8>>, Error> {
        self.get(todo, Space::Session, 0)
    }

    /// The messages of a range, as far as they are recorded, without a gap.
    pub(crate) fn messages(
        &self,
        todo: &Todo,
        range: Range<u64>,
    ) -> Result<Vec<StoredMessage>, Error> {
        let range = range.start..range.end.min(self.head(todo)?.messages);
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.scan(todo, Space::Message, range.clone(), usize::MAX)?;
        let mut messages = Vec::with_capacity(found.len());
        let mut found = found.into_iter();
        for seq in range {
            match found.next() {
                Some((n, bytes)) if n == seq => {
                    messages.push(read(todo, key(Space::Message, todo, seq), &bytes)?);
                }
                _ => return Err(missing(todo, key(Space::Message, todo, seq))),
            }
        }
        Ok(messages)
    }

    pub(crate) fn block(&self, todo: &Todo, n: u32) -> Result<Option<Block>, Error> {
        let bytes = self.get(todo, Space::Block, u64::from(n))?;
        bytes.map(|bytes| read(todo, key(Space::Block, todo, u64::from(n)), &bytes)).transpose()
    }

    /// The record of a block as it stands in the store.
    pub(crate) fn block_bytes(&self, todo: &Todo, n: u32) -> Result<Option<Vec<u8>>, Error> {
        self.get(todo, Space::Block, u64::from(n))
    }

    pub(crate) fn blocks(
        &self,
        todo: &Todo,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Block>, Error> {
        let from = u64::from(after) + 1;
        let found = self.scan(todo, Space::Block, from..Key::N_END, limit)?;
        let mut blocks = Vec::with_capacity(found.len());
        for ((n, bytes), expected) in found.into_iter().zip(from..) {
            if n != expected {
                return Err(missing(todo, key(Space::Block, todo, expected)));
            }
            blocks.push(read(todo, key(Space::Block, todo, n), &bytes)?);
        }
        Ok(blocks)
    }

    pub(crate) fn last_block(&self, todo: &Todo) -> Result<Option<Block>, Error> {
        match self.last_block_bytes(todo)? {
            Some((n, bytes)) => read(todo, key(Space::Block, todo, n), &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// The number of the last block; 0 when there is none.
    pub(crate) fn last_block_n(&self, todo: &Todo) -> Result<u32, Error> {
        match self.last_block_bytes(todo) {
            Ok(last) => Ok(last.map_or(0, |(n, _)| n as u32)),
            // A damaged last block is still the last.
            Err(Error::Corrupt { key, .. }) => Ok(key.n as u32),
            Err(error) => Err(error),
        }
    }

    fn last_block_bytes(&self, todo: &Todo) -> Result<Option<(u64, Vec<u8>)>, Error> {
        self.kv.last(Space::Block, todo.no()).map_err(|error| Error::of(todo.id(), error))
    }

    pub(crate) fn vectors(&self, todo: &Todo, seq: u64) -> Result<Option<MessageVectors>, Error> {
        let Some(bytes) = self.get(todo, Space::Vector, seq)? else { return Ok(None) };
        let (todo, key) = (todo.id().clone(), key(Space::Vector, todo, seq));
        let decoded = vectors::decode(&bytes);
        decoded.map(Some).map_err(|detail| Error::Corrupt { todo, key, detail })
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

    /// The blocks of a range and their messages, as far as they can be read.
    fn stored(&self, todo: &Todo, page: RangeInclusive<u32>) -> Result<Stored, Error> {
        let numbers = u64::from(*page.start())..u64::from(*page.end()) + 1;
        let blocks: BTreeMap<u64, Block> = self
            .scan_around(todo, Space::Block, numbers)?
            .into_iter()
            .filter_map(|(n, bytes)| Some((n, rmp_serde::from_slice(&bytes).ok()?)))
            .collect();
        let firsts = blocks.values().map(|block: &Block| block.range.first().0);
        let lasts = blocks.values().map(|block| block.range.last().0 + 1);
        let seqs = firsts.min().unwrap_or(0)..lasts.max().unwrap_or(0);
        let messages = self.scan_around(todo, Space::Message, seqs.clone())?.into_iter().collect();
        Ok(Stored { blocks, seqs, messages })
    }

    /// How the messages of a block refer to the payloads that they carry.
    pub(crate) fn payload_refs(
        &self,
        todo: &Todo,
        block: &Block,
    ) -> Result<Vec<PayloadRef>, Error> {
        let found = self.scan_around(todo, Space::Message, block.range.as_u64())?;
        let messages = messages_of(block, &found.into_iter().collect());
        let offloads = messages.iter().flat_map(|stored| &stored.offloads);
        Ok(offloads.map(Offload::reference).collect())
    }

    /// The first record from `n` on, if any can be read.
    pub(crate) fn scan_around_one(
        &self,
        todo: &Todo,
        space: Space,
        n: u64,
    ) -> Result<Option<(u64, Vec<u8>)>, Error> {
        match self.scan(todo, space, n..Key::N_END, 1) {
            Ok(found) => Ok(found.into_iter().next()),
            Err(Error::Corrupt { key, .. }) => Ok(Some((key.n, Vec::new()))),
            Err(error) => Err(error),
        }
    }

    /// The records of a range that can be read.
    pub(crate) fn scan_around(
        &self,
        todo: &Todo,
        space: Space,
        range: Range<u64>,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let mut found = Vec::new();
        let mut from = range.start;
        while from < range.end {
            match self.scan(todo, space, from..range.end, usize::MAX) {
                Ok(rest) => {
                    found.extend(rest);
                    break;
                }
                Err(Error::Corrupt { key, .. }) if (from..range.end).contains(&key.n) => {
                    if from < key.n {
                        found.extend(self.scan(todo, space, from..key.n, usize::MAX)?);
                    }
                    from = key.n + 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    pub(crate) fn scan(
        &self,
        todo: &Todo,
        space: Space,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.kv.scan(space, todo.no(), range, limit).map_err(|error| Error::of(todo.id(), error))
    }

    pub(crate) fn get(&self, todo: &Todo, space: Space, n: u64) -> Result<Option<Vec<u8>>, Error> {
        self.kv.get(key(space, todo, n)).map_err(|error| Error::of(todo.id(), error))
    }

    pub(crate) fn write(&self, todo: &Todo, batch: Batch) -> Result<(), Error> {
        self.kv.commit(batch).map_err(|error| Error::of(todo.id(), error))
    }
}

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

/// The records of some blocks.
struct Stored {
    blocks: BTreeMap<u64, Block>,
    /// The messages from the first to the last of them.
    seqs: Range<u64>,
    messages: BTreeMap<u64, Vec<u8>>,
}

/// The messages of a block that can be read.
fn messages_of(block: &Block, records: &BTreeMap<u64, Vec<u8>>) -> Vec<StoredMessage> {
    let records = records.range(block.range.as_u64());
    records.filter_map(|(_, bytes)| rmp_serde::from_slice(bytes).ok()).collect()
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

pub(crate) fn key(space: Space, todo: &Todo, n: u64) -> Key {
    Key { space, todo: todo.no(), n }
}

pub(crate) fn read<T: DeserializeOwned>(todo: &Todo, key: Key, bytes: &[u8]) -> Result<T, Error> {
    rmp_serde::from_slice(bytes).map_err(|error| Error::Corrupt {
        todo: todo.id().clone(),
        key,
        detail: format!("it cannot be read: {error}"),
    })
}

fn missing(todo: &Todo, key: Key) -> Error {
    Error::Corrupt {
        todo: todo.id().clone(),
        key,
        detail: "it is missing, and later ones are there".to_owned(),
    }
}
