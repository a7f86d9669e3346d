//! How much of a question's evidence is in the first blocks of an answer.

use super::evidence::Asked;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The numbers of blocks at which recall is reported.
pub const AT: [usize; 3] = [1, 5, 10];

/// The numbers of tokens at which recall is reported.
pub const AT_TOKENS: [u64; 4] = [500, 1_000, 2_000, 4_000];

/// The points of the curve of recall against tokens: every 250 up to 4,000.
const CURVE_STEP: u64 = 250;
const CURVE_POINTS: usize = 16;

/// The evidence in one question's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct AnswerRecall {
    /// Whether the first 1, 5 and 10 blocks contain any evidence.
    hit: [bool; AT.len()],
    /// The share of the evidence in the first 1, 5 and 10 blocks.
    recall: [f64; AT.len()],
    /// The share of the evidence in the blocks that fit into 250, 500, ... tokens.
    curve: [f64; CURVE_POINTS],
}

impl AnswerRecall {
    /// Judges blocks in the order in which they were found, each with its tokens.
    pub(super) fn of(asked: &Asked, blocks: &[(RangeInclusive<usize>, u64)]) -> Self {
        let mut found = Self::default();
        let all = asked.evidence.len().max(1) as f64;
        let (mut held, mut tokens) = (0, 0);
        for (nth, (run, size)) in (1..).zip(blocks) {
            held += asked.held_by(run);
            tokens += size;
            let share = held as f64 / all;
            for (at, k) in AT.into_iter().enumerate() {
                if nth <= k {
                    found.recall[at] = share;
                    found.hit[at] = held > 0;
                }
            }
            // Whole blocks in the order of their ranks; the first that does not fit ends it.
            for (at, budget) in budgets().enumerate() {
                if tokens <= budget {
                    found.curve[at] = share;
                }
            }
        }
        found
    }
}

fn budgets() -> impl Iterator<Item = u64> {
    (1..=CURVE_POINTS as u64).map(|point| point * CURVE_STEP)
}

/// Recall over several questions: the mean share of each question's evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recall {
    /// The number of questions.
    pub questions: usize,
    /// The share of questions whose first block contains evidence.
    pub hit_at_1: Option<f64>,
    /// The share of questions with evidence among the first 1, 5 and 10 blocks.
    pub hit_at: BTreeMap<usize, f64>,
    /// The share of a question's evidence in the first 1, 5 and 10 blocks.
    pub recall_at: BTreeMap<usize, f64>,
    /// The share of a question's evidence in the first blocks that together have at most this many
    /// tokens.
    pub recall_at_tokens: BTreeMap<u64, f64>,
    /// The same at every 250 tokens.
    pub curve: Vec<(u64, f64)>,
}

impl Recall {
    pub(super) fn of<'a>(found: impl Iterator<Item = &'a AnswerRecall>) -> Self {
        let mut questions = 0_usize;
        let mut hits = [0_usize; AT.len()];
        let mut recalls = [0.0_f64; AT.len()];
        let mut shares = [0.0_f64; CURVE_POINTS];
        for one in found {
            questions += 1;
            hits.iter_mut().zip(one.hit).for_each(|(sum, hit)| *sum += usize::from(hit));
            recalls.iter_mut().zip(one.recall).for_each(|(sum, share)| *sum += share);
            shares.iter_mut().zip(one.curve).for_each(|(sum, share)| *sum += share);
        }
        if questions == 0 {
            return Self::default();
        }
        let mean = |sum: f64| (sum / questions as f64 * 1e6).round() / 1e6;
        let curve: Vec<(u64, f64)> = budgets().zip(shares.map(mean)).collect();
        let hit_at: BTreeMap<usize, f64> =
            AT.into_iter().zip(hits.map(|sum| mean(sum as f64))).collect();
        Self {
            questions,
            hit_at_1: hit_at.get(&1).copied(),
            hit_at,
            recall_at: AT.into_iter().zip(recalls.map(mean)).collect(),
            recall_at_tokens: curve
                .iter()
                .copied()
                .filter(|(tokens, _)| AT_TOKENS.contains(tokens))
                .collect(),
            curve,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(evidence: &[usize]) -> Asked {
        Asked { question: "q".to_owned(), category: String::new(), evidence: evidence.to_vec() }
    }

    /// Evidence 3, 4 and 20; blocks of 600, 300 and 700 tokens, the last two with it.
    #[test]
    fn recall_is_counted_by_messages_and_by_whole_blocks() {
        let blocks = [(10..=12, 600), (3..=5, 300), (18..=22, 700)];
        let found = AnswerRecall::of(&asked(&[3, 4, 20]), &blocks);
        let recall = Recall::of([found].iter());
        let two = (2.0_f64 / 3.0 * 1e6).round() / 1e6;
        assert_eq!((recall.questions, recall.hit_at_1), (1, Some(0.0)));
        assert_eq!(recall.recall_at, BTreeMap::from([(1, 0.0), (5, 1.0), (10, 1.0)]));
        assert_eq!(recall.hit_at, BTreeMap::from([(1, 0.0), (5, 1.0), (10, 1.0)]));
        let expected = BTreeMap::from([(500, 0.0), (1_000, two), (2_000, 1.0), (4_000, 1.0)]);
        assert_eq!(recall.recall_at_tokens, expected);
        let at = |tokens| recall.curve.iter().find(|point| point.0 == tokens).unwrap().1;
        assert_eq!([750, 1_500, 1_750].map(at), [0.0, two, 1.0]);
    }

    #[test]
    fn means_are_over_questions() {
        let hit = AnswerRecall::of(&asked(&[0, 9]), &[(0..=4, 10)]);
        let miss = AnswerRecall::of(&asked(&[7]), &[(0..=4, 10)]);
        let recall = Recall::of([hit, miss].iter());
        assert_eq!((recall.questions, recall.hit_at_1), (2, Some(0.5)));
        assert_eq!(recall.recall_at[&10], 0.25);
        assert_eq!(Recall::of([].iter()), Recall::default());
    }
}
