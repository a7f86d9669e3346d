//! Blocks in another script than the question's, among those that were found.

use super::Trouble;
use crate::rank::Ranked;
use crate::rank::other_scripts::Looked;
use crate::scores::{Exact, Scores};

/// Places blocks in another script among those that were found.
pub(super) fn place(
    found: Vec<Ranked>,
    Looked { placing, near }: Looked<'_, '_>,
    (scores, exact, leader): (&Scores<'_, '_>, &mut Exact<'_, '_>, f64),
) -> Result<Vec<Ranked>, Trouble> {
    let mut others = Vec::new();
    for (_, n) in placing.nearest(near, false, |a, b| b.cmp(a)) {
        let candidate = exact.candidate(n)?;
        if let Some(candidate) = candidate.filter(|candidate| placing.is_near(candidate)) {
            let score = scores.score(&candidate, exact.neighbour(n)?, leader);
            others.push(Ranked { candidate, score });
        }
    }
    others.sort_by(Ranked::by_meaning);
    let is_same = |a: &Ranked, b: &Ranked| a.candidate.n == b.candidate.n;
    Ok(placing.interleave(found, others, is_same, |one| &one.candidate))
}
