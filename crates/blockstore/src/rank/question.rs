//! The question, with its terms weighted.

use super::{B, EXACT, K1, NAMES, NEIGHBOUR, PassageScore, TOLD};
use crate::Ranking;
use crate::analysis::Script;
use std::cmp::Ordering;

/// The question, as ranking sees it. At most 64 terms: which of them a block holds is a set of
/// bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    pub(crate) terms: Vec<QueryTerm>,
    /// The weight of all terms of the question, also of those that no block holds.
    pub(crate) idf_sum: f64,
    passage_idf_sum: f64,
    /// The weight of words relative to meaning: 1 when no vectors take part.
    pub(crate) lexical: f64,
    /// What blocks are ordered by.
    pub(crate) ranking: Ranking,
    exact_terms: u64,
    passage_exact_terms: u64,
    exact_sum: f64,
    pub(crate) script: Script,
}

impl Question {
    /// Weighs the terms, and keeps the rarest of those that some block or passage holds.
    ///
    /// A term is exact in the words of blocks when it is a name that at most a tenth of them (or
    /// three) hold, or a rare word (at most a hundredth, or two) that alone makes up half of what the
    /// question says; and in the passages of payloads when that is so among them.
    pub(crate) fn new(
        asked: Vec<AskedTerm>,
        blocks: Corpus,
        passages: Corpus,
        lexical: f64,
        ranking: Ranking,
    ) -> Self {
        // A word that no text holds does not distinguish texts; it counts as the rarest that does.
        let sum = |corpus: Corpus, df: fn(&AskedTerm) -> u64| {
            asked.iter().map(|term| corpus.idf(df(term).max(1))).sum::<f64>()
        };
        let script = Script::of(asked.iter().map(|term| (term.text.as_str(), 1)));
        let idf_sum = sum(blocks, |term| term.df);
        let passage_idf_sum = sum(passages, |term| term.passage_df);
        let mut terms: Vec<(usize, QueryTerm)> = asked
            .into_iter()
            .enumerate()
            .filter(|(_, term)| term.df > 0 || term.passage_df > 0)
            .map(|(place, AskedTerm { text, name, df, passage_df })| {
                let idf = blocks.idf(df.max(1));
                let passage_idf = passages.idf(passage_df.max(1));
                let is_exact = |corpus: Corpus, df: u64, most_of_all: bool| {
                    let at_most = |share: u64, least: u64| df <= (corpus.texts / share).max(least);
                    df > 0 && ((name && at_most(10, 3)) || (most_of_all && at_most(100, 2)))
                };
                let exact = is_exact(blocks, df, idf * 2.0 >= idf_sum);
                let most = passage_idf * 2.0 >= passage_idf_sum;
                let passage_exact = is_exact(passages, passage_df, most);
                (place, QueryTerm { text, idf, passage_idf, name, exact, passage_exact })
            })
            .collect();
        if terms.len() > MAX_TERMS {
            let is_exact = |term: &QueryTerm| term.exact || term.passage_exact;
            let key = |(place, term): &(usize, QueryTerm)| (!is_exact(term), *place);
            terms.sort_by(|a, b| b.1.idf.total_cmp(&a.1.idf).then_with(|| key(a).cmp(&key(b))));
            terms.sort_by_key(|(_, term)| !is_exact(term));
            terms.truncate(MAX_TERMS);
            terms.sort_by_key(|(place, _)| *place);
        }
        let terms: Vec<QueryTerm> = terms.into_iter().map(|(_, term)| term).collect();
        let bits = |is_in: fn(&QueryTerm) -> bool| {
            let held = terms.iter().enumerate().filter(|(_, term)| is_in(term));
            held.fold(0, |bits, (place, _)| bits | 1 << place)
        };
        let exact_terms = bits(|term| term.exact);
        let passage_exact_terms = bits(|term| term.passage_exact);
        let mut question = Self {
            terms,
            idf_sum,
            passage_idf_sum,
            lexical,
            ranking,
            exact_terms,
            passage_exact_terms,
            exact_sum: 0.0,
            script,
        };
        question.exact_sum = question.idf_of(exact_terms | passage_exact_terms);
        question
    }

    /// Returns the share of the question's terms, by their weight, that a block holds: those of its own words, and
    /// those of its best passage.
    pub(crate) fn coverage(&self, held: Held) -> f64 {
        let Held { own, told: passage } = held;
        if self.idf_sum <= 0.0 {
            return 0.0;
        }
        if passage == 0 {
            return (self.idf_of(own) / self.idf_sum).min(1.0);
        }
        let shares = self.terms.iter().enumerate().map(|(place, term)| {
            let own = if own >> place & 1 == 1 { term.idf / self.idf_sum } else { 0.0 };
            let is_told = passage >> place & 1 == 1;
            let told = if is_told { term.passage_idf / self.passage_idf_sum } else { 0.0 };
            f64::max(own, told)
        });
        shares.sum::<f64>().min(1.0)
    }

    /// Returns a passage's BM25 on the scale of the blocks'.
    pub(crate) fn passage_scale(&self) -> f64 {
        if self.passage_idf_sum <= 0.0 { 0.0 } else { self.idf_sum / self.passage_idf_sum }
    }

    /// Returns whether a passage is reported with its block, whose own BM25 is `own` and whose best passage's is
    /// `best`, both on the scale of blocks.
    pub(crate) fn is_told(&self, passage: &PassageScore, own: f64, best: f64) -> bool {
        self.exact_told(passage) > 0.0 || passage.bm25 >= TOLD * f64::max(own, best)
    }

    /// Returns the order of a block's passages, the best first: a passage that holds an exact term precedes all others,
    /// as it does among blocks, and among equals that of the newest payload.
    pub(crate) fn passage_order(&self, a: &PassageScore, b: &PassageScore) -> Ordering {
        let exact = self.exact_told(b).total_cmp(&self.exact_told(a));
        let by_words = exact.then_with(|| b.bm25.total_cmp(&a.bm25));
        by_words.then_with(|| b.payload.cmp(&a.payload)).then_with(|| a.place.cmp(&b.place))
    }

    /// Returns the weight of a block's words relative to its meaning, if that can be compared.
    pub(crate) fn lexical_weight(&self, has_cosine: bool) -> f64 {
        match self.ranking {
            Ranking::Fused if has_cosine => self.lexical,
            Ranking::Fused | Ranking::Words => 1.0,
            Ranking::Meaning => 0.0,
        }
    }

    /// Returns whether any block may be an exact hit.
    pub(crate) fn has_names(&self) -> bool {
        self.exact_terms | self.passage_exact_terms != 0
    }

    /// Returns what exact hits add to the score of a block with these terms.
    pub(crate) fn bonus(&self, held: Held) -> f64 {
        if self.ranking != Ranking::Fused || !self.has_names() {
            return 0.0;
        }
        let names = (self.exact_terms | self.passage_exact_terms).count_ones();
        EXACT * self.exact(held) * (NAMES / f64::from(names)).min(1.0)
    }

    /// Returns how much of the better neighbour's score is added to a block's.
    pub(crate) fn neighbour(&self) -> f64 {
        if self.ranking == Ranking::Fused { NEIGHBOUR } else { 0.0 }
    }

    /// Returns the share of the question's exact terms that a block with these terms holds.
    pub(crate) fn exact(&self, held: Held) -> f64 {
        let held = held.own & self.exact_terms | held.told & self.passage_exact_terms;
        if held == 0 { 0.0 } else { self.idf_of(held) / self.exact_sum }
    }

    /// Returns the same share for a passage.
    fn exact_told(&self, passage: &PassageScore) -> f64 {
        self.exact(Held { own: 0, told: passage.held })
    }

    fn idf_of(&self, mut held: u64) -> f64 {
        let mut sum = 0.0;
        while held != 0 {
            let place = held.trailing_zeros();
            sum += self.terms.get(place as usize).map_or(0.0, |term| term.idf);
            held &= held - 1;
        }
        sum
    }
}

/// The greatest number of terms that are searched for.
pub(crate) const MAX_TERMS: usize = 64;

/// A requested term, before it is weighted.
pub(crate) struct AskedTerm {
    pub(crate) text: String,
    pub(crate) name: bool,
    /// How many blocks hold it in their own words.
    pub(crate) df: u64,
    /// How many passages of payloads hold it.
    pub(crate) passage_df: u64,
}

/// A term of the question, with its weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) text: String,
    pub(crate) idf: f64,
    /// Its rarity among the passages of payloads.
    pub(crate) passage_idf: f64,
    /// Whether it names one thing.
    pub(crate) name: bool,
    /// Whether a block whose own words hold it is what was asked for.
    pub(crate) exact: bool,
    /// Whether a block with a passage that holds it is what was asked for.
    pub(crate) passage_exact: bool,
}

impl QueryTerm {
    /// Returns how much it adds to a passage of `len` terms that holds it `tf` times.
    pub(crate) fn passage_weight(&self, passages: Corpus, tf: u32, len: u32) -> f64 {
        passages.weight(self.passage_idf, if self.name { tf.min(1) } else { tf }, len)
    }
}

/// Which of a question's terms a block holds, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// In its own words.
    pub(crate) own: u64,
    /// In its best passage.
    pub(crate) told: u64,
}

impl Held {
    pub(crate) fn is_nothing(self) -> bool {
        self.own | self.told == 0
    }
}

/// The texts that a question's terms are compared with: the blocks of the whole todo, or the passages of their
/// payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Corpus {
    /// How many texts.
    pub(crate) texts: u64,
    /// How many terms they hold, counting repetitions.
    pub(crate) terms: u64,
}

impl Corpus {
    /// Returns the weight of a term that `df` texts hold.
    pub(crate) fn idf(self, df: u64) -> f64 {
        let (n, df) = (self.texts as f64, df as f64);
        (1.0 + (n - df + 0.5) / (df + 0.5)).max(1.0).ln()
    }

    /// Returns what `tf` occurrences of a term add to a text of `len` terms.
    pub(crate) fn weight(self, idf: f64, tf: u32, len: u32) -> f64 {
        let mean = self.terms as f64 / self.texts.max(1) as f64;
        let (tf, len) = (f64::from(tf), f64::from(len));
        idf * tf * (K1 + 1.0) / (tf + K1 * (1.0 - B + B * len / mean.max(1.0)))
    }
}

/// The share of a question's words, by their weight, that means "this answers it".
pub(super) const ANSWERING_SHARE: f32 = 0.35;

/// The position of "this answers it" on the common scale, on which 0 is unrelated and 1 the same.
const ANSWERING: f32 = 0.72;

/// Maps a share of a question's words to the common scale: linear on each side of [`ANSWERING_SHARE`].
pub(crate) fn relevance_of_words(share: f32) -> f32 {
    let share = share.clamp(0.0, 1.0);
    if share <= ANSWERING_SHARE {
        share / ANSWERING_SHARE * ANSWERING
    } else {
        ANSWERING + (share - ANSWERING_SHARE) / (1.0 - ANSWERING_SHARE) * (1.0 - ANSWERING)
    }
}
