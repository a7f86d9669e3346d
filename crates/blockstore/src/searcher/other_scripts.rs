//! Blocks in another script than the question's, among those that were found.

use super::Trouble;
use crate::SearchRequest;
use crate::parts::Parts;
use crate::pool::Pool;
use crate::rank::{Question, Ranked, other_scripts};
use crate::scores::{Exact, Scores, meaning};

/// Places blocks in another script among those that were found, where they may be what answers.
pub(super) fn place(
    found: Vec<Ranked>,
    (request, question): (&SearchRequest<'_>, &Question),
    (parts, pool): (&Parts<'_>, &Pool),
    (scores, exact): (&Scores<'_, '_>, &mut Exact<'_, '_>),
) -> Result<Vec<Ranked>, Trouble> {
    let is_other = |n: u32| parts.meta(n).is_some_and(|meta| meta.script.differs(question.script));
    let held = found.iter().map(|one| (is_other(one.candidate.n), one.candidate.held));
    if !other_scripts::are_placed(question, held) {
        return Ok(found);
    }
    let may_answer = |cosine: f32| {
        meaning(request, cosine).is_some_and(|meaning| meaning >= other_scripts::MAY_ANSWER)
    };
    let near = pool.known().filter(|(n, entry)| may_answer(entry.cosine.upper) && is_other(*n));
    let mut near: Vec<(u32, f32)> = near.map(|(n, entry)| (n, entry.cosine.upper)).collect();
    near.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
    near.truncate(2 * request.k);
    let mut others = Vec::with_capacity(near.len());
    for (n, _) in near {
        let Some(candidate) = exact.candidate(n)? else { continue };
        if candidate.cosine.is_some_and(may_answer) && scores.passes(&candidate) {
            let (neighbour, leader) = (exact.neighbour(n)?, exact.leader()?);
            others.push(Ranked { candidate, score: scores.score(&candidate, neighbour, leader) });
        }
    }
    others.sort_by(Ranked::by_meaning);
    let is_same = |a: &Ranked, b: &Ranked| a.candidate.n == b.candidate.n;
    Ok(other_scripts::interleave(found, others, request.k, is_same))
}
