//! The data that a search gathers about every block of a todo.

use crate::disk::Estimate;
use crate::rank::{BESIDE_OWN, Candidate, Held, PassageScore, Question};
use std::ops::Range;

/// The blocks by number.
pub(crate) struct Pool {
    entries: Vec<Entry>,
    /// Whether any of them may be in another script than the question.
    pub(crate) has_another_script: bool,
}

/// The data of one block.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) bm25: f64,
    /// Which of the question's terms its own words hold, as bits.
    own: u64,
    /// The best passage of its payloads.
    passage: PassageScore,
    /// What it adds to the BM25 of its own words.
    added: f64,
    /// The cosine of its best vector.
    pub(crate) cosine: Cosine,
    /// Whether it passes the request's filters.
    pub(crate) allowed: bool,
    /// Whether it is in another script than the question.
    pub(crate) another_script: bool,
}

/// A cosine that lies between two bounds; both are below every number if there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cosine {
    pub(crate) lower: f32,
    pub(crate) upper: f32,
}

impl Cosine {
    const NONE: Self = Self { lower: f32::NEG_INFINITY, upper: f32::NEG_INFINITY };

    pub(crate) fn exact(cosine: f32) -> Self {
        Self { lower: cosine, upper: cosine }
    }

    pub(crate) fn is_exact(self) -> bool {
        self.lower == self.upper
    }
}

impl From<Estimate> for Cosine {
    fn from(Estimate { cosine, error }: Estimate) -> Self {
        Self { lower: cosine - error, upper: cosine + error }
    }
}

impl Entry {
    pub(crate) fn candidate(&self, n: u32) -> Candidate {
        let cosine = self.cosine.upper;
        let cosine = cosine.is_finite().then_some(cosine);
        let Self { bm25, added: passage, another_script, .. } = *self;
        Candidate { n, bm25, passage, held: self.held(), cosine, another_script }
    }

    /// Returns whether it may be returned and has something to do with the question.
    pub(crate) fn is_known(&self) -> bool {
        self.allowed && (!self.held().is_nothing() || self.cosine.upper > 0.0)
    }

    /// Returns which of the question's terms it holds.
    pub(crate) fn held(&self) -> Held {
        Held { own: self.own, told: self.passage.held }
    }
}

impl Pool {
    pub(crate) fn new(blocks: usize) -> Self {
        let entry = Entry {
            bm25: 0.0,
            own: 0,
            passage: PassageScore::default(),
            added: 0.0,
            cosine: Cosine::NONE,
            allowed: true,
            another_script: false,
        };
        Self { entries: vec![entry; blocks], has_another_script: false }
    }

    pub(crate) fn entry(&self, n: u32) -> Option<&Entry> {
        self.entries.get(n.checked_sub(1)? as usize)
    }

    pub(crate) fn get(&mut self, n: u32) -> Option<&mut Entry> {
        self.entries.get_mut(n.checked_sub(1)? as usize)
    }

    /// Notes that the own words of block `n` hold the question's term at this place.
    pub(crate) fn add(&mut self, n: u32, term: usize, weight: f64) {
        if let Some(entry) = self.get(n) {
            entry.bm25 += weight;
            entry.own |= 1 << term;
        }
    }

    /// Returns the block for which a payload's passages count: of those that carry it and may be returned, the one
    /// whose own words match best, and among equals the newest. All of their words are already known.
    pub(crate) fn carrier(
        &self,
        blocks: impl Iterator<Item = u32>,
        question: &Question,
    ) -> Option<u32> {
        let known =
            blocks.filter_map(|n| Some((n, self.entry(n)?))).filter(|(_, entry)| entry.allowed);
        let exact = |entry: &Entry| question.exact(Held { own: entry.own, told: 0 });
        let best = known.max_by(|(a_n, a), (b_n, b)| {
            let by_name = exact(a).total_cmp(&exact(b));
            by_name.then_with(|| a.bm25.total_cmp(&b.bm25)).then_with(|| a_n.cmp(b_n))
        });
        best.map(|(n, _)| n)
    }

    /// Notes a passage of a payload of block `n`, if it is the best so far.
    pub(crate) fn propose(&mut self, n: u32, passage: PassageScore, question: &Question) {
        if let Some(entry) = self.get(n)
            && (entry.passage.held == 0 || question.passage_order(&passage, &entry.passage).is_lt())
        {
            entry.passage = passage;
        }
    }

    /// Lets the better of a block's own words and its best passage count. No words are added afterwards.
    pub(crate) fn take_passages(&mut self, question: &Question) {
        let named = |held: Held| question.exact(held) > 0.0;
        let is_named = |entry: &Entry| named(Held { own: entry.own, told: 0 });
        let allowed = self.entries.iter().filter(|entry| entry.allowed);
        let mut in_words: Vec<(u64, f64)> =
            allowed.filter(|e| is_named(e)).map(|entry| (entry.own, entry.bm25)).collect();
        in_words.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.total_cmp(&a.1)));
        in_words.dedup_by_key(|(own, _)| *own);
        for entry in &mut self.entries {
            let mut told = entry.passage.bm25;
            if !is_named(entry) && named(entry.held()) {
                let as_much = |(own, _): &&(u64, f64)| entry.passage.held & !own == 0;
                let best = in_words.iter().filter(as_much).map(|(_, bm25)| *bm25);
                told = told.min(best.reduce(f64::max).map_or(told, |best| BESIDE_OWN * best));
            }
            entry.added = (told - entry.bm25).max(0.0);
            entry.bm25 += entry.added;
        }
    }

    /// Treats no block as in another script than the question from now on.
    pub(crate) fn take_for_one_script(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.another_script = false);
    }

    /// Notes the cosine of one of the block's vectors.
    pub(crate) fn meet(&mut self, n: u32, cosine: Cosine) {
        if let Some(entry) = self.get(n) {
            entry.cosine.upper = entry.cosine.upper.max(cosine.upper);
            entry.cosine.lower = entry.cosine.lower.max(cosine.lower);
        }
    }

    /// Returns the best BM25 of the blocks that may be returned.
    pub(crate) fn best(&self) -> f64 {
        let allowed = self.entries.iter().filter(|entry| entry.allowed);
        allowed.map(|entry| entry.bm25).fold(0.0, f64::max)
    }

    /// Returns all blocks, in the order of their numbers.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the blocks that may be returned and have something to do with the question.
    pub(crate) fn known(&self) -> impl Iterator<Item = (u32, &Entry)> {
        (1..).zip(&self.entries).filter(|(_, entry)| entry.is_known())
    }
}

/// The data that a search gathers about every passage of a todo's payloads.
pub(crate) struct PassagePool {
    scores: Vec<PassageScore>,
}

impl PassagePool {
    pub(crate) fn new(passages: usize) -> Self {
        Self { scores: vec![PassageScore::default(); passages] }
    }

    /// Notes that the passage at this place of a payload holds the question's term.
    pub(crate) fn add(&mut self, place: u32, payload: u64, term: usize, weight: f64) {
        if let Some(score) = self.scores.get_mut(place as usize) {
            score.place = place;
            score.payload = payload;
            score.bm25 += weight;
            score.held |= 1 << term;
        }
    }

    /// Returns the passages of a range that hold any term.
    pub(crate) fn held(&self, places: Range<usize>) -> impl Iterator<Item = &PassageScore> {
        let scores = self.scores.get(places).unwrap_or_default();
        scores.iter().filter(|score| score.held != 0)
    }
}
