//! An index in memory: of small todos the whole, of large ones the part that is not indexed on disk yet.

use crate::Error;
use crate::analysis::Scripts;
use crate::block_doc::{BlockDoc, BlockMeta, PassageDoc, PassageMeta, Place};
use crate::carried::Carried;
use crate::disk::DiskIndex;
use crate::dot::dot;
use crate::omission::Omission;
use crate::records::Records;
use foldback_core::Block;
use foldback_kv::Todo;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::ops::{Range, RangeInclusive};

/// An index that only grows at its end. A reader remembers how many blocks there were when it began, and later ones do
/// not disturb it.
#[derive(Debug, Default)]
pub(crate) struct MemoryIndex {
    /// The number of the first block.
    first: u32,
    metas: Vec<BlockMeta>,
    pub(crate) scripts: Scripts,
    terms: Terms,
    /// The passages of the blocks' payloads, batch after batch of blocks.
    passages: Vec<PassageMeta>,
    passage_terms: Terms,
    carried: Carried,
    /// About how much memory the passages use, and how much they may use.
    passage_bytes: usize,
    passage_room: usize,
    groups: Vec<VectorGroup>,
    bytes: usize,
    /// The parts of the blocks that could not be read, or found no room.
    omissions: Vec<Omission>,
    /// Whether the parts that an index on disk lacks were looked for.
    is_filled_in: bool,
}

/// The texts that hold each term. Texts are numbered by their place, from 0.
#[derive(Debug, Default)]
struct Terms {
    /// How many terms the texts up to and including each one hold, counting repetitions.
    until: Vec<u64>,
    /// For each term the places of the texts that hold it, ascending, and how often it occurs.
    postings: FxHashMap<Box<str>, Vec<(u32, u32)>>,
}

impl Terms {
    /// Appends a text of `len` terms, and returns about how many bytes that takes.
    fn push(&mut self, terms: Vec<(Box<str>, u32)>, len: u32) -> usize {
        let place = self.until.len() as u32;
        let before = self.until.last().copied().unwrap_or(0);
        self.until.push(before + u64::from(len));
        let mut bytes = 8;
        for (term, tf) in terms {
            bytes += 8;
            match self.postings.get_mut(&term) {
                Some(postings) => postings.push((place, tf)),
                None => {
                    bytes += term.len() + 80;
                    self.postings.insert(term, vec![(place, tf)]);
                }
            }
        }
        bytes
    }

    /// Returns how many terms the first `len` texts hold.
    fn sum(&self, len: usize) -> u64 {
        len.checked_sub(1).and_then(|last| self.until.get(last)).copied().unwrap_or(0)
    }

    /// Returns which of the first `len` texts hold `term`, and how often.
    fn held(&self, term: &str, len: usize) -> &[(u32, u32)] {
        let all = self.postings.get(term).map(Vec::as_slice).unwrap_or_default();
        let end = all.partition_point(|(place, _)| (*place as usize) < len);
        all.get(..end).unwrap_or_default()
    }
}

/// All vectors of one model.
#[derive(Debug)]
struct VectorGroup {
    model_id: String,
    dim: usize,
    values: Vec<f32>,
    /// The place of each row's block, ascending.
    blocks: Vec<u32>,
    places: Vec<Place>,
}

impl MemoryIndex {
    /// Creates an empty index whose first block will be number `first`, and whose passages may take this many bytes of
    /// memory.
    pub(crate) fn starting_at(first: u32, passage_room: usize) -> Self {
        Self { first, passage_room, ..Self::default() }
    }

    /// Appends the next blocks, and those of their payloads that neither it nor `disk` holds, the newest first. Returns
    /// whether there was room for all of them.
    pub(crate) fn append(
        memory: &RwLock<Self>,
        records: &Records,
        todo: &Todo,
        disk: Option<&DiskIndex>,
        blocks: RangeInclusive<u32>,
    ) -> Result<bool, Error> {
        let mut new = Vec::new();
        records.each_block_docs(todo, blocks, |docs| {
            for doc in docs {
                let mut memory = memory.write();
                let is_new =
                    |n| !memory.carried.holds(n) && !disk.is_some_and(|disk| disk.carried.holds(n));
                let payloads = doc.payloads.iter().filter(|payload| is_new(payload.n));
                new.extend(payloads.map(|payload| (doc.n, *payload)));
                memory.push_block(doc);
            }
        })?;
        new.reverse();
        let mut has_room = true;
        let omissions = records.passage_docs(todo, &new, |doc| {
            has_room = memory.write().push_passage(doc);
            has_room
        })?;
        memory.write().lack(omissions);
        Ok(has_room)
    }

    /// Appends the payloads that `disk` lacks, if they can be read by now: once.
    pub(crate) fn fill_in(
        memory: &RwLock<Self>,
        records: &Records,
        todo: &Todo,
        disk: &DiskIndex,
    ) -> Result<(), Error> {
        if std::mem::replace(&mut memory.write().is_filled_in, true) {
            return Ok(());
        }
        let lacking = disk.omissions().iter().rev();
        let lacking: Vec<_> =
            lacking.filter_map(|omission| Some((omission.block, omission.payload()?))).collect();
        let omissions = records.passage_docs(todo, &lacking, |doc| {
            // What precedes the damage is on disk.
            doc.meta.place.bytes.end <= disk.text_end(doc.meta.payload)
                || memory.write().push_passage(doc)
        })?;
        memory.write().lack(omissions);
        Ok(())
    }

    /// Creates an index of one block that is not closed. Of its payloads, those are read that `is_known` does not
    /// report as searched already.
    pub(crate) fn of_open(
        records: &Records,
        todo: &Todo,
        block: &Block,
        passage_room: usize,
        is_known: impl Fn(u64) -> bool,
    ) -> Result<Self, Error> {
        let doc = records.open_doc(todo, block)?;
        let mut index = Self::starting_at(doc.n, passage_room);
        let new = doc.payloads.iter().filter(|payload| !is_known(payload.n));
        let mut new: Vec<_> = new.map(|payload| (doc.n, *payload)).collect();
        new.reverse();
        index.push_block(doc);
        let omissions = records.passage_docs(todo, &new, |doc| index.push_passage(doc))?;
        index.lack(omissions);
        Ok(index)
    }

    /// Notes a part that could not be read, or found no room.
    pub(crate) fn lack(&mut self, omissions: Vec<Omission>) {
        self.omissions.extend(omissions);
    }

    /// Returns what it lacks of its blocks, and of the payloads of those on disk that it was [filled in](Self::fill_in)
    /// with.
    pub(crate) fn omissions(&self) -> &[Omission] {
        &self.omissions
    }

    /// Returns whether any block carries this payload.
    pub(crate) fn carries(&self, payload: u64) -> bool {
        self.carried.holds(payload)
    }

    /// Appends a passage, and returns whether there was room for it.
    pub(crate) fn push_passage(&mut self, doc: PassageDoc) -> bool {
        if self.passage_bytes >= self.passage_room {
            return false;
        }
        let PassageDoc { meta, terms } = doc;
        self.carried.add_passage(meta.payload, self.passages.len() as u32);
        let bytes = size_of::<PassageMeta>() + self.passage_terms.push(terms, meta.len);
        self.passage_bytes += bytes;
        self.bytes += bytes;
        self.passages.push(meta);
        true
    }

    /// Appends the next block.
    pub(crate) fn push_block(&mut self, doc: BlockDoc) {
        debug_assert_eq!(doc.n, self.first + self.len() as u32);
        let place = self.metas.len() as u32;
        self.metas.push(doc.meta);
        self.scripts.add(doc.meta.script);
        self.carried.add_block(doc.n, doc.carried());
        self.omissions.extend(doc.omissions);
        self.bytes += 160 * doc.payloads.len();
        self.bytes += 40 + self.terms.push(doc.terms, doc.meta.len);
        for vectors in doc.vectors {
            self.bytes += vectors.values.len() * 4 + vectors.places.len() * 20;
            let same =
                |g: &&mut VectorGroup| g.model_id == vectors.model_id && g.dim == vectors.dim;
            let rows = vectors.places.len();
            match self.groups.iter_mut().find(same) {
                Some(group) => {
                    group.values.extend_from_slice(&vectors.values);
                    group.places.extend_from_slice(&vectors.places);
                    group.blocks.extend(std::iter::repeat_n(place, rows));
                }
                None => self.groups.push(VectorGroup {
                    model_id: vectors.model_id,
                    dim: vectors.dim,
                    values: vectors.values,
                    blocks: vec![place; rows],
                    places: vectors.places,
                }),
            }
        }
    }

    /// Returns how many blocks it holds.
    pub(crate) fn len(&self) -> usize {
        self.metas.len()
    }

    /// Returns about how much memory it uses.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many bytes its passages may take.
    pub(crate) fn passage_room(&self) -> usize {
        self.passage_room
    }

    pub(crate) fn set_passage_room(&mut self, bytes: usize) {
        self.passage_room = bytes;
    }

    /// Returns the first `len` blocks.
    pub(crate) fn until(&self, len: usize) -> MemoryView<'_> {
        let len = len.min(self.metas.len());
        // Passages that an index on disk lacks belong to earlier blocks.
        let is_of_them = |meta: &PassageMeta| {
            meta.block.checked_sub(self.first).is_none_or(|place| (place as usize) < len)
        };
        let passages = self.passages.partition_point(is_of_them);
        MemoryView { index: self, len, passages }
    }
}

/// The blocks of a [`MemoryIndex`] up to one of them.
#[derive(Clone, Copy)]
pub(crate) struct MemoryView<'a> {
    pub(crate) index: &'a MemoryIndex,
    len: usize,
    /// How many passages they have.
    passages: usize,
}

impl<'a> MemoryView<'a> {
    /// Returns how many terms the blocks hold, counting repetitions.
    pub(crate) fn terms(&self) -> u64 {
        self.index.terms.sum(self.len)
    }

    /// Returns the blocks, each with its number.
    pub(crate) fn metas(&self) -> impl Iterator<Item = (u32, BlockMeta)> + use<'a> {
        let metas = self.index.metas.get(..self.len).unwrap_or_default();
        (self.index.first..).zip(metas.iter().copied())
    }

    /// Returns the blocks that hold `term`, each with its number, how often it holds it and its length.
    pub(crate) fn postings(&self, term: &str) -> impl Iterator<Item = (u32, u32, u32)> + use<'a> {
        let index = self.index;
        self.held(term).iter().map(move |&(place, tf)| {
            let len = index.metas.get(place as usize).map_or(0, |meta| meta.len);
            (index.first + place, tf, len)
        })
    }

    /// Returns how many blocks hold `term`.
    pub(crate) fn df(&self, term: &str) -> u64 {
        self.held(term).len() as u64
    }

    /// Returns the block with this number.
    pub(crate) fn meta(&self, n: u32) -> Option<BlockMeta> {
        let place = n.checked_sub(self.index.first)? as usize;
        if place < self.len { self.index.metas.get(place).copied() } else { None }
    }

    /// Returns how often block `n` holds `term`.
    pub(crate) fn tf(&self, term: &str, n: u32) -> u32 {
        let Some(place) = n.checked_sub(self.index.first) else { return 0 };
        let held = self.held(term);
        held.binary_search_by_key(&place, |(place, _)| *place)
            .ok()
            .and_then(|at| held.get(at))
            .map_or(0, |(_, tf)| *tf)
    }

    fn held(&self, term: &str) -> &'a [(u32, u32)] {
        self.index.terms.held(term, self.len)
    }

    /// Returns the payloads of block `n`.
    pub(crate) fn payloads_of(&self, n: u32) -> &'a [u64] {
        self.index.carried.payloads_of(n)
    }

    /// Returns the blocks that carry a payload, ascending.
    pub(crate) fn blocks_of(&self, payload: u64) -> &'a [u32] {
        let all = self.index.carried.blocks_of(payload);
        let end = all.partition_point(|n| ((n - self.index.first) as usize) < self.len);
        all.get(..end).unwrap_or_default()
    }

    /// Returns the places of a payload's passages.
    pub(crate) fn passages_of(&self, payload: u64) -> Range<u32> {
        let Range { start, end } = self.index.carried.passages_of(payload);
        start..end.min(self.passages as u32)
    }

    /// Returns the passages of the blocks' payloads.
    pub(crate) fn passages(&self) -> &'a [PassageMeta] {
        self.index.passages.get(..self.passages).unwrap_or_default()
    }

    /// Returns how many terms the passages hold, counting repetitions.
    pub(crate) fn passage_terms(&self) -> u64 {
        self.index.passage_terms.sum(self.passages)
    }

    /// Returns the passages that hold `term`, by their place, and how often.
    pub(crate) fn passage_postings(&self, term: &str) -> &'a [(u32, u32)] {
        self.index.passage_terms.held(term, self.passages)
    }

    /// Returns the models whose vectors the blocks hold.
    pub(crate) fn models(&self) -> impl Iterator<Item = (&'a str, usize)> + use<'a> {
        let len = self.len;
        self.index
            .groups
            .iter()
            .filter(move |group| group.blocks.first().is_some_and(|b| (*b as usize) < len))
            .map(|group| (group.model_id.as_str(), group.dim))
    }

    /// Hands the cosine of each vector of this model to `sink`, with the number of its block.
    pub(crate) fn cosines(&self, model: &str, query: &[f32], mut sink: impl FnMut(u32, f32)) {
        for group in self.groups(model, query.len()) {
            let rows = group.values.chunks_exact(group.dim.max(1));
            for (values, block) in rows.zip(&group.blocks) {
                if *block as usize >= self.len {
                    break;
                }
                sink(self.index.first + block, dot(values, query));
            }
        }
    }

    /// Returns the source of the best vector of block `n`.
    pub(crate) fn best_place(&self, model: &str, query: &[f32], n: u32) -> Option<Place> {
        let block = n.checked_sub(self.index.first)?;
        let mut best: Option<(f32, Place)> = None;
        for group in self.groups(model, query.len()) {
            let start = group.blocks.partition_point(|b| *b < block);
            let rows = group.values.chunks_exact(group.dim.max(1)).skip(start);
            let blocks = group.blocks.iter().skip(start).take_while(|b| **b == block);
            for ((values, _), place) in rows.zip(blocks).zip(group.places.iter().skip(start)) {
                let cosine = dot(values, query);
                if best.is_none_or(|(best, _)| cosine > best) {
                    best = Some((cosine, *place));
                }
            }
        }
        best.map(|(_, place)| place)
    }

    fn groups(&self, model: &str, dim: usize) -> impl Iterator<Item = &'a VectorGroup> {
        self.index.groups.iter().filter(move |g| g.model_id == model && g.dim == dim)
    }
}
