//! What a search gathers about every block of a todo.

use crate::disk::Estimate;
use crate::rank::Candidate;

/// The blocks by number.
pub(crate) struct Pool {
    entries: Vec<Entry>,
}

/// What is known of one block.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) bm25: f64,
    /// Which of the question's terms it holds, as bits.
    pub(crate) held: u64,
    /// The cosine of its best vector.
    pub(crate) cosine: Cosine,
    /// Whether it passes the request's filters.
    pub(crate) allowed: bool,
}

/// A cosine that lies between two bounds; both are below every number when there is none.
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
        Candidate { n, bm25: self.bm25, held: self.held, cosine }
    }
}

impl Pool {
    pub(crate) fn new(blocks: usize) -> Self {
        let entry = Entry { bm25: 0.0, held: 0, cosine: Cosine::NONE, allowed: true };
        Self { entries: vec![entry; blocks] }
    }

    pub(crate) fn get(&mut self, n: u32) -> Option<&mut Entry> {
        self.entries.get_mut(n.checked_sub(1)? as usize)
    }

    /// Notes that block `n` holds the question's term at this place.
    pub(crate) fn add(&mut self, n: u32, term: usize, weight: f64) {
        if let Some(entry) = self.get(n) {
            entry.bm25 += weight;
            entry.held |= 1 << term;
        }
    }

    /// Notes the cosine of one of the block's vectors.
    pub(crate) fn meet(&mut self, n: u32, cosine: Cosine) {
        if let Some(entry) = self.get(n) {
            entry.cosine.upper = entry.cosine.upper.max(cosine.upper);
            entry.cosine.lower = entry.cosine.lower.max(cosine.lower);
        }
    }

    /// Adds to each block's BM25 a share of its better neighbour's.
    pub(crate) fn lend(&mut self, share: f64) {
        let mut before = 0.0;
        let mut rest = self.entries.as_mut_slice();
        while let Some((entry, after)) = rest.split_first_mut() {
            let next = after.first().map_or(0.0, |entry| entry.bm25);
            let better = f64::max(before, next);
            before = entry.bm25;
            entry.bm25 += share * better;
            rest = after;
        }
    }

    /// The best BM25 of the blocks that may be answered.
    pub(crate) fn best(&self) -> f64 {
        let allowed = self.entries.iter().filter(|entry| entry.allowed);
        allowed.map(|entry| entry.bm25).fold(0.0, f64::max)
    }

    /// The blocks that may be answered and have something to do with the question.
    pub(crate) fn known(&self) -> impl Iterator<Item = (u32, &Entry)> {
        (1..)
            .zip(&self.entries)
            .filter(|(_, entry)| entry.allowed && (entry.held != 0 || entry.cosine.upper > 0.0))
    }
}
