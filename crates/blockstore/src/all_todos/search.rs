//! A question to all todos, from its words to the hits.

use super::shelf::{Shelf, payload_number};
use super::snapshot::Snapshot;
use super::{AllTodos, AllTodosAnswer, AllTodosRequest};
use crate::analysis::cut;
use crate::block_doc::Place;
use crate::dates::{Days, named_days, nearness};
use crate::disk::Damage;
use crate::found_block::{Evidence, FoundPassage};
use crate::parts::Parts;
use crate::pool::{Cosine, Entry};
use crate::rank::{self, Beside, Candidate, Corpus, Question, Score};
use crate::scores::{self, AskedVector};
use crate::searcher::{self, Allows, ByWords, asked_terms, by_words, vector_side};
use crate::{Error, Explanation, Hit, PassageHit, Ranking, SearchRequest, VectorSide};
use foldback_core::{Block, BlockId, Embedder, SeqNo};
use foldback_kv::Todo;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// So many blocks are compared by their exact vectors, or as many as four times the hits.
const EXACT: usize = 128;

/// Of so many blocks, the highest by their estimates, it is asked whether they pass the cut-off.
const LOOKED_AT: usize = 4_096;

impl AllTodos {
    /// The blocks of all todos that answer the request best, by words and by meaning: `embedder` makes
    /// the question's vector. Words are weighed by how rare they are in the whole store. A block is
    /// found as soon as it is committed, unless more of them wait to be indexed than one search reads;
    /// those are [counted](AllTodosAnswer::waiting).
    ///
    /// # Errors
    /// When the store fails.
    pub fn search(
        &self,
        request: &AllTodosRequest<'_>,
        embedder: &dyn Embedder,
    ) -> Result<AllTodosAnswer, Error> {
        let (vectors, by_words_alone) = match embedder.embed_question(request.request.query()) {
            Ok(vectors) => (vectors, None),
            Err(error) => (<_>::default(), Some(error)),
        };
        let mut request = *request;
        if let Some(vector) = vectors.row(0) {
            request.request = request.request.vector(embedder, vector);
        }
        let snapshot = self.snapshot()?;
        let answer = match self.answer(&snapshot, &request)? {
            Some(answer) => answer,
            // A volume turned out to be damaged; it is left out now, and what it held is read from
            // the truth.
            None => self.answer(&*self.snapshot()?, &request)?.unwrap_or_default(),
        };
        Ok(AllTodosAnswer { by_words_alone, ..answer })
    }

    /// `None` when a volume turned out to be damaged.
    fn answer(
        &self,
        snapshot: &Snapshot,
        request: &AllTodosRequest<'_>,
    ) -> Result<Option<AllTodosAnswer>, Error> {
        let shelves: Vec<&Shelf> =
            snapshot.volumes.iter().chain(&snapshot.tail).map(Arc::as_ref).collect();
        let blocks = shelves.iter().map(|shelf| u64::from(shelf.blocks)).sum();
        let asked = Asked::new(snapshot, &shelves, request, blocks);
        let Some(asked) = whole(&shelves, asked) else { return Ok(None) };
        let searched: Vec<Result<Searched<'_>, Damage>> =
            shelves.par_iter().map(|shelf| guarded(shelf, || asked.search(shelf))).collect();
        let Ok(searched) = searched.into_iter().collect::<Result<Vec<_>, Damage>>() else {
            return Ok(None);
        };
        let hits = self.hits(&asked, &searched)?;
        Ok(hits.map(|hits| AllTodosAnswer {
            hits,
            blocks,
            waiting: snapshot.waiting,
            ..<_>::default()
        }))
    }

    fn hits(
        &self,
        asked: &Asked<'_>,
        searched: &[Searched<'_>],
    ) -> Result<Option<Vec<Hit>>, Error> {
        let request = &asked.request.request;
        let best = searched.iter().map(|shelf| shelf.found.pool.best()).fold(0.0, f64::max);
        let candidates = asked.candidates(searched, best);
        let mut todos: FxHashMap<u32, Todo> = FxHashMap::default();
        for at in &candidates {
            let no = at.todo(searched);
            if !todos.contains_key(&no)
                && let Some(todo) = self.todo(no)?
            {
                todos.insert(no, todo);
            }
        }
        let ranked: Vec<Result<Option<Ranked>, Error>> = candidates
            .par_iter()
            .map(|at| match todos.get(&at.todo(searched)) {
                Some(todo) => self.rank(asked, searched, best, *at, todo),
                None => Ok(None),
            })
            .collect();
        let ranked = ranked.into_iter().collect::<Result<Vec<_>, Error>>()?;
        let mut ranked: Vec<Ranked> = ranked.into_iter().flatten().collect();
        ranked.sort_by(Ranked::order);
        ranked.truncate(request.k);
        let mut hits = Vec::with_capacity(ranked.len());
        for ranked in ranked {
            let Some(todo) = todos.get(&ranked.at.todo(searched)) else { continue };
            let Some(shelf) = searched.get(ranked.at.shelf) else { continue };
            match self.hit(asked, shelf, best, &ranked, todo)? {
                Ok(hit) => hits.extend(hit),
                Err(_) => {
                    shelf.set_broken();
                    return Ok(None);
                }
            }
        }
        Ok(Some(hits))
    }

    /// The score of a block by its exact vectors; `None` when it is none after all.
    fn rank(
        &self,
        asked: &Asked<'_>,
        searched: &[Searched<'_>],
        best: f64,
        at: At,
        todo: &Todo,
    ) -> Result<Option<Ranked>, Error> {
        let Some(shelf) = searched.get(at.shelf) else { return Ok(None) };
        let Some(entry) = shelf.found.pool.entry(at.n) else { return Ok(None) };
        let (candidate, place) = self.exact(asked, shelf, entry, at.n, todo)?;
        let request = &asked.request.request;
        let says = !candidate.held.is_nothing() && request.ranking != Ranking::Meaning;
        let means = candidate.cosine.is_some_and(|cosine| cosine > 0.0);
        if !(says || means) || !scores::passes(request, &asked.question, &candidate) {
            return Ok(None);
        }
        let mut neighbour: f64 = 0.0;
        for n in shelf.beside(at.n) {
            let Some(entry) = shelf.found.pool.entry(n) else { continue };
            let candidate = match asked.request.is_exhaustive {
                true => self.exact(asked, shelf, entry, n, todo)?.0,
                // A third of it counts, so that what an estimate is wrong by counts for nothing.
                false => estimated(entry, n),
            };
            let base = rank::base(candidate.bm25, candidate.cosine, &asked.question, best);
            neighbour = neighbour.max(base);
        }
        let time = shelf.parts.meta(at.n).map_or(0, |meta| meta.time.0);
        let base = rank::base(candidate.bm25, candidate.cosine, &asked.question, best);
        let beside = Beside { neighbour, dated: asked.dated(time), recent: 0.0 };
        let score = rank::score(base, beside, 0.0, candidate.held, &asked.question);
        let (no, n) = shelf.shelf.place(at.n).map_or((0, 0), |(run, n)| (run.todo, n));
        Ok(Some(Ranked { at, candidate, place, score, newest: (time, no, n) }))
    }

    /// What is known of a block, with the exact cosine of its best vector, and where that is from.
    fn exact(
        &self,
        asked: &Asked<'_>,
        shelf: &Searched<'_>,
        entry: &Entry,
        n: u32,
        todo: &Todo,
    ) -> Result<(Candidate, Option<Place>), Error> {
        let mut candidate = entry.candidate(n);
        let Some(query) = &asked.query else { return Ok((candidate, None)) };
        let Some(disk) = shelf.shelf.disk() else {
            return Ok((candidate, shelf.parts.memory.best_place(query.model, &query.unit, n)));
        };
        let read = self.records.exact_cosine(disk, todo, n, query)?;
        candidate.cosine = read.map(|(cosine, _)| cosine).or(candidate.cosine);
        Ok((candidate, read.map(|(_, place)| place)))
    }

    /// The block of a rank; `None` where it is gone or damaged.
    fn hit(
        &self,
        asked: &Asked<'_>,
        shelf: &Searched<'_>,
        best: f64,
        ranked: &Ranked,
        todo: &Todo,
    ) -> Result<Result<Option<Hit>, Damage>, Error> {
        let Ranked { candidate, place, score, newest: (_, _, n), .. } = ranked;
        let block = match self.records.block(todo, *n) {
            Ok(Some(block)) => block,
            Ok(None) | Err(Error::Corrupt { .. }) => return Ok(Ok(None)),
            Err(error) => return Err(error),
        };
        let evidence = Evidence {
            parts: &shelf.parts,
            question: &asked.question,
            corpus: asked.corpus,
            passages: &shelf.found.passages,
            carriers: &shelf.found.carriers,
        };
        let (terms, own) = match evidence.terms(candidate.n, candidate.held) {
            Ok(terms) => terms,
            Err(damage) => return Ok(Err(damage)),
        };
        let best_passages = evidence.passages(candidate.n, own);
        let passages = evidence.with_carriers(candidate.n, &best_passages);
        let passages = self.passage_hits(shelf.shelf, todo, &block, passages)?;
        Ok(Ok(Some(Hit {
            passages,
            score: score.sum() as f32,
            bm25: candidate.bm25 as f32,
            cosine: candidate.cosine.unwrap_or(0.0),
            exact: asked.question.exact(candidate.held) > 0.0,
            relevance: scores::relevance(&asked.request.request, &asked.question, candidate),
            best_seq: place.map(|place| SeqNo(place.seq)),
            explanation: Explanation {
                terms,
                passage: candidate.passage as f32,
                passage_terms: evidence.passage_terms(&best_passages),
                neighbours: score.neighbour as f32,
                recent: score.recent as f32,
                dated: score.dated as f32,
                best_bm25: best as f32,
                lexical_weight: asked.question.lexical_weight(candidate.cosine.is_some()) as f32,
                bonus: score.exact as f32,
                vectors: asked.vectors.clone(),
            },
            block,
        })))
    }

    /// Passages by the references of the messages that carry them.
    fn passage_hits(
        &self,
        shelf: &Shelf,
        todo: &Todo,
        block: &Block,
        passages: Vec<FoundPassage>,
    ) -> Result<Vec<PassageHit>, Error> {
        if passages.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.records.payload_refs(todo, block)?;
        let id = |n| shelf.place(n).map(|(_, n)| BlockId::new(todo.id().clone(), n));
        let hit = |FoundPassage { meta, score, also_in }: FoundPassage| {
            let payload = known.iter().find(|known| known.n == payload_number(meta.payload))?;
            let ((first_line, last_line), skip) = (meta.place.lines, meta.place.skip);
            let also_in = also_in.into_iter().filter_map(id).collect();
            let (payload, bytes, score) = (payload.clone(), meta.place.bytes, score as f32);
            Some(PassageHit { payload, first_line, last_line, skip, bytes, score, also_in })
        };
        Ok(passages.into_iter().filter_map(hit).collect())
    }
}

/// Does something with a shelf. Files that change under a mapping may bring the engine to a panic;
/// that is damage, and not the end of the process.
fn guarded<T>(shelf: &Shelf, work: impl FnOnce() -> Result<T, Damage>) -> Result<T, Damage> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("it brought the engine to a panic".to_owned()));
    if done.is_err()
        && let Some(disk) = shelf.disk()
    {
        disk.set_broken();
    }
    done
}

/// The value, or nothing where it cannot be told which volume is damaged; then all of them are opened
/// again, and checked.
fn whole<T>(shelves: &[&Shelf], done: Result<T, Damage>) -> Option<T> {
    if done.is_err() {
        shelves
            .iter()
            .filter_map(|shelf| shelf.disk())
            .for_each(crate::disk::DiskIndex::set_broken);
    }
    done.ok()
}

/// The question, ready to be asked of every shelf.
struct Asked<'a> {
    request: &'a AllTodosRequest<'a>,
    snapshot: &'a Snapshot,
    question: Question,
    /// All blocks, and all passages.
    corpus: Corpus,
    told: Corpus,
    days: Vec<Days>,
    vectors: VectorSide,
    query: Option<AskedVector<'a>>,
}

impl<'a> Asked<'a> {
    fn new(
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
        Ok(Self { request: asked, snapshot, question, corpus, told, days, vectors, query })
    }

    /// Looks for the question in one shelf.
    fn search<'s>(&self, shelf: &'s Shelf) -> Result<Searched<'s>, Damage> {
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
            parts.memory.cosines(query.model, &query.unit, |n, cosine| {
                pool.meet(n, Cosine::exact(cosine));
            });
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

    /// Which blocks are of todos that the request allows and that there are; `None` for all.
    fn living(&self, shelf: &Shelf) -> Option<Vec<bool>> {
        let AllTodosRequest { source, folder, .. } = self.request;
        let by_origin: Vec<bool> = shelf
            .origins
            .iter()
            .map(|origin| {
                source.is_none_or(|source| origin.is_of_source(source))
                    && folder.is_none_or(|folder| origin.is_in_folder(folder))
            })
            .collect();
        let is_allowed = |run: &super::catalogue::Run| {
            by_origin.get(run.origin as usize).copied().unwrap_or(false)
                && self.snapshot.living.contains(&run.todo)
        };
        if shelf.runs().all(is_allowed) {
            return None;
        }
        let mut living = Vec::with_capacity(shelf.blocks as usize);
        for run in shelf.runs() {
            let is_allowed = is_allowed(run);
            living.extend((run.first..=run.last).map(|_| is_allowed));
        }
        Some(living)
    }

    /// How near a time is to the days that the question names.
    fn dated(&self, time: i64) -> f64 {
        if self.days.is_empty() { 0.0 } else { nearness(&self.days, time) }
    }

    /// The blocks that may be among the hits, whatever their true cosines within the bounds of their
    /// estimates are; as many of them as are compared exactly.
    fn candidates(&self, searched: &[Searched<'_>], best: f64) -> Vec<At> {
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

    /// The blocks of a shelf that have anything to do with the question, each with the bounds of its
    /// score.
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

/// A shelf, and what of it holds terms of the question.
struct Searched<'s> {
    shelf: &'s Shelf,
    parts: Parts<'s>,
    found: ByWords,
}

impl Searched<'_> {
    /// The blocks before and behind one in its todo, as far as they are on this shelf.
    fn beside(&self, n: u32) -> impl Iterator<Item = u32> {
        let (before, behind) = match self.shelf.place(n) {
            Some((run, place)) => (place > run.first, place < run.last),
            None => (false, false),
        };
        [before.then(|| n - 1), behind.then(|| n + 1)].into_iter().flatten()
    }

    fn set_broken(&self) {
        if let Some(disk) = self.shelf.disk() {
            disk.set_broken();
        }
    }
}

/// A block: its shelf, and its number there.
#[derive(Clone, Copy)]
struct At {
    shelf: usize,
    n: u32,
}

impl At {
    fn todo(self, searched: &[Searched<'_>]) -> u32 {
        let place = searched.get(self.shelf).and_then(|shelf| shelf.shelf.place(self.n));
        place.map_or(0, |(run, _)| run.todo)
    }
}

/// A block with the middle of the bounds of its cosine.
fn estimated(entry: &Entry, n: u32) -> Candidate {
    let Cosine { lower, upper } = entry.cosine;
    let candidate = entry.candidate(n);
    Candidate { cosine: candidate.cosine.map(|_| (lower + upper) / 2.0), ..candidate }
}

/// A block whose score lies between two bounds.
struct Bounded {
    at: At,
    low: f64,
    high: f64,
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

/// A block and its score.
struct Ranked {
    at: At,
    candidate: Candidate,
    place: Option<Place>,
    score: Score,
    /// When it began, its todo's number, and its own there.
    newest: (i64, u32, u32),
}

impl Ranked {
    /// The best first; of equals the newest, wherever an index holds it.
    fn order(a: &Self, b: &Self) -> Ordering {
        let by_score = b.score.sum().total_cmp(&a.score.sum());
        by_score.then_with(|| b.newest.cmp(&a.newest))
    }
}
