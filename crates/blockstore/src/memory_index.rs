//! Blocks searched in memory: small todos whole, of large ones what is not indexed on disk yet.

use crate::block_doc::{BlockDoc, BlockMeta, Place};
use crate::dot::dot;
use rustc_hash::FxHashMap;

/// An index that only grows at its end. A reader remembers how many blocks there were when it
/// began, and what came later does not disturb it.
#[derive(Debug, Default)]
pub(crate) struct MemoryIndex {
    /// The number of the first block.
    first: u32,
    metas: Vec<BlockMeta>,
    /// How many terms the blocks up to and including each one hold.
    terms_until: Vec<u64>,
    /// For each term the places of the blocks that hold it, ascending, and how often.
    postings: FxHashMap<Box<str>, Vec<(u32, u32)>>,
    groups: Vec<VectorGroup>,
    bytes: usize,
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
    /// An empty index whose first block will be number `first`.
    pub(crate) fn starting_at(first: u32) -> Self {
        Self { first, ..Self::default() }
    }

    /// Appends the next block.
    pub(crate) fn push(&mut self, doc: BlockDoc) {
        debug_assert_eq!(doc.n, self.first + self.len() as u32);
        let place = self.metas.len() as u32;
        self.metas.push(doc.meta);
        self.bytes += 48;
        let before = self.terms_until.last().copied().unwrap_or(0);
        self.terms_until.push(before + u64::from(doc.meta.len));
        for (term, tf) in doc.terms {
            self.bytes += 8;
            match self.postings.get_mut(&term) {
                Some(postings) => postings.push((place, tf)),
                None => {
                    self.bytes += term.len() + 80;
                    self.postings.insert(term, vec![(place, tf)]);
                }
            }
        }
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

    /// How many blocks it holds.
    pub(crate) fn len(&self) -> usize {
        self.metas.len()
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first `len` blocks.
    pub(crate) fn until(&self, len: usize) -> MemoryView<'_> {
        MemoryView { index: self, len: len.min(self.metas.len()) }
    }
}

/// The blocks of a [`MemoryIndex`] up to one of them.
#[derive(Clone, Copy)]
pub(crate) struct MemoryView<'a> {
    index: &'a MemoryIndex,
    len: usize,
}

impl<'a> MemoryView<'a> {
    /// How many terms the blocks hold, repeated ones counted.
    pub(crate) fn terms(&self) -> u64 {
        let last = self.len.checked_sub(1).and_then(|last| self.index.terms_until.get(last));
        last.copied().unwrap_or(0)
    }

    /// The blocks, each with its number.
    pub(crate) fn metas(&self) -> impl Iterator<Item = (u32, BlockMeta)> + use<'a> {
        let metas = self.index.metas.get(..self.len).unwrap_or_default();
        (self.index.first..).zip(metas.iter().copied())
    }

    /// The blocks that hold `term`, each with its number, how often it holds it and its length.
    pub(crate) fn postings(&self, term: &str) -> impl Iterator<Item = (u32, u32, u32)> + use<'a> {
        let index = self.index;
        self.held(term).iter().map(move |&(place, tf)| {
            let len = index.metas.get(place as usize).map_or(0, |meta| meta.len);
            (index.first + place, tf, len)
        })
    }

    /// How many blocks hold `term`.
    pub(crate) fn df(&self, term: &str) -> u64 {
        self.held(term).len() as u64
    }

    /// The block of this number.
    pub(crate) fn meta(&self, n: u32) -> Option<BlockMeta> {
        let place = n.checked_sub(self.index.first)? as usize;
        if place < self.len { self.index.metas.get(place).copied() } else { None }
    }

    /// How often block `n` holds `term`.
    pub(crate) fn tf(&self, term: &str, n: u32) -> u32 {
        let Some(place) = n.checked_sub(self.index.first) else { return 0 };
        let held = self.held(term);
        held.binary_search_by_key(&place, |(place, _)| *place)
            .ok()
            .and_then(|at| held.get(at))
            .map_or(0, |(_, tf)| *tf)
    }

    fn held(&self, term: &str) -> &'a [(u32, u32)] {
        let all = self.index.postings.get(term).map(Vec::as_slice).unwrap_or_default();
        let end = all.partition_point(|(place, _)| (*place as usize) < self.len);
        all.get(..end).unwrap_or_default()
    }

    /// The models whose vectors the blocks hold.
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

    /// Where the best vector of block `n` is from.
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
