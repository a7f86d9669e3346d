//! The scores of blocks whose cosines are estimates: which blocks are worth an exact comparison, and its result.

use crate::block_doc::Place;
use crate::disk::Query;
use crate::omission::Omission;
use crate::pool::{Entry, Pool};
use crate::rank::{self, Candidate, Question, Score};
use crate::records::ReadAhead;
use crate::standing::Standing;
use crate::{Error, SearchRequest, Searcher};
use rustc_hash::FxHashMap;

/// At most this many blocks are compared by their exact vectors, or as many as four times the hits. If more blocks are
/// nearly alike, an index may order them differently than a search without one: the rest is not scored again.
const MAX_EXACT: usize = 256;

/// Bounds on the scores of all blocks, and which of them pass the cut-off.
pub(crate) struct Scores<'a, 'r> {
    request: &'a SearchRequest<'r>,
    question: &'a Question,
    standing: &'a Standing,
    pool: &'a Pool,
    /// The best BM25 of the blocks that may be returned.
    best: f64,
    /// The score of each block's own words and meaning, by number from 1.
    bases: Vec<Bounds>,
    /// The score of each block; [`Bounds::NONE`] for one that may not be returned or has nothing to do with the
    /// question.
    sums: Vec<Bounds>,
    /// The best sum of a base and what the neighbour adds, of the blocks that may be returned; 0 if no block comes
    /// nearer to it.
    leader: Bounds,
}

/// A number that lies between two others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// Below every score.
    const NONE: Self = Self { low: f64::NEG_INFINITY, high: f64::NEG_INFINITY };

    fn max(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.max(other.high) }
    }

    /// This, and a share of the other.
    fn plus(self, share: f64, other: Self) -> Self {
        Self { low: self.low + share * other.low, high: self.high + share * other.high }
    }
}

impl<'a, 'r> Scores<'a, 'r> {
    pub(crate) fn new(
        request: &'a SearchRequest<'r>,
        question: &'a Question,
        standing: &'a Standing,
        pool: &'a Pool,
        best: f64,
    ) -> Self {
        let bases = pool.entries().iter().map(|entry| {
            let base = |cosine: f32| {
                rank::base(entry.bm25, cosine.is_finite().then_some(cosine), question, best)
            };
            let high = base(entry.cosine.upper);
            let low = if entry.cosine.is_exact() { high } else { base(entry.cosine.lower) };
            Bounds { low, high }
        });
        let bases = bases.collect();
        let (sums, leader) = (Vec::new(), Bounds::default());
        let mut scores = Self { request, question, standing, pool, best, bases, sums, leader };
        scores.add_up();
        scores
    }

    /// Sums up the evidence for each block.
    fn add_up(&mut self) {
        let share = self.question.neighbour();
        let near = |n: u32| self.base(n).plus(share, self.neighbour(n));
        let blocks = || (1..).zip(self.pool.entries());
        let has_names = self.question.has_names();
        let sums = blocks().map(|(n, entry)| {
            if !entry.is_known() {
                return Bounds::NONE;
            }
            let bonus = if has_names { self.question.bonus(entry.held()) } else { 0.0 };
            let Bounds { low, high } = near(n);
            Bounds { low: low + bonus, high: high + bonus }
        });
        let sums = sums.collect();
        if self.standing.is_any_recent() {
            let allowed = blocks().filter(|(_, entry)| entry.allowed);
            self.leader = allowed.map(|(n, _)| near(n)).fold(Bounds::default(), Bounds::max);
        }
        self.sums = sums;
        for n in self.standing.concerned() {
            let (base, neighbour) = (self.base(n), self.neighbour(n));
            let leader = self.leader;
            let sum = |base, neighbour, leader| {
                let held = self.pool.entry(n).map(Entry::held).unwrap_or_default();
                let beside = self.standing.beside(n, neighbour);
                rank::score(base, beside, leader, held, self.question).sum()
            };
            let bounds = Bounds {
                low: sum(base.low, neighbour.low, leader.low),
                high: sum(base.high, neighbour.high, leader.high),
            };
            let place = n.checked_sub(1).map(|place| place as usize);
            let known = place.and_then(|place| self.sums.get_mut(place));
            if let Some(known) = known.filter(|known| **known != Bounds::NONE) {
                *known = bounds;
            }
        }
    }

    fn base(&self, n: u32) -> Bounds {
        let place = n.checked_sub(1).map(|place| place as usize);
        place.and_then(|place| self.bases.get(place)).copied().unwrap_or_default()
    }

    fn neighbour(&self, n: u32) -> Bounds {
        self.base(n.saturating_sub(1)).max(self.base(n.saturating_add(1)))
    }

    /// Returns the score of a block from its exact values.
    pub(crate) fn score(&self, candidate: &Candidate, neighbour: f64, leader: f64) -> Score {
        let base = rank::base(candidate.bm25, candidate.cosine, self.question, self.best);
        let beside = self.standing.beside(candidate.n, neighbour);
        rank::score(base, beside, leader, candidate.held, self.question)
    }

    /// Returns the blocks that may be among the hits. A block is left out only if `k` others surely come before it,
    /// whatever the true cosines within their bounds are.
    pub(crate) fn select(&self) -> Vec<u32> {
        let k = self.request.k;
        let all = || (1..).zip(self.sums.iter().copied());
        let known = || all().filter(|(_, sum)| *sum != Bounds::NONE);
        let may_pass = |n: u32, is_low: bool| {
            self.request.cutoff.is_none()
                || self.pool.entry(n).is_some_and(|entry| {
                    self.passes(&if is_low { lowest(n, entry) } else { entry.candidate(n) })
                })
        };
        let sure = known().filter(|(n, _)| may_pass(*n, true));
        let mut sure: Vec<f64> = sure.map(|(_, sum)| sum.low).collect();
        let floor = if sure.len() < k {
            f64::NEG_INFINITY
        } else {
            *sure.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
        };
        let may_be = known().filter(|(n, sum)| sum.high >= floor && may_pass(*n, false));
        let mut may_be: Vec<(u32, Bounds)> = may_be.collect();
        let most = MAX_EXACT.max(4 * k);
        if may_be.len() > most && may_be.iter().any(|(_, sum)| sum.low < sum.high) {
            let order = |a: &(u32, Bounds), b: &(u32, Bounds)| {
                b.1.high.total_cmp(&a.1.high).then_with(|| b.0.cmp(&a.0))
            };
            may_be.select_nth_unstable_by(most, order);
            may_be.truncate(most);
        }
        may_be.into_iter().map(|(n, _)| n).collect()
    }

    pub(crate) fn passes(&self, candidate: &Candidate) -> bool {
        passes(self.request, self.question, candidate)
    }

    pub(crate) fn relevance(&self, candidate: &Candidate) -> f32 {
        relevance(self.request, self.question, candidate)
    }
}

/// A request's cut-off is for blocks in the question's script. This share of it is for the others: the vectors of two
/// texts that say the same in two languages are farther apart.
pub(crate) const CUTOFF_SHARE: f32 = 0.75;

/// Returns whether a block is not below the request's cut-off.
pub(crate) fn passes(
    request: &SearchRequest<'_>,
    question: &Question,
    candidate: &Candidate,
) -> bool {
    match request.cutoff {
        Some(cutoff) => {
            let share = if candidate.another_script { CUTOFF_SHARE } else { 1.0 };
            question.exact(candidate.held) > 0.0
                || relevance(request, question, candidate) >= share * cutoff
        }
        None => true,
    }
}

/// Returns how much a block has to do with the question, from 0 to 1.
pub(crate) fn relevance(
    request: &SearchRequest<'_>,
    question: &Question,
    candidate: &Candidate,
) -> f32 {
    let coverage = question.coverage(candidate.held);
    let words = rank::relevance_of_words(coverage as f32);
    candidate.cosine.and_then(|cosine| meaning(request, cosine)).map_or(words, |m| words.max(m))
}

/// Returns how much a cosine says that a text answers the question, from 0 to 1, if it has a vector.
pub(crate) fn meaning(request: &SearchRequest<'_>, cosine: f32) -> Option<f32> {
    let (embedder, _) = request.vector?;
    Some(embedder.calibrated_answer(cosine * request.likeness).clamp(0.0, 1.0))
}

/// Returns a block with the least that its cosine may be.
fn lowest(n: u32, entry: &Entry) -> Candidate {
    let cosine = entry.cosine.lower;
    Candidate { cosine: cosine.is_finite().then_some(cosine), ..entry.candidate(n) }
}

/// The question's vector, ready for both kinds of comparison.
pub(crate) struct AskedVector<'a> {
    pub(crate) model: &'a str,
    /// The weight of words relative to it.
    pub(crate) lexical: f64,
    pub(crate) unit: Vec<f32>,
    pub(crate) codes: Query,
}

/// Exact cosines in place of estimates, each read once.
pub(crate) struct Exact<'a, 'r> {
    searcher: &'a Searcher,
    query: Option<&'a AskedVector<'a>>,
    scores: &'a Scores<'a, 'r>,
    read: FxHashMap<u32, Option<(f32, Place)>>,
    ahead: ReadAhead,
    omissions: Vec<Omission>,
}

impl<'a, 'r> Exact<'a, 'r> {
    pub(crate) fn new(
        searcher: &'a Searcher,
        query: Option<&'a AskedVector<'a>>,
        scores: &'a Scores<'a, 'r>,
    ) -> Self {
        let (read, ahead, omissions) = <_>::default();
        Self { searcher, query, scores, read, ahead, omissions }
    }

    /// Returns the blocks that may be among the hits, and the best sum of a base and what the neighbour adds, if that is
    /// needed.
    pub(crate) fn select(&mut self) -> Result<(Vec<u32>, f64), Error> {
        let selected = self.scores.select();
        self.read_ahead(&selected)?;
        Ok((selected, self.leader()?))
    }

    /// Reads ahead what the comparison of these blocks needs.
    fn read_ahead(&mut self, blocks: &[u32]) -> Result<(), Error> {
        let Some(query) = self.query else { return Ok(()) };
        let scores = self.scores;
        let has_neighbours = scores.question.neighbour() != 0.0;
        let needed = blocks.iter().flat_map(|&n| {
            let floor = scores.neighbour(n).low;
            let beside = [n.saturating_sub(1), n.saturating_add(1)].into_iter();
            let better = move |n: &u32| has_neighbours && scores.base(*n).high >= floor;
            std::iter::once(n).chain(beside.filter(better))
        });
        let leading = self.leading();
        let beside = |n: &u32| [n.saturating_sub(1), *n, n.saturating_add(1)];
        let needed = needed.chain(leading.iter().flat_map(beside));
        let is_estimate =
            |n: &u32| scores.pool.entry(*n).is_some_and(|entry| !entry.cosine.is_exact());
        self.ahead = self.searcher.read_vectors(needed.filter(is_estimate), query)?;
        Ok(())
    }

    /// Returns the vectors that could not be read.
    pub(crate) fn into_omissions(self) -> Vec<Omission> {
        self.omissions
    }

    /// Returns the data of block `n`.
    pub(crate) fn candidate(&mut self, n: u32) -> Result<Option<Candidate>, Error> {
        let Some(entry) = self.scores.pool.entry(n) else { return Ok(None) };
        let mut candidate = entry.candidate(n);
        if let Some(query) = self.query
            && !entry.cosine.is_exact()
        {
            let read = match self.read.get(&n) {
                Some(read) => *read,
                None => {
                    let read = self.searcher.exact_cosine(n, query, &self.ahead)?;
                    self.read.insert(n, read.best);
                    self.omissions.extend(read.omissions);
                    read.best
                }
            };
            candidate.cosine = read.map(|(cosine, _)| cosine).or(candidate.cosine);
        }
        Ok(Some(candidate))
    }

    /// Returns the source of a block's best vector among those that were read.
    pub(crate) fn place(&self, n: u32) -> Option<Place> {
        self.read.get(&n).copied().flatten().map(|(_, place)| place)
    }

    fn base(&mut self, n: u32) -> Result<f64, Error> {
        let Bounds { low, high } = self.scores.base(n);
        if low == high {
            return Ok(high);
        }
        let Some(Candidate { bm25, cosine, .. }) = self.candidate(n)? else { return Ok(0.0) };
        Ok(rank::base(bm25, cosine, self.scores.question, self.scores.best))
    }

    /// Returns the score of the better of the blocks adjacent to block `n`.
    pub(crate) fn neighbour(&mut self, n: u32) -> Result<f64, Error> {
        if self.scores.question.neighbour() == 0.0 {
            return Ok(0.0);
        }
        let floor = self.scores.neighbour(n).low;
        let mut better = 0.0;
        for beside in [n.saturating_sub(1), n.saturating_add(1)] {
            if self.scores.base(beside).high >= floor {
                better = f64::max(better, self.base(beside)?);
            }
        }
        Ok(better)
    }

    fn leader(&mut self) -> Result<f64, Error> {
        let scores = self.scores;
        let leading = self.leading();
        if leading.is_empty() {
            return Ok(scores.leader.high);
        }
        let share = scores.question.neighbour();
        let mut leader = 0.0;
        for n in leading {
            leader = f64::max(leader, self.base(n)? + share * self.neighbour(n)?);
        }
        Ok(leader)
    }

    /// Returns the blocks that may have the best sum of a base and what the neighbour adds, if that is needed.
    fn leading(&self) -> Vec<u32> {
        let scores = self.scores;
        let Bounds { low: floor, high } = scores.leader;
        if floor == high || !scores.standing.is_any_recent() {
            return Vec::new();
        }
        let share = scores.question.neighbour();
        let near = |n: u32| scores.base(n).plus(share, scores.neighbour(n));
        let entries = (1..).zip(scores.pool.entries());
        let leading = entries.filter(|(n, entry)| entry.allowed && near(*n).high >= floor);
        leading.map(|(n, _)| n).collect()
    }
}
