//! A question to all todos, from its words to the hits.

use super::asked::{Asked, At, Searched};
use super::shelf::{Shelf, payload_number};
use super::snapshot::Snapshot;
use super::{AllTodos, AllTodosAnswer, AllTodosRequest};
use crate::block_doc::Place;
use crate::disk::Damage;
use crate::found_block::{Evidence, FoundPassage};
use crate::omission::{Omission, OmissionPart};
use crate::pool::{Cosine, Entry};
use crate::rank::other_scripts::{Looked, look};
use crate::rank::{self, Beside, Candidate, Score};
use crate::records::ReadAhead;
use crate::scores;
use crate::searcher::ExactCosine;
use crate::{Error, Explanation, Hit, PassageHit, Ranking, WhyUnsearched};
use foldback_core::{Block, BlockId, Embedder, SeqNo};
use foldback_kv::Todo;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A search is restarted this many times when volumes turn out to be damaged.
const TRIES: usize = 4;

impl AllTodos {
    /// Returns the blocks of all todos that answer the request best, by words and by meaning: `embedder` makes the
    /// question's vector. Words are weighted by how rare they are in the whole store. A block is found as soon as it is
    /// committed, unless more blocks wait to be indexed than one search reads; those are
    /// [counted](AllTodosAnswer::waiting).
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
        for _ in 0..TRIES {
            // A volume that turned out to be damaged is left out the next time, and its contents are read from the
            // truth.
            if let Some(answer) = self.answer(&*self.snapshot()?, &request)? {
                return Ok(AllTodosAnswer { by_words_alone, ..answer });
            }
        }
        let path = self.folder.as_ref().map(|folder| folder.root().to_owned());
        let detail = "its volumes were damaged each time they were read".to_owned();
        Err(Error::Index { path: path.unwrap_or_default(), doing: "searched", detail })
    }

    /// Returns `None` when a volume turned out to be damaged.
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
        let Ok(mut searched) = searched.into_iter().collect::<Result<Vec<_>, Damage>>() else {
            return Ok(None);
        };
        let pools = searched.iter_mut().map(|shelf| &mut shelf.found.pool).collect();
        let looked = look(&asked.request.request, &asked.question, pools);
        let Some(hits) = self.hits(&asked, &searched, looked)? else { return Ok(None) };
        let not_searched = asked.not_searched(&shelves, |no| self.todo(no))?;
        let (waiting, by_words_alone) = (snapshot.waiting, None);
        Ok(Some(AllTodosAnswer { hits, by_words_alone, blocks, waiting, not_searched }))
    }

    fn hits(
        &self,
        asked: &Asked<'_>,
        searched: &[Searched<'_>],
        looked: Option<Looked<'_, '_>>,
    ) -> Result<Option<Vec<Hit>>, Error> {
        let request = &asked.request.request;
        let best = searched.iter().map(|shelf| shelf.found.pool.best()).fold(0.0, f64::max);
        let mut todos: FxHashMap<u32, Todo> = FxHashMap::default();
        let candidates = asked.candidates(searched, best);
        let mut ranked = self.ranked(asked, searched, best, candidates, &mut todos)?;
        ranked.sort_by(Ranked::order);
        ranked.truncate(request.k);
        if let Some(Looked { placing, near }) = looked {
            let near = near.into_iter().map(|((shelf, n), cosine)| (At { shelf, n }, cosine));
            let order = |a: &At, b: &At| (b.shelf, b.n).cmp(&(a.shelf, a.n));
            let others = placing.nearest(near.collect(), asked.request.is_exhaustive, order);
            let mut others = self.ranked(asked, searched, best, others, &mut todos)?;
            others.retain(|one| placing.is_near(&one.candidate));
            others.sort_by(Ranked::by_meaning);
            ranked = placing.interleave(ranked, others, |a, b| a.at == b.at, |one| &one.candidate);
        }
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

    /// Scores these blocks by their exact vectors. Blocks that turn out to have no score are left out. Their todos are
    /// added to `todos`.
    fn ranked(
        &self,
        asked: &Asked<'_>,
        searched: &[Searched<'_>],
        best: f64,
        blocks: Vec<At>,
        todos: &mut FxHashMap<u32, Todo>,
    ) -> Result<Vec<Ranked>, Error> {
        for at in &blocks {
            let no = at.todo(searched);
            if !todos.contains_key(&no)
                && let Some(todo) = self.todo(no)?
            {
                todos.insert(no, todo);
            }
        }
        let ranked: Vec<Result<Option<Ranked>, Error>> = blocks
            .par_iter()
            .map(|at| match todos.get(&at.todo(searched)) {
                Some(todo) => self.rank(asked, searched, best, *at, todo),
                None => Ok(None),
            })
            .collect();
        let ranked = ranked.into_iter().collect::<Result<Vec<_>, Error>>()?;
        Ok(ranked.into_iter().flatten().collect())
    }

    /// Returns the score of a block by its exact vectors; `None` when it has none after all.
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
                // A third of it counts, so that the error of an estimate does not matter.
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

    /// Returns the data of a block, with the exact cosine of its best vector, and the source of that vector.
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
        let ahead = ReadAhead::default();
        let ExactCosine { best, omissions } =
            self.records.exact_cosine(disk, todo, n, query, &ahead)?;
        asked.lose(todo, omissions);
        candidate.cosine = best.map(|(cosine, _)| cosine).or(candidate.cosine);
        Ok((candidate, best.map(|(_, place)| place)))
    }

    /// Returns the block of a rank; `None` if it is gone or damaged.
    fn hit(
        &self,
        asked: &Asked<'_>,
        shelf: &Searched<'_>,
        best: f64,
        ranked: &Ranked,
        todo: &Todo,
    ) -> Result<Result<Option<Hit>, Damage>, Error> {
        let Ranked { candidate, place, score, newest: (_, _, n), .. } = ranked;
        let lack =
            |why| asked.lose(todo, vec![Omission { block: *n, part: OmissionPart::Block, why }]);
        let block = match self.records.block(todo, *n) {
            Ok(Some(block)) => block,
            Ok(None) => {
                // A todo that has been forgotten meanwhile lacks nothing.
                if self.records.last_block_n(todo)? > 0 {
                    lack(WhyUnsearched::Missing);
                }
                return Ok(Ok(None));
            }
            Err(Error::Corrupt { .. }) => {
                lack(WhyUnsearched::Damaged);
                return Ok(Ok(None));
            }
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
        let mut omissions = Vec::new();
        let passages = self.passage_hits(shelf.shelf, (todo, &block), passages, &mut omissions)?;
        asked.lose(todo, omissions);
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
                another_script: candidate.another_script,
                vectors: asked.vectors.clone(),
            },
            block,
        })))
    }

    /// Passages by the references of the messages that carry them. Those that cannot be read go to `omissions`.
    fn passage_hits(
        &self,
        shelf: &Shelf,
        (todo, block): (&Todo, &Block),
        passages: Vec<FoundPassage>,
        omissions: &mut Vec<Omission>,
    ) -> Result<Vec<PassageHit>, Error> {
        if passages.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.records.payload_refs(todo, block, &ReadAhead::default(), omissions)?;
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

/// Runs `work` on a shelf. Files that change under a mapping may make the engine panic; that is damage, and not the end
/// of the process.
fn guarded<T>(shelf: &Shelf, work: impl FnOnce() -> Result<T, Damage>) -> Result<T, Damage> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("it made the engine panic".to_owned()));
    if done.is_err()
        && let Some(disk) = shelf.disk()
    {
        disk.set_broken();
    }
    done
}

/// Returns the value, or nothing if it is unknown which volume is damaged; then all of them are opened again, and
/// checked.
fn whole<T>(shelves: &[&Shelf], done: Result<T, Damage>) -> Option<T> {
    if done.is_err() {
        shelves
            .iter()
            .filter_map(|shelf| shelf.disk())
            .for_each(crate::disk::DiskIndex::set_broken);
    }
    done.ok()
}

/// Returns a block with the middle of the bounds of its cosine.
fn estimated(entry: &Entry, n: u32) -> Candidate {
    let Cosine { lower, upper } = entry.cosine;
    let candidate = entry.candidate(n);
    Candidate { cosine: candidate.cosine.map(|_| (lower + upper) / 2.0), ..candidate }
}

/// A block and its score.
struct Ranked {
    at: At,
    candidate: Candidate,
    place: Option<Place>,
    score: Score,
    /// Its start, its todo's number, and its own number there.
    newest: (i64, u32, u32),
}

impl Ranked {
    /// Orders the best first; among equals the newest, whichever index holds it.
    fn order(a: &Self, b: &Self) -> Ordering {
        let by_score = b.score.sum().total_cmp(&a.score.sum());
        by_score.then_with(|| b.newest.cmp(&a.newest))
    }

    /// Orders the nearest in meaning first.
    fn by_meaning(a: &Self, b: &Self) -> Ordering {
        let cosine = |ranked: &Self| ranked.candidate.cosine.unwrap_or(f32::NEG_INFINITY);
        cosine(b).total_cmp(&cosine(a)).then_with(|| b.newest.cmp(&a.newest))
    }
}
