//! Blocks searched in memory: small todos whole, of large ones what is not indexed on disk yet.

use crate::block_doc::{BlockDoc, BlockMeta, Doc, PassageDoc, PassageMeta, Place};
use crate::dot::dot;
use rustc_hash::FxHashMap;

/// So many bytes of payload text are held of one todo: 32 MiB. What is more is found once an index
/// on disk holds it.
const MAX_TEXT: u64 = 32 << 20;

/// An index that only grows at its end. A reader remembers how many blocks there were when it
/// began, and what came later does not disturb it.
#[derive(Debug, Default)]
pub(crate) struct MemoryIndex {
    /// The number of the first block.
    first: u32,
    metas: Vec<BlockMeta>,
    terms: Terms,
    /// The passages of the blocks' payloads, in the order of the blocks.
    passages: Vec<PassageMeta>,
    passage_terms: Terms,
    /// How many bytes of payload text the passages are.
    text: u64,
    groups: Vec<VectorGroup>,
    bytes: usize,
}

/// Which texts hold which terms. Texts are numbered by their place, from 0.
#[derive(Debug, Default)]
struct Terms {
    /// How many terms the texts up to and including each one hold, repeated ones counted.
    until: Vec<u64>,
    /// For each term the places of the texts that hold it, ascending, and how often.
    postings: FxHashMap<Box<str>, Vec<(u32, u32)>>,
}

impl Terms {
    /// Appends a text of `len` terms, and says about how many bytes that takes.
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

    /// How many terms the first `len` texts hold.
    fn sum(&self, len: usize) -> u64 {
        len.checked_sub(1).and_then(|last| self.until.get(last)).copied().unwrap_or(0)
    }

    /// Which of the first `len` texts hold `term`, and how often.
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
    /// An empty index whose first block will be number `first`.
    pub(crate) fn starting_at(first: u32) -> Self {
        Self { first, ..Self::default() }
    }

    /// Appends what comes next in the order of the blocks.
    pub(crate) fn push(&mut self, doc: Doc) {
        match doc {
            Doc::Block(doc) => self.push_block(doc),
            Doc::Passage(doc) => self.push_passage(doc),
        }
    }

    fn push_passage(&mut self, doc: PassageDoc) {
        let PassageDoc { meta, terms } = doc;
        self.text += meta.place.bytes.end - meta.place.bytes.start;
        self.bytes += size_of::<PassageMeta>() + self.passage_terms.push(terms, meta.len);
        self.passages.push(meta);
    }

    fn push_block(&mut self, doc: BlockDoc) {
        debug_assert_eq!(doc.n, self.first + self.len() as u32);
        let place = self.metas.len() as u32;
        self.metas.push(doc.meta);
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

    /// How many blocks it holds.
    pub(crate) fn len(&self) -> usize {
        self.metas.len()
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes of payload text it still takes.
    pub(crate) fn room_for_text(&self) -> u64 {
        MAX_TEXT.saturating_sub(self.text)
    }

    /// The first `len` blocks.
    pub(crate) fn until(&self, len: usize) -> MemoryView<'_> {
        let len = len.min(self.metas.len());
        let is_of_them = |meta: &PassageMeta| ((meta.block - self.first) as usize) < len;
        let passages = self.passages.partition_point(is_of_them);
        MemoryView { index: self, len, passages }
    }
}

/// The blocks of a [`MemoryIndex`] up to one of them.
#[derive(Clone, Copy)]
pub(crate) struct MemoryView<'a> {
    index: &'a MemoryIndex,
    len: usize,
    /// How many passages they have.
    passages: usize,
}

impl<'a> MemoryView<'a> {
    /// How many terms the blocks hold, repeated ones counted.
    pub(crate) fn terms(&self) -> u64 {
        self.index.terms.sum(self.len)
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
        self.index.terms.held(term, self.len)
    }

    /// The passages of the blocks' payloads, in order.
    pub(crate) fn passages(&self) -> &'a [PassageMeta] {
        self.index.passages.get(..self.passages).unwrap_or_default()
    }

    /// How many terms the passages hold, repeated ones counted.
    pub(crate) fn passage_terms(&self) -> u64 {
        self.index.passage_terms.sum(self.passages)
    }

    /// The passages that hold `term`, by their place, and how often.
    pub(crate) fn passage_postings(&self, term: &str) -> &'a [(u32, u32)] {
        self.index.passage_terms.held(term, self.passages)
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
