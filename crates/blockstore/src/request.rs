//! The request of a search.

use foldback_core::{BlockType, Embedder, Timestamp};

/// A question to one todo, and how it is to be answered. Invalid values are replaced by the nearest valid ones: a
/// question comes from a model, and an answer serves it better than an error.
#[derive(Clone, Copy)]
pub struct SearchRequest<'a> {
    pub(crate) query: &'a str,
    pub(crate) vector: Option<(&'a dyn Embedder, &'a [f32])>,
    /// The factor that brings a cosine of this question to the scale of the embedder's cosines.
    pub(crate) likeness: f32,
    pub(crate) k: usize,
    pub(crate) block_type: Option<BlockType>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) cutoff: Option<f32>,
    pub(crate) lexical_weight: f64,
    pub(crate) ranking: Ranking,
}

/// What hits are ordered by. The parts of [`Fused`](Self::Fused) can be requested separately, to see what each of them
/// finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ranking {
    /// Words and meaning together, with the neighbours' share and exact hits first. Intended for use.
    #[default]
    Fused,
    /// BM25 of a block's own words, or of its best passage, and nothing else.
    Words,
    /// The cosine of a block's best vector, and nothing else. Without vectors nothing is found.
    Meaning,
}

impl<'a> SearchRequest<'a> {
    /// The greatest number of hits.
    pub const MAX_K: usize = 200;

    /// A longer question is read up to this many bytes.
    pub const MAX_QUERY_BYTES: usize = 16 * 1024;

    /// The weight of words relative to meaning unless set otherwise.
    pub const LEXICAL_WEIGHT: f32 = crate::rank::LEXICAL_WEIGHT as f32;

    /// Asks for the three best blocks, by words alone.
    #[must_use]
    pub fn new(query: &'a str) -> Self {
        Self {
            query,
            vector: None,
            likeness: 1.0,
            k: 3,
            block_type: None,
            since: None,
            until: None,
            cutoff: None,
            lexical_weight: crate::rank::LEXICAL_WEIGHT,
            ranking: Ranking::Fused,
        }
    }

    /// Returns the question.
    #[must_use]
    pub fn query(&self) -> &'a str {
        self.query
    }

    /// Searches by meaning too: `vector` is the question's vector from `embedder`. It is compared only with vectors of
    /// the same model id. The embedder is asked for its id and its scale; it is not run.
    #[must_use]
    pub fn vector(mut self, embedder: &'a dyn Embedder, vector: &'a [f32]) -> Self {
        self.vector = Some((embedder, vector));
        self.likeness = embedder.answering() / embedder.answering_to(self.query).max(0.01);
        self
    }

    /// Returns at most this many hits: 1 to [`MAX_K`](Self::MAX_K).
    #[must_use]
    pub fn k(mut self, k: usize) -> Self {
        self.k = k.clamp(1, Self::MAX_K);
        self
    }

    /// Returns only blocks of this type.
    #[must_use]
    pub fn block_type(mut self, block_type: impl Into<Option<BlockType>>) -> Self {
        self.block_type = block_type.into();
        self
    }

    /// Returns only blocks that began at this time or later.
    #[must_use]
    pub fn since(mut self, since: impl Into<Option<Timestamp>>) -> Self {
        self.since = since.into();
        self
    }

    /// Returns only blocks that began at this time or earlier.
    #[must_use]
    pub fn until(mut self, until: impl Into<Option<Timestamp>>) -> Self {
        self.until = until.into();
        self
    }

    /// Leaves out blocks whose [`relevance`](crate::Hit::relevance) is lower, except exact hits.
    #[must_use]
    pub fn cutoff(mut self, cutoff: impl Into<Option<f32>>) -> Self {
        self.cutoff = cutoff.into().filter(|cutoff| !cutoff.is_nan());
        self
    }

    /// Sets the weight of words relative to meaning, from 0 (meaning alone) to 1 (words alone). The default is
    /// [`LEXICAL_WEIGHT`](Self::LEXICAL_WEIGHT). Only [`Ranking::Fused`] uses it.
    #[must_use]
    pub fn lexical_weight(mut self, weight: f32) -> Self {
        if !weight.is_nan() {
            self.lexical_weight = f64::from(weight.clamp(0.0, 1.0));
        }
        self
    }

    /// Sets what hits are ordered by. The default is [`Ranking::Fused`].
    #[must_use]
    pub fn ranking(mut self, ranking: Ranking) -> Self {
        self.ranking = ranking;
        self
    }
}
