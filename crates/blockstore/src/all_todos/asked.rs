//! A question to all todos, and how each shelf matches it.

use super::AllTodosRequest;
use super::catalogue::Run;
use super::shelf::Shelf;
use super::snapshot::Snapshot;
use crate::analysis::cut;
use crate::dates::{Days, named_days, nearness};
use crate::disk::Damage;
use crate::omission::Omission;
use crate::parts::Parts;
use crate::pool::{Cosine, Entry};
use crate::rank::{self, Beside, Corpus, Question};
use crate::scores::{self, AskedVector};
use crate::searcher::{self, Allows, ByWords, asked_terms, by_words, vector_side};
use crate::{Error, NotSearched, Ranking, SearchRequest, Unsearched, VectorSide};
use foldback_kv::Todo;
use parking_lot::Mutex;
use rayon::prelude::*;

/// At most this many blocks are compared by their exact vectors, or as many as four times the hits.
const EXACT: usize = 128;

/// This many blocks, the highest by their estimates, are checked against the cut-off.
const LOOKED_AT: usize = 4_096;

/// The question, ready to be compared with every shelf.
pub(super) struct Asked<'a> {
    pub(super) request: &'a AllTodosRequest<'a>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) question: Question,
    /// All blocks, and all passages.
    pub(super) corpus: Corpus,
    pub(super) told: Corpus,
    pub(super) days: Vec<Days>,
    pub(super) vectors: VectorSide,
    pub(super) query: Option<AskedVector<'a>>,
    /// The parts that turned out to be unreadable while the hits were looked up.
    lost: Mutex<Vec<Unsearched>>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        shelves: &[&Shelf],
        asked: &'a AllTodosRequest<'a>,
        blocks: u64,
    ) -> Result<Self, Damage> {
        let request = &asked.request;
        let parts: Vec<Parts<'_>> = shelves.iter().map(|shelf| shelf.parts()).collect();
        let corpus = Corpus { texts: blocks, terms: parts.iter().map(Parts::terms).sum() };
        let told = Corpus {
            texts: parts.iter().map(|parts| parts.passages() as u64).sum(),
            terms: parts.iter().map(Parts::passage_terms).sum(),
        };
        let models: Vec<(&str, usize)> = parts.iter().flat_map(Parts::models).collect();
        let (vectors, query) = vector_side(request, &models);
        let lexical = query.as_ref().map_or(1.0, |query| query.lexical);
        let terms = asked_terms(request, |text| {
            let mut held = (0, 0);
            for parts in &parts {
                held = (held.0 + parts.df(text)?, held.1 + parts.passage_df(text)?);
            }
            Ok(held)
        })?;
        let question = Question::new(terms, corpus, told, lexical, request.ranking);
        let days = match request.ranking {
            Ranking::Fused => named_days(cut(request.query, SearchRequest::MAX_QUERY_BYTES)),
            Ranking::Words | Ranking::Meaning => Vec::new(),
        };
        let lost = Mutex::default();
        Ok(Self { request: asked, snapshot, question, corpus, told, days, vectors, query, lost })
    }

    /// Notes the parts of a todo that can no longer be read.
    pub(super) fn lose(&self, todo: &Todo, omissions: Vec<Omission>) {
        if !omissions.is_empty() {
            self.lost
                .lock()
                .extend(omissions.into_iter().filter_map(|omission| told(todo, omission)));
        }
    }

    /// Returns the parts of the todos allowed by the request that were not searched. `todo` returns the id for a
    /// number.
    pub(super) fn not_searched(
        &self,
        shelves: &[&Shelf],
        todo: impl Fn(u32) -> Result<Option<Todo>, Error>,
    ) -> Result<NotSearched, Error> {
        let mut parts = std::mem::take(&mut *self.lost.lock());
        for shelf in shelves {
            let is_allowed = self.allows(shelf);
            for omission in shelf.omissions() {
                let Some((run, n)) = shelf.place(omission.block) else { continue };
                if is_allowed(run)
                    && let Some(todo) = todo(run.todo)?
                {
                    parts.extend(told(&todo, Omission { block: n, ..omission.clone() }));
                }
            }
        }
        Ok(NotSearched::of(parts))
    }

    /// Searches one shelf for the question.
    pub(super) fn search<'s>(&self, shelf: &'s Shelf) -> Result<Searched<'s>, Damage> {
        let parts = shelf.parts();
        let request = &self.request.request;
        let living = self.living(shelf);
        let by_meta = searcher::is_filtered(request);
        let allows: Allows<'_> = &|n, meta| {
            let is_of_run = living.as_ref().is_none_or(|living| {
                n.checked_sub(1).and_then(|at| living.get(at as usize)).copied().unwrap_or(false)
            });
            is_of_run && (!by_meta || searcher::allows(request, meta))
        };
        let allows = (by_meta || living.is_some()).then_some(allows);
        let mut found =
            by_words(shelf.blocks, &self.question, (self.corpus, self.told), &parts, allows)?;
        if let Some(query) = &self.query {
            let pool = &mut found.pool;
            parts.cosines(query, pool);
            let codes = shelf.disk().map(|disk| &disk.codes);
            if let Some(group) = codes.and_then(|codes| codes.group(query.model, query.unit.len()))
            {
                group.scan(0..group.len(), &query.codes, |n, estimate| {
                    pool.meet(n, Cosine::from(estimate));
                });
            }
        }
        Ok(Searched { shelf, parts, found })
    }

    /// Returns whether runs of a shelf belong to existing todos that the request allows.
    fn allows(&self, shelf: &Shelf) -> impl Fn(&Run) -> bool {
        let AllTodosRequest { source, folder, .. } = self.request;
        let by_origin: Vec<bool> = shelf
            .origins
            .iter()
            .map(|origin| {
                source.is_none_or(|source| origin.is_of_source(source))
                    && folder.is_none_or(|folder| origin.is_in_folder(folder))
            })
            .collect();
        move |run| {
            by_origin.get(run.origin as usize).copied().unwrap_or(false)
                && self.snapshot.living.contains(&run.todo)
        }
    }

    /// Returns which blocks belong to existing todos that the request allows; `None` for all.
    fn living(&self, shelf: &Shelf) -> Option<Vec<bool>> {
        let is_allowed = self.allows(shelf);
        if shelf.runs().all(&is_allowed) {
            return None;
        }
        let mut living = Vec::with_capacity(shelf.blocks as usize);
        for run in shelf.runs() {
            let is_allowed = is_allowed(run);
            living.extend((run.first..=run.last).map(|_| is_allowed));
        }
        Some(living)
    }

    /// Returns how near a time is to the days that the question names.
    pub(super) fn dated(&self, time: i64) -> f64 {
        if self.days.is_empty() { 0.0 } else { nearness(&self.days, time) }
    }

    /// Returns the blocks that may be among the hits, whatever their true cosines within the bounds of their estimates
    /// are; at most as many as are compared exactly.
    pub(super) fn candidates(&self, searched: &[Searched<'_>], best: f64) -> Vec<At> {
        let request = &self.request.request;
        let bounds: Vec<Vec<Bounded>> = (0..searched.len())
            .into_par_iter()
            .map(|at| searched.get(at).map_or_else(Vec::new, |shelf| self.bounds(at, shelf, best)))
            .collect();
        let mut all: Vec<Bounded> = bounds.into_iter().flatten().collect();
        keep_highest(&mut all, if self.request.is_exhaustive { usize::MAX } else { LOOKED_AT });
        let passes = |bounded: &Bounded, is_low: bool| {
            let entry = searched.get(bounded.at.shelf)?.found.pool.entry(bounded.at.n)?;
            let mut candidate = entry.candidate(bounded.at.n);
            if is_low {
                candidate.cosine = candidate.cosine.map(|_| entry.cosine.lower);
            }
            Some(scores::passes(request, &self.question, &candidate))
        };
        all.retain(|bounded| passes(bounded, false).unwrap_or(false));
        if self.request.is_exhaustive {
            return all.into_iter().map(|bounded| bounded.at).collect();
        }
        let sure = all.iter().filter(|bounded| passes(bounded, true).unwrap_or(false));
        let mut sure: Vec<f64> = sure.map(|bounded| bounded.low).collect();
        if sure.len() >= request.k {
            let floor = *sure.select_nth_unstable_by(request.k - 1, |a, b| b.total_cmp(a)).1;
            all.retain(|bounded| bounded.high >= floor);
        }
        keep_highest(&mut all, EXACT.max(4 * request.k));
        all.into_iter().map(|bounded| bounded.at).collect()
    }

    /// Returns the blocks of a shelf that have anything to do with the question, each with the bounds of its score.
    fn bounds(&self, at: usize, shelf: &Searched<'_>, best: f64) -> Vec<Bounded> {
        let pool = &shelf.found.pool;
        let base = |entry: &Entry, cosine: f32| {
            rank::base(entry.bm25, cosine.is_finite().then_some(cosine), &self.question, best)
        };
        let bases: Vec<(f64, f64)> = pool
            .entries()
            .iter()
            .map(|entry| {
                let high = base(entry, entry.cosine.upper);
                let low = match entry.cosine.is_exact() {
                    true => high,
                    false => base(entry, entry.cosine.lower),
                };
                (low, high)
            })
            .collect();
        let of = |n: u32| bases.get(n as usize - 1).copied().unwrap_or_default();
        let mut bounds = Vec::new();
        shelf.shelf.each_block(|n, (before, behind), _| {
            let Some(entry) = pool.entry(n).filter(|entry| entry.is_known()) else { return };
            let beside = [before.then(|| of(n - 1)), behind.then(|| of(n + 1))];
            let beside = beside.into_iter().flatten();
            let beside = beside.fold((0.0, 0.0), |a: (f64, f64), b| (a.0.max(b.0), a.1.max(b.1)));
            let time = match self.days.is_empty() {
                true => 0,
                false => shelf.parts.meta(n).map_or(0, |meta| meta.time.0),
            };
            let (dated, held) = (self.dated(time), entry.held());
            let sum = |base, neighbour| {
                let beside = Beside { neighbour, dated, recent: 0.0 };
                rank::score(base, beside, 0.0, held, &self.question).sum()
            };
            let (low, high) = of(n);
            let (low, high) = (sum(low, beside.0), sum(high, beside.1));
            bounds.push(Bounded { at: At { shelf: at, n }, low, high });
        });
        if !self.request.is_exhaustive {
            keep_highest(&mut bounds, LOOKED_AT);
        }
        bounds
    }
}

/// A shelf, and the texts on it that hold terms of the question.
pub(super) struct Searched<'s> {
    pub(super) shelf: &'s Shelf,
    pub(super) parts: Parts<'s>,
    pub(super) found: ByWords,
}

impl Searched<'_> {
    /// Returns the blocks adjacent to one in its todo, as far as they are on this shelf.
    pub(super) fn beside(&self, n: u32) -> impl Iterator<Item = u32> {
        let (before, behind) = match self.shelf.place(n) {
            Some((run, place)) => (place > run.first, place < run.last),
            None => (false, false),
        };
        [before.then(|| n - 1), behind.then(|| n + 1)].into_iter().flatten()
    }

    pub(super) fn set_broken(&self) {
        if let Some(disk) = self.shelf.disk() {
            disk.set_broken();
        }
    }
}

/// A block: its shelf, and its number there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) shelf: usize,
    pub(super) n: u32,
}

impl At {
    pub(super) fn todo(self, searched: &[Searched<'_>]) -> u32 {
        let place = searched.get(self.shelf).and_then(|shelf| shelf.shelf.place(self.n));
        place.map_or(0, |(run, _)| run.todo)
    }
}

/// A block whose score lies between two bounds.
struct Bounded {
    at: At,
    low: f64,
    high: f64,
}

/// Returns an omission as it is named when all todos are searched.
fn told(todo: &Todo, omission: Omission) -> Option<Unsearched> {
    Some(Unsearched::of(todo.id(), omission)?.in_todo(todo.id()))
}

fn keep_highest(bounded: &mut Vec<Bounded>, most: usize) {
    if bounded.len() > most {
        let order = |a: &Bounded, b: &Bounded| {
            let by_score = b.high.total_cmp(&a.high);
            by_score.then_with(|| (a.at.shelf, a.at.n).cmp(&(b.at.shelf, b.at.n)))
        };
        bounded.select_nth_unstable_by(most, order);
        bounded.truncate(most);
    }
}
