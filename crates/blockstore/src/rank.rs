//! The one function that orders blocks, whatever proposed them.
//!
//! Words count by BM25 with the todo's own statistics (Robertson and Zaragoza, "The Probabilistic
//! Relevance Framework", 2009; `k1` 1.2, `b` 0.75). Meaning counts by the cosine of the question and the best vector of
//! a block. The two are combined by score:
//!
//! ```text
//! base  = 0.3 * bm25 / best bm25 + 0.7 * cosine
//! near  = base + 0.3 * base of the better neighbour
//! score = near + recent * (best near - near) + 0.3 * dated + 2 * exact
//! ```
//!
//! - A block often answers what is asked in the one before it, so a part of the better neighbour's score is added to a
//!   block's own.
//! - `recent` is a share that falls with age, of blocks in which tools were called; see
//!   [`standing`](crate::standing). Work continues with what it has just seen. A block comes nearer to
//!   the best one by it and never before it, so that a question which says what it means is answered
//!   as before.
//! - `dated` is how near a block's time is to the days that the question names ([`dates`](crate::dates)).
//! - `exact` is 0, or 1 for a block that holds a name of the question whole (less when it holds one of
//!   several): no sum of the other parts comes above that, unless the question names more than four.
//!
//! Equal scores go to the newer block. Blocks in another script than the question's have an order of their own, and
//! are placed among the others ([`other_scripts`]).
//!
//! Recall at 1, 5 and 10 on LoCoMo (851 questions of categories 1-4) and BFCL memory (105 questions), at 5 and 10 on
//! twenty QMSum meetings (131 questions), all in foldback's own blocks with the built-in embedder; and how often one of
//! three hits brings what an agent's next call needs (459 values), with the user's last words and the names of tool and
//! argument as the question. It was measured while these parts were chosen, on the blocks and the table of that day,
//! and shows what each part adds; `foldback bench retrieval` measures their joint result:
//!
//! ```text
//!                                       LoCoMo           BFCL             QMSum      values
//! words alone                           .535 .761 .816   .786 1.00 1.00   .385 .489   .667
//! meaning alone                         .374 .622 .731   .652 .948 1.00   .328 .474   .684
//! both, and names                       .552 .770 .832   .776 1.00 1.00   .391 .495   .706
//! and a fifth of the neighbour's BM25   .548 .781 .846   .776 1.00 1.00   .402 .515   .697
//! or 0.3 of the neighbour's base        .543 .792 .849   .776 .981 1.00   .441 .540   .697
//! and `dated`                           .558 .809 .864   .776 .981 1.00   .441 .540   .697
//! and names less where there are many   .558 .809 .864   .776 .981 1.00   .441 .540   .725
//! and `recent`                          .558 .809 .864   .776 .981 1.00   .441 .540   .756
//! ```
//!
//! The texts of a block's payloads are cut into passages, which have statistics of their own: a log of a thousand lines
//! is no longer text of its block. The best passage represents all of them, and the better of it and the block's own
//! words counts, so that a preview, which is in both, counts once. The two are made comparable by the weight of the
//! whole question in each:
//!
//! ```text
//! bm25 = max(own, passage * (question's weight in blocks) / (question's weight in passages))
//! ```
//!
//! A name counts once in a passage, however often a log repeats it. Whether it is exact is decided for blocks and for
//! passages separately: a name of which logs are full may still occur in the words of one block alone. Of two blocks
//! that hold the same names, the one whose own words hold them goes first if the other's passage holds no more of the
//! question. Payloads that several blocks carry count for one of them.

pub(crate) mod other_scripts;
mod question;

pub(crate) use question::{AskedTerm, Corpus, Held, Question, relevance_of_words};

use std::cmp::Ordering;

/// BM25's saturation of repeated terms.
const K1: f64 = 1.2;
/// BM25's correction for the length of a block.
const B: f64 = 0.75;

/// The weight of words relative to meaning.
pub(crate) const LEXICAL_WEIGHT: f64 = 0.3;

/// How much words weigh relative to meaning when the model knows nothing of the question's kind of text.
/// Recall at 1, 5 and 10 on the questions in Chinese, Japanese and Korean of `tests/sets/cjk`, for
/// which the built-in embedder was not made (dev, and dev where one todo holds every talk):
///
/// ```text
/// 0.5  .847 .993 1.000   .820 .953 .993
/// 0.7  .860 .993 1.000   .833 .940 .980
/// 1.0  .847 .980 1.000   .807 .940 .967
/// ```
pub(crate) const UNKNOWN_WEIGHT: f64 = 0.7;

/// How much of the better neighbour's score is added to a block's.
pub(crate) const NEIGHBOUR: f64 = 0.3;

/// What is added if a block's time is on the days that the question names.
const DATED: f64 = 0.3;

/// What is added if a block holds all names of the question. More than all else together, which is 1 + [`NEIGHBOUR`] +
/// [`DATED`] at most.
const EXACT: f64 = 2.0;

/// A question that names more than this asks for none of them in particular: a page of text used as a question holds
/// dozens. Each further name reduces what exact hits add.
const NAMES: f64 = 4.0;

/// Next to a block whose own words hold as much of the question, a passage weighs at most this much of it: with what
/// its neighbour adds ([`NEIGHBOUR`]) that is still less.
pub(crate) const BESIDE_OWN: f64 = 0.75;

/// How far below the best a passage may be and still be reported with its block.
const TOLD: f64 = 0.5;

/// The data of a block before it is ranked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// The block's number.
    pub(crate) n: u32,
    pub(crate) bm25: f64,
    /// What its best passage adds to the score of its own words.
    pub(crate) passage: f64,
    /// Which of the question's terms it holds.
    pub(crate) held: Held,
    /// The cosine of its best vector, if it has one of the question's model.
    pub(crate) cosine: Option<f32>,
    /// Whether it is in another script than the question.
    pub(crate) another_script: bool,
}

/// How a passage of a payload matches the question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PassageScore {
    /// The passage's place among all of the todo.
    pub(crate) place: u32,
    /// Its payload's number.
    pub(crate) payload: u64,
    /// On the scale of blocks.
    pub(crate) bm25: f64,
    /// Which of the question's terms it holds, as bits.
    pub(crate) held: u64,
}

/// The evidence for a block besides its own words and its own meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Beside {
    /// The [`base`] of the better of the adjacent blocks.
    pub(crate) neighbour: f64,
    /// How near its time is to the days that the question names, from 0 to 1.
    pub(crate) dated: f64,
    /// The share by which it comes nearer to the best block, because work has just seen it.
    pub(crate) recent: f64,
}

/// A score and its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// The score of the block's own words and its own meaning.
    pub(crate) base: f64,
    /// What the better neighbour adds.
    pub(crate) neighbour: f64,
    /// What is added because work has just seen the block.
    pub(crate) recent: f64,
    /// What is added because its time is on days that the question names, or near them.
    pub(crate) dated: f64,
    /// What is added for the names that it holds.
    pub(crate) exact: f64,
}

impl Score {
    pub(crate) fn sum(self) -> f64 {
        self.base + self.neighbour + self.recent + self.dated + self.exact
    }
}

/// A block and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) candidate: Candidate,
    pub(crate) score: Score,
}

/// Returns the score of a block's own words and its own meaning. `best` is the best BM25 of all blocks that may be
/// returned; a neighbour may not be one of them, and counts for no more than the best. A block without a vector to
/// compare is judged by its words alone, not as one that means something else.
pub(crate) fn base(bm25: f64, cosine: Option<f32>, question: &Question, best: f64) -> f64 {
    let words = if best > 0.0 { (bm25 / best).min(1.0) } else { 0.0 };
    let lexical = question.lexical_weight(cosine.is_some());
    let meaning = f64::from(cosine.unwrap_or(0.0).clamp(0.0, 1.0));
    lexical * words + (1.0 - lexical) * meaning
}

/// Returns the score of a block, where `leader` is the best sum of base and neighbour of all blocks that may be
/// returned.
pub(crate) fn score(
    base: f64,
    beside: Beside,
    leader: f64,
    held: Held,
    question: &Question,
) -> Score {
    let neighbour = question.neighbour() * beside.neighbour;
    let recent = beside.recent * (leader - base - neighbour).max(0.0);
    let (dated, exact) = (DATED * beside.dated, question.bonus(held));
    Score { base, neighbour, recent, dated, exact }
}

impl Ranked {
    /// Returns the order by meaning alone, the nearest first.
    pub(crate) fn by_meaning(a: &Self, b: &Self) -> Ordering {
        let cosine = |ranked: &Self| ranked.candidate.cosine.unwrap_or(f32::NEG_INFINITY);
        cosine(b).total_cmp(&cosine(a)).then_with(|| b.candidate.n.cmp(&a.candidate.n))
    }
}

/// Sorts blocks, the best first.
pub(crate) fn order(ranked: &mut [Ranked]) {
    ranked.sort_by(|a, b| {
        let by_score = b.score.sum().total_cmp(&a.score.sum());
        by_score.then_with(|| b.candidate.n.cmp(&a.candidate.n))
    });
}

#[cfg(test)]
mod tests;
