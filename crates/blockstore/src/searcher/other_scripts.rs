//! Blocks in another script than the question's, among those that were found.

use super::Trouble;
use crate::SearchRequest;
use crate::pool::Pool;
use crate::rank::other_scripts::OtherScripts;
use crate::rank::{Question, Ranked};
use crate::scores::{Exact, Scores};

/// Places blocks in another script among those that were found, where they may be what answers.
pub(super) fn place(
    found: Vec<Ranked>,
    (request, question): (&SearchRequest<'_>, &Question),
    pool: &Pool,
    (scores, exact, leader): (&Scores<'_, '_>, &mut Exact<'_, '_>, f64),
) -> Result<Vec<Ranked>, Trouble> {
    let Some(placing) = OtherScripts::new(request, question) else { return Ok(found) };
    let scanned = placing.scan(pool);
    if !scanned.has_places() {
        return Ok(found);
    }
    let mut others = Vec::new();
    for n in placing.nearest(scanned.near, false, |a, b| b.cmp(a)) {
        let candidate = exact.candidate(n)?;
        if let Some(candidate) = candidate.filter(|candidate| placing.is_near(candidate)) {
            let score = scores.score(&candidate, exact.neighbour(n)?, leader);
            others.push(Ranked { candidate, score });
        }
    }
    others.sort_by(Ranked::by_meaning);
    Ok(placing.interleave(found, others, |a, b| a.candidate.n == b.candidate.n))
}
