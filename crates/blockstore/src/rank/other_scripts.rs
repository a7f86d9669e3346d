//! Answers in another script than the question's: English ones for a Chinese question, and the other way round.
//!
//! Such an answer shares no word with the question, and its vector is farther from the question's than those of texts
//! in one script are. In one common order it would come after everything that has anything to do with the question. So
//! blocks in another script have an order of their own, by meaning, and take every second place from the second on; from
//! the first on if one of them is clearly nearer to the question than every block in its own script. They take none if
//! the question is answered in its own script: if a block there holds a name that was asked for, or as many of the
//! question's words as count as an answer.

use super::question::ANSWERING_SHARE;
use super::{Candidate, Held, Question};
use crate::analysis::Script;
use crate::pool::{Cosine, Pool};
use crate::scores::{CUTOFF_SHARE, meaning};
use crate::{Ranking, SearchRequest};
use rayon::prelude::*;

/// A block in another script may be an answer if its meaning reaches at least this much, on the common scale.
const MAY_ANSWER: f32 = 0.3;

/// A block in another script is clearly nearer if its cosine is greater by more than this. The least of 0.3, 0.15, 0.1, 0.05, 0
/// and less that costs the talks of `tests/sets/cjk` nothing beside facts in another language (`docs/benchmarks.md`,
/// "Across languages").
const NEARER: f32 = 0.05;

/// At most this many blocks are compared by their exact vectors, or as many as four times the hits.
const MAX_EXACT: usize = 64;

/// How blocks in another script than the question's are found and placed.
#[derive(Clone, Copy)]
pub(crate) struct OtherScripts<'a, 'r> {
    request: &'a SearchRequest<'r>,
    question: &'a Question,
    least: f32,
    /// At least the cosine of the nearest block in the question's script.
    nearest_own: f32,
}

/// The blocks of a pool, judged.
#[derive(Debug, Default)]
struct Scanned {
    /// Whether any block is in the question's script, or in several.
    is_any_own: bool,
    /// Whether one of them shows that it answers the question.
    is_answered: bool,
    /// At least the cosine of the nearest block in the question's script; 0 without one.
    nearest_own: f32,
    /// The blocks in another script that may answer it.
    near: Vec<(u32, Cosine)>,
}

/// The possible answers to a question in another script.
pub(crate) struct Looked<'a, 'r> {
    pub(crate) placing: OtherScripts<'a, 'r>,
    /// The blocks: each by the place of its pool and its number there.
    pub(crate) near: Vec<((usize, u32), Cosine)>,
}

/// Looks for answers in another script in all of these pools; `None` if none are placed.
///
/// If the question is answered in its own script, no block counts as one in another script any more: then cut-offs hold
/// for all blocks alike.
pub(crate) fn look<'a, 'r>(
    request: &'a SearchRequest<'r>,
    question: &'a Question,
    mut pools: Vec<&mut Pool>,
) -> Option<Looked<'a, 'r>> {
    if !pools.iter().any(|pool| pool.has_another_script) {
        return None;
    }
    let placing = OtherScripts::new(request, question);
    let scanned: Vec<Scanned> = placing
        .map_or_else(Vec::new, |placing| pools.par_iter().map(|pool| placing.scan(pool)).collect());
    if placing.is_none() || scanned.iter().any(|scanned| scanned.is_answered) {
        pools.par_iter_mut().for_each(|pool| pool.take_for_one_script());
        return None;
    }
    if !scanned.iter().any(|scanned| scanned.is_any_own) {
        return None;
    }
    let nearest_own = scanned.iter().map(|scanned| scanned.nearest_own).fold(0.0, f32::max);
    let placing = placing.map(|placing| OtherScripts { nearest_own, ..placing });
    let near = scanned.into_iter().enumerate().flat_map(|(pool, scanned)| {
        scanned.near.into_iter().map(move |(n, cosine)| ((pool, n), cosine))
    });
    Some(Looked { placing: placing?, near: near.collect() })
}

impl<'a, 'r> OtherScripts<'a, 'r> {
    /// Returns `None` if there is nothing to look for: an order that is not fused, a question without a vector or in
    /// several scripts.
    fn new(request: &'a SearchRequest<'r>, question: &'a Question) -> Option<Self> {
        let is_asked = question.ranking == Ranking::Fused
            && request.vector.is_some()
            && question.script != Script::Mixed;
        let least = MAY_ANSWER.max(CUTOFF_SHARE * request.cutoff.unwrap_or_default());
        is_asked.then_some(Self { request, question, least, nearest_own: 0.0 })
    }

    /// Returns whether a cosine is enough for an answer in another script.
    fn may_answer(self, cosine: f32) -> bool {
        meaning(self.request, cosine).is_some_and(|meaning| meaning >= self.least)
    }

    /// Examines every block of a pool until one answers the question in its own script.
    fn scan(self, pool: &Pool) -> Scanned {
        let mut scanned = Scanned::default();
        for (n, entry) in pool.known() {
            if entry.another_script {
                scanned.is_answered |= self.question.exact(entry.held()) > 0.0;
                if self.may_answer(entry.cosine.upper) {
                    scanned.near.push((n, entry.cosine));
                }
            } else {
                scanned.is_any_own = true;
                scanned.nearest_own = scanned.nearest_own.max(entry.cosine.lower);
                scanned.is_answered |= self.answers(entry.held());
            }
            if scanned.is_answered {
                break;
            }
        }
        scanned
    }

    /// Returns whether the content of a block shows that it answers the question.
    fn answers(self, held: Held) -> bool {
        !held.is_nothing()
            && (self.question.exact(held) > 0.0
                || self.question.coverage(held) >= f64::from(ANSWERING_SHARE))
    }

    /// Returns those of these blocks that may be among the nearest `k`, whatever their true cosines within the bounds
    /// are; at most as many as are compared exactly.
    pub(crate) fn nearest<T: Copy>(
        self,
        mut near: Vec<(T, Cosine)>,
        is_exhaustive: bool,
        order: impl Fn(&T, &T) -> std::cmp::Ordering,
    ) -> Vec<T> {
        let k = self.request.k;
        if near.len() > k && !is_exhaustive {
            let mut sure: Vec<f32> = near.iter().map(|(_, cosine)| cosine.lower).collect();
            let floor = *sure.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1;
            near.retain(|(_, cosine)| cosine.upper >= floor);
            near.sort_by(|a, b| b.1.upper.total_cmp(&a.1.upper).then_with(|| order(&a.0, &b.0)));
            near.truncate(MAX_EXACT.max(4 * k));
        }
        near.into_iter().map(|(block, _)| block).collect()
    }

    /// Returns whether a block's exact cosine is enough.
    pub(crate) fn is_near(self, candidate: &Candidate) -> bool {
        candidate.cosine.is_some_and(|cosine| self.may_answer(cosine))
    }

    /// Places the blocks in other scripts at every second place, both in their order, each once.
    pub(crate) fn interleave<T>(
        self,
        found: Vec<T>,
        others: Vec<T>,
        is_same: impl Fn(&T, &T) -> bool,
        candidate: impl Fn(&T) -> &Candidate,
    ) -> Vec<T> {
        let own = found.iter().map(&candidate).filter(|candidate| !candidate.another_script);
        let of_others = nearest(others.iter().map(&candidate));
        let others_first = of_others > nearest(own).max(self.nearest_own) + NEARER;
        interleave(found, others, self.request.k, others_first, is_same)
    }
}

/// Returns the greatest cosine.
fn nearest<'c>(candidates: impl Iterator<Item = &'c Candidate>) -> f32 {
    candidates.filter_map(|candidate| candidate.cosine).fold(f32::NEG_INFINITY, f32::max)
}

fn interleave<T>(
    found: Vec<T>,
    others: Vec<T>,
    k: usize,
    others_first: bool,
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let mut placed: Vec<T> = Vec::with_capacity(k.min(found.len() + others.len()));
    let (mut found, mut others) = (found.into_iter(), others.into_iter());
    while placed.len() < k {
        let is_new = |one: &T| !placed.iter().any(|placed| is_same(placed, one));
        let next = match placed.len().is_multiple_of(2) != others_first {
            true => found.find(is_new).or_else(|| others.find(is_new)),
            false => others.find(is_new).or_else(|| found.find(is_new)),
        };
        let Some(next) = next else { break };
        placed.push(next);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_embedder::StaticEmbedder;

    fn question(script: Script, ranking: Ranking) -> Question {
        let mut question = Question::default();
        (question.script, question.ranking) = (script, ranking);
        question
    }

    #[test]
    fn nothing_is_placed_that_was_not_asked_for() {
        let (embedder, vector) = (StaticEmbedder::new(), vec![1.0; 256]);
        let asked = SearchRequest::new("码头在哪里").vector(&embedder, &vector);
        let chinese = question(Script::Cjk, Ranking::Fused);
        assert!(OtherScripts::new(&asked.k(2), &chinese).is_some());
        assert!(OtherScripts::new(&SearchRequest::new("码头在哪里").k(2), &chinese).is_none());
        for (script, ranking) in [
            (Script::Mixed, Ranking::Fused),
            (Script::Cjk, Ranking::Words),
            (Script::NotCjk, Ranking::Meaning),
        ] {
            assert!(OtherScripts::new(&asked.k(2), &question(script, ranking)).is_none());
        }
    }

    /// If every block is in another script, there is nothing to place them among.
    #[test]
    fn blocks_in_another_script_have_places_among_others_alone() {
        let (embedder, vector) = (StaticEmbedder::new(), vec![1.0; 256]);
        let asked = SearchRequest::new("码头在哪里").vector(&embedder, &vector).k(2);
        let question = question(Script::Cjk, Ranking::Fused);
        let mut pool = Pool::new(3);
        pool.has_another_script = true;
        for (n, cosine) in [(1, 0.9), (2, 0.01)] {
            pool.meet(n, Cosine::exact(cosine));
            pool.get(n).unwrap().another_script = true;
        }
        let look = |pool: &mut Pool| look(&asked, &question, vec![pool]).map(|looked| looked.near);
        assert_eq!(look(&mut pool), None);
        pool.meet(3, Cosine::exact(0.5));
        assert_eq!(look(&mut pool), Some(vec![((0, 1), Cosine::exact(0.9))]));
        // A block that is filtered out does not count.
        pool.get(3).unwrap().allowed = false;
        assert_eq!(look(&mut pool), None);
        assert!(pool.get(1).unwrap().another_script, "a cut-off still holds by a share");
    }

    #[test]
    fn others_take_every_second_place_once() {
        let place = |found: &[u32], others: &[u32], k| {
            interleave(found.to_vec(), others.to_vec(), k, false, |a, b| a == b)
        };
        assert_eq!(interleave(vec![1, 2, 3], vec![8, 9], 4, true, |a, b| a == b), [8, 1, 9, 2]);
        assert_eq!(place(&[1, 2, 3], &[8, 9], 5), [1, 8, 2, 9, 3]);
        assert_eq!(place(&[1, 2, 3], &[2, 9], 4), [1, 2, 3, 9]);
        assert_eq!(place(&[1, 2, 3], &[], 2), [1, 2]);
        assert_eq!(place(&[1], &[7, 8, 9], 3), [1, 7, 8]);
        assert_eq!(place(&[], &[7], 3), [7]);
    }
}
