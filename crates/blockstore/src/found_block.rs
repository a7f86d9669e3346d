//! A found block, and what it was found by.

use crate::block_doc::{PassageMeta, Place};
use crate::disk::Damage;
use crate::parts::Parts;
use crate::pool::PassagePool;
use crate::rank::{Corpus, Held, PassageScore, Question, Ranked};
use crate::{Explanation, TermShare};
use rustc_hash::FxHashMap;

/// A block is reported with at most this many of its passages.
const MAX_PASSAGES: usize = 3;

/// A passage is reported with at most this many of the other blocks that carry its payload.
const MAX_CARRIERS: usize = 3;

/// A found block.
pub(crate) struct FoundBlock {
    pub(crate) ranked: Ranked,
    pub(crate) place: Option<Place>,
    /// Its best passages.
    pub(crate) passages: Vec<FoundPassage>,
    pub(crate) relevance: f32,
    pub(crate) exact: bool,
    pub(crate) explanation: Explanation,
}

/// A found passage.
pub(crate) struct FoundPassage {
    pub(crate) meta: PassageMeta,
    pub(crate) score: f64,
    /// Other blocks that carry its payload, the newest first.
    pub(crate) also_in: Vec<u32>,
}

/// What a block was found by.
pub(crate) struct Evidence<'a> {
    pub(crate) parts: &'a Parts<'a>,
    pub(crate) question: &'a Question,
    pub(crate) corpus: Corpus,
    pub(crate) passages: &'a PassagePool,
    /// The block that each payload's passages count for.
    pub(crate) carriers: &'a FxHashMap<u64, Option<u32>>,
}

impl Evidence<'_> {
    /// Returns the terms that the block itself holds, and their total weight.
    pub(crate) fn terms(&self, n: u32, held: Held) -> Result<(Vec<TermShare>, f64), Damage> {
        let mut terms = Vec::new();
        let mut own = 0.0;
        let len = self.parts.meta(n).map_or(0, |meta| meta.len);
        for (place, term) in self.question.terms.iter().enumerate() {
            if held.own >> place & 1 == 1 {
                let tf = self.parts.tf(&term.text, n)?;
                let weight = self.corpus.weight(term.idf, tf, len);
                own += weight;
                terms.push(TermShare {
                    term: term.text.clone(),
                    idf: term.idf as f32,
                    tf,
                    bm25: weight as f32,
                    exact: term.exact,
                });
            }
        }
        Ok((terms, own))
    }

    /// Returns the block's best passages that add something to its `own` terms.
    pub(crate) fn passages(&self, n: u32, own: f64) -> Vec<PassageScore> {
        let payloads = self.parts.payloads_of(n).iter().copied();
        let payloads = payloads.filter(|payload| self.carriers.get(payload) == Some(&Some(n)));
        let places = payloads.flat_map(|payload| self.parts.passages_of(payload));
        let scores = places.flat_map(|places| self.passages.held(places));
        let mut best: Vec<PassageScore> = scores.copied().collect();
        best.sort_by(|a, b| self.question.passage_order(a, b));
        let highest = best.first().map_or(0.0, |best| best.bm25);
        best.retain(|passage| self.question.is_told(passage, own, highest));
        best.truncate(MAX_PASSAGES);
        best
    }

    /// Returns the terms that these passages hold, with their rarity among passages.
    pub(crate) fn passage_terms(&self, passages: &[PassageScore]) -> Vec<(String, f32)> {
        let held = passages.iter().fold(0, |held, passage| held | passage.held);
        let terms = self.question.terms.iter().enumerate();
        let is_held = |(place, _): &(usize, _)| held >> place & 1 == 1;
        terms
            .filter(is_held)
            .map(|(_, term)| (term.text.clone(), term.passage_idf as f32))
            .collect()
    }

    /// Returns the passages, each with the other blocks that carry its payload.
    pub(crate) fn with_carriers(&self, n: u32, passages: &[PassageScore]) -> Vec<FoundPassage> {
        let found = |passage: &PassageScore| {
            let others = self.parts.blocks_of(passage.payload).rev().filter(|other| *other != n);
            Some(FoundPassage {
                meta: self.parts.passage(passage.place)?.clone(),
                score: passage.bm25,
                also_in: others.take(MAX_CARRIERS).collect(),
            })
        };
        passages.iter().filter_map(found).collect()
    }
}
