//! A search, from the question to the hits.

mod meaning;
mod other_scripts;
mod words;

pub(crate) use meaning::{ExactCosine, vector_side};
pub(crate) use words::{Allows, ByWords, asked_terms, by_words};

use crate::block_doc::BlockMeta;
use crate::disk::{Damage, DiskIndex};
use crate::found_block::{Evidence, FoundBlock};
use crate::memory_index::MemoryIndex;
use crate::omission::Omission;
use crate::parts::Parts;
use crate::rank::{self, Candidate, Corpus, Question, Ranked};
use crate::records::{ReadAhead, Records};
use crate::scores::{AskedVector, Exact, Scores};
use crate::standing::Standing;
use crate::{Error, Explanation, Ranking, SearchRequest};
use foldback_core::{Block, BlockId, SeqRange};
use foldback_kv::Todo;
use parking_lot::RwLock;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The blocks of one todo as they were when it was created. Later commits do not disturb it.
#[derive(Clone)]
pub struct Searcher {
    todo: Todo,
    records: Records,
    disk: Option<Arc<DiskIndex>>,
    memory: Arc<RwLock<MemoryIndex>>,
    /// How many blocks of `memory` belong to the snapshot.
    in_memory: usize,
    /// How many blocks are closed.
    blocks: u32,
    open: Option<Arc<OpenBlock>>,
}

/// The open messages, searched as the block after the last closed one.
pub(crate) struct OpenBlock {
    block: Block,
    index: MemoryIndex,
}

impl OpenBlock {
    /// Returns about how much memory it uses.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.index.bytes()
    }

    /// Returns whether all of it is searched.
    pub(crate) fn is_whole(&self) -> bool {
        self.index.omissions().is_empty()
    }
}

impl Searcher {
    pub(crate) fn new(
        todo: Todo,
        records: Records,
        disk: Option<Arc<DiskIndex>>,
        memory: Arc<RwLock<MemoryIndex>>,
        blocks: u32,
    ) -> Self {
        let in_memory = memory.read().len();
        Self { todo, records, disk, memory, in_memory, blocks, open: None }
    }

    /// Returns the same snapshot with the open messages searched too, as the block that they would be if they were
    /// closed now, whose number is the next one. Those that have been closed since are not added; the ones after them
    /// remain open.
    ///
    /// Costs as much as indexing one block.
    ///
    /// # Errors
    /// When the store fails.
    pub fn with_open(self, block: Block) -> Result<Self, Error> {
        let records = self.records.clone();
        self.with_open_of(&records, block)
    }

    /// Like [`with_open`](Self::with_open), with records that may have been read ahead.
    pub(crate) fn with_open_of(mut self, records: &Records, block: Block) -> Result<Self, Error> {
        let Some(block) = self.still_open(block)? else { return Ok(self) };
        let memory = self.memory.read();
        let on_disk = |n| self.disk.as_ref().is_some_and(|disk| disk.carried.holds(n));
        let is_known = |n| memory.carries(n) || on_disk(n);
        let room = memory.passage_room();
        let index = MemoryIndex::of_open(records, &self.todo, &block, room, is_known)?;
        drop(memory);
        self.open = Some(Arc::new(OpenBlock { block, index }));
        Ok(self)
    }

    /// Returns the same snapshot with open messages that were [added](Self::with_open) to it before.
    pub(crate) fn with_known_open(self, open: Option<Arc<OpenBlock>>) -> Self {
        Self { open, ..self }
    }

    /// Returns the open messages that are searched.
    pub(crate) fn known_open(&self) -> Option<Arc<OpenBlock>> {
        self.open.clone()
    }

    /// Returns the open messages that no closed block holds and that are searched. Its description is that of the
    /// whole.
    fn still_open(&self, mut block: Block) -> Result<Option<Block>, Error> {
        let next = self.blocks.saturating_add(1);
        if block.header.block_id.n() >= next {
            return Ok(Some(block).filter(|block| block.header.block_id.n() == next));
        }
        let closed = match self.records.block(&self.todo, self.blocks) {
            Err(Error::Corrupt { .. }) => None,
            closed => closed?,
        };
        let range =
            closed.and_then(|closed| SeqRange::new(closed.range.last().next(), block.range.last()));
        Ok(range.map(|range| {
            block.header.block_id = BlockId::new(self.todo.id().clone(), next);
            block.range = range;
            block
        }))
    }

    /// Returns the number of the last block that is searched.
    fn last(&self) -> u32 {
        self.blocks + u32::from(self.open.is_some())
    }

    /// Returns the block with this number, closed or open. It may have been read ahead.
    pub(crate) fn block(&self, n: u32, ahead: &ReadAhead) -> Result<Option<Block>, Error> {
        let open = self.open.as_ref().map(|open| &open.block);
        match open.filter(|open| open.header.block_id.n() == n) {
            Some(open) => Ok(Some(open.clone())),
            None => self.records.block_ahead(&self.todo, n, ahead),
        }
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    /// Returns the todo that is searched, and no other.
    #[must_use]
    pub fn todo(&self) -> &Todo {
        &self.todo
    }

    /// Returns how many closed blocks are searched.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Returns how many of them are searched in an index on disk.
    #[must_use]
    pub fn blocks_on_disk(&self) -> u32 {
        self.disk.as_ref().map_or(0, |disk| disk.blocks())
    }

    /// Loads the graph over the vectors of the index on disk, if there is one, and returns how many it holds. Searches
    /// do not wait for it: they start to load it in a thread of its own, and compare the question with every vector
    /// until it is loaded.
    pub fn load_graph(&self) -> usize {
        let Some(disk) = &self.disk else { return 0 };
        let Some(graph) = disk.graph.as_ref().filter(|graph| graph.load().is_some()) else {
            return 0;
        };
        disk.codes.groups().iter().map(|group| graph.rows_of(group)).sum()
    }

    /// Returns the parts of the blocks that are not searched.
    pub(crate) fn omissions(&self) -> Vec<Omission> {
        let on_disk = self.disk.as_ref().map_or(&[][..], |disk| disk.omissions());
        // The payloads that it lacks were tried again, into memory.
        let mut omissions: Vec<Omission> =
            on_disk.iter().filter(|omission| omission.payload().is_none()).cloned().collect();
        omissions.extend_from_slice(self.memory.read().omissions());
        omissions
            .extend_from_slice(self.open.as_ref().map_or(&[][..], |open| open.index.omissions()));
        omissions
    }

    /// The index on disk was whole when it was opened, and no longer is.
    pub(crate) fn set_broken(&self) {
        if let Some(disk) = &self.disk {
            disk.set_broken();
        }
    }

    /// Returns the same blocks, searched without the index on disk.
    pub(crate) fn without_index(&self) -> Result<Self, Error> {
        let room = self.memory.read().passage_room();
        let memory = RwLock::new(MemoryIndex::starting_at(1, room));
        MemoryIndex::append(&memory, &self.records, &self.todo, None, 1..=self.blocks)?;
        let (todo, records) = (self.todo.clone(), self.records.clone());
        let searcher = Self::new(todo, records, None, Arc::new(memory), self.blocks);
        match &self.open {
            Some(open) => searcher.with_open(open.block.clone()),
            None => Ok(searcher),
        }
    }

    /// Returns the cosine of a block's best vector from the truth, if an index on disk holds the block.
    pub(crate) fn exact_cosine(
        &self,
        n: u32,
        query: &AskedVector<'_>,
        ahead: &ReadAhead,
    ) -> Result<ExactCosine, Error> {
        match &self.disk {
            Some(disk) => self.records.exact_cosine(disk, &self.todo, n, query, ahead),
            None => Ok(ExactCosine::default()),
        }
    }

    pub(crate) fn find_checked(&self, request: &SearchRequest<'_>) -> Result<Found, Trouble> {
        if self.disk.is_none() {
            return self.find(request);
        }
        // Files that change under a mapping may make the engine panic; that is damage, and not the end of the process.
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.find(request))) {
            Ok(found) => found,
            Err(_) => Err(Trouble::Index),
        }
    }

    pub(crate) fn find(&self, request: &SearchRequest<'_>) -> Result<Found, Trouble> {
        let memory = self.memory.read();
        let open = self.open.as_ref().map(|open| open.index.until(1));
        let parts =
            Parts { disk: self.disk.as_deref(), memory: memory.until(self.in_memory), open };
        let corpus = Corpus { texts: u64::from(self.last()), terms: parts.terms() };
        let (vectors, query) = vector_side(request, &parts.models());
        let lexical = query.as_ref().map_or(1.0, |query| query.lexical);
        let told = Corpus { texts: parts.passages() as u64, terms: parts.passage_terms() };
        let question = ask(request, corpus, told, lexical, &parts)?;

        let allows: Allows<'_> = &|_, meta| allows(request, meta);
        let allows = is_filtered(request).then_some(allows);
        let by_words = by_words(self.last(), &question, (corpus, told), &parts, allows)?;
        let ByWords { mut pool, passages, carriers } = by_words;
        let best = pool.best();
        if let Some(query) = &query {
            parts.cosines(query, &mut pool);
            self.estimate(request, &question, query, best, &mut pool);
        }
        let looked = rank::other_scripts::look(request, &question, vec![&mut pool]);

        let standing = Standing::new(request, &parts, self.last());
        let scores = Scores::new(request, &question, &standing, &pool, best);
        let mut exact = Exact::new(self, query.as_ref(), &scores);
        let (selected, leader) = exact.select()?;
        let mut ranked = Vec::new();
        for n in selected {
            let Some(candidate) = exact.candidate(n)? else { continue };
            let says = !candidate.held.is_nothing() && request.ranking != Ranking::Meaning;
            let means = candidate.cosine.is_some_and(|cosine| cosine > 0.0);
            if (says || means) && scores.passes(&candidate) {
                let score = scores.score(&candidate, exact.neighbour(n)?, leader);
                ranked.push(Ranked { candidate, score });
            }
        }
        rank::order(&mut ranked);
        ranked.truncate(request.k);
        if let Some(looked) = looked {
            ranked = other_scripts::place(ranked, looked, (&scores, &mut exact, leader))?;
        }
        let evidence = Evidence {
            parts: &parts,
            question: &question,
            corpus,
            passages: &passages,
            carriers: &carriers,
        };
        let mut found = Vec::with_capacity(ranked.len());
        for ranked in ranked {
            let Candidate { n, held, passage, cosine, .. } = ranked.candidate;
            let place = exact.place(n).or_else(|| {
                let query = query.as_ref()?;
                parts.view_of(n).best_place(query.model, &query.unit, n)
            });
            let (terms, own) = evidence.terms(n, held)?;
            let best_passages = evidence.passages(n, own);
            found.push(FoundBlock {
                ranked,
                place,
                relevance: scores.relevance(&ranked.candidate),
                exact: question.exact(held) > 0.0,
                explanation: Explanation {
                    terms,
                    passage: passage as f32,
                    passage_terms: evidence.passage_terms(&best_passages),
                    neighbours: ranked.score.neighbour as f32,
                    recent: ranked.score.recent as f32,
                    dated: ranked.score.dated as f32,
                    best_bm25: best as f32,
                    lexical_weight: question.lexical_weight(cosine.is_some()) as f32,
                    bonus: ranked.score.exact as f32,
                    another_script: ranked.candidate.another_script,
                    vectors: vectors.clone(),
                },
                passages: evidence.with_carriers(n, &best_passages),
            });
        }
        Ok(Found { blocks: found, omissions: exact.into_omissions() })
    }
}

/// The findings of a search.
#[derive(Default)]
pub(crate) struct Found {
    /// The best first.
    pub(crate) blocks: Vec<FoundBlock>,
    /// The vectors that can no longer be read.
    pub(crate) omissions: Vec<Omission>,
}

/// Why a search did not finish.
pub(crate) enum Trouble {
    /// The index on disk can no longer be used.
    Index,
    Store(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<Damage> for Trouble {
    fn from(_: Damage) -> Self {
        Self::Index
    }
}

/// Returns the question's terms with their weights.
fn ask(
    request: &SearchRequest<'_>,
    corpus: Corpus,
    told: Corpus,
    lexical: f64,
    parts: &Parts<'_>,
) -> Result<Question, Damage> {
    let asked = asked_terms(request, |text| Ok((parts.df(text)?, parts.passage_df(text)?)))?;
    Ok(Question::new(asked, corpus, told, lexical, request.ranking))
}

pub(crate) fn is_filtered(request: &SearchRequest<'_>) -> bool {
    request.block_type.is_some() || request.since.is_some() || request.until.is_some()
}

pub(crate) fn allows(request: &SearchRequest<'_>, meta: BlockMeta) -> bool {
    request.block_type.is_none_or(|block_type| block_type == meta.block_type)
        && request.since.is_none_or(|since| meta.time >= since)
        && request.until.is_none_or(|until| meta.time <= until)
}
