//! Answers in another script than the question's: English ones for a Chinese question, and the other way round.
//!
//! They share no word with it, and vectors are nearer to those of their own script. So whatever has a word in
//! common comes before them, and they are ranked apart, by their meaning, and placed among the others.

use super::question::ANSWERING_SHARE;
use super::{Held, Question};
use crate::Ranking;

/// A block in another script may be an answer where its meaning says at least so much, on the common scale. Vectors of
/// two languages that say the same are farther apart than those of one.
pub(crate) const MAY_ANSWER: f32 = 0.3;

/// Whether blocks in other scripts are placed among those that were found: some of these are in the question's script,
/// and none of those holds as much of its words as stands for an answer. `found` says of each whether it is in another
/// script, and what it holds.
pub(crate) fn are_placed(question: &Question, found: impl Iterator<Item = (bool, Held)>) -> bool {
    let mut own = found.filter(|(is_other, _)| !is_other).map(|(_, held)| question.coverage(held));
    let Some(first) = own.next().filter(|_| question.ranking == Ranking::Fused) else {
        return false;
    };
    own.fold(first, f64::max) < f64::from(ANSWERING_SHARE)
}

/// Places what is in other scripts at every second place, both in their order, each once.
pub(crate) fn interleave<T>(
    found: Vec<T>,
    others: Vec<T>,
    k: usize,
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let mut placed: Vec<T> = Vec::with_capacity(k);
    let (mut found, mut others) = (found.into_iter(), others.into_iter());
    while placed.len() < k {
        let is_new = |one: &T| !placed.iter().any(|placed| is_same(placed, one));
        let next = match placed.len() % 2 {
            0 => found.find(is_new).or_else(|| others.find(is_new)),
            _ => others.find(is_new).or_else(|| found.find(is_new)),
        };
        let Some(next) = next else { break };
        placed.push(next);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_take_every_second_place_once() {
        let place = |found: &[u32], others: &[u32], k| {
            interleave(found.to_vec(), others.to_vec(), k, |a, b| a == b)
        };
        assert_eq!(place(&[1, 2, 3], &[8, 9], 5), [1, 8, 2, 9, 3]);
        assert_eq!(place(&[1, 2, 3], &[2, 9], 4), [1, 2, 3, 9]);
        assert_eq!(place(&[1, 2, 3], &[], 2), [1, 2]);
        assert_eq!(place(&[1], &[7, 8, 9], 3), [1, 7, 8]);
        assert_eq!(place(&[], &[7], 3), [7]);
    }
}
