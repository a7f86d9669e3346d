//! A question answered by words and by meaning.

use crate::found_block::{FoundBlock, FoundPassage};
use crate::omission::{Omission, OmissionPart};
use crate::records::ReadAhead;
use crate::searcher::{Found, Trouble};
use crate::{
    Error, Hit, NotSearched, PassageHit, SearchRequest, Searcher, Unsearched, WhyUnsearched,
};
use foldback_core::{Block, BlockId, EmbedError, Embedder, SeqNo};
use foldback_kv::Space;

/// The blocks that answer a question.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAnswer {
    /// The blocks, the best first.
    pub hits: Vec<Hit>,
    /// Why the hits were found by words alone, if the embedder could not embed the question.
    pub by_words_alone: Option<EmbedError>,
    /// What was not searched, and why.
    pub not_searched: NotSearched,
}

impl SearchAnswer {
    /// Returns the hits, for callers that do not accept hits found by words alone.
    ///
    /// # Errors
    /// When the question could not be embedded.
    pub fn by_meaning(self) -> Result<Vec<Hit>, EmbedError> {
        self.by_words_alone.map_or(Ok(self.hits), Err)
    }
}

impl Searcher {
    /// Returns the hits of an [`answer`](Self::answer), for callers who know that the store is whole.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn search(&self, request: &SearchRequest<'_>) -> Result<Vec<Hit>, Error> {
        Ok(self.answer(request)?.hits)
    }

    /// Like [`answer`](Self::answer), but searches by meaning too: `embedder` makes the question's vector. If it fails,
    /// the words alone decide, which is better than no answer, and the answer says so.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn search_with(
        &self,
        request: &SearchRequest<'_>,
        embedder: &dyn Embedder,
    ) -> Result<SearchAnswer, Error> {
        let (vectors, by_words_alone) = match embedder.embed_question(request.query()) {
            Ok(vectors) => (vectors, None),
            Err(error) => (<_>::default(), Some(error)),
        };
        let answer = match vectors.row(0) {
            Some(vector) => self.answer(&request.vector(embedder, vector))?,
            None => self.answer(request)?,
        };
        Ok(SearchAnswer { by_words_alone, ..answer })
    }

    /// Returns the blocks that answer the request, the best first. Damage keeps nothing else from being found: the
    /// answer says what was not searched.
    ///
    /// The cost is bounded whatever the question holds: it is not parsed as a query language, and its length, its terms
    /// and the number of hits are capped.
    ///
    /// # Errors
    /// When the store fails.
    pub fn answer(&self, request: &SearchRequest<'_>) -> Result<SearchAnswer, Error> {
        match self.find_checked(request) {
            Ok(found) => self.answered(found),
            Err(Trouble::Store(error)) => Err(error),
            Err(Trouble::Index) => {
                self.set_broken();
                let searcher = self.without_index()?;
                match searcher.find(request) {
                    Ok(found) => searcher.answered(found),
                    Err(Trouble::Store(error)) => Err(error),
                    Err(Trouble::Index) => searcher.answered(Found::default()),
                }
            }
        }
    }

    fn answered(&self, found: Found) -> Result<SearchAnswer, Error> {
        let mut omissions = self.omissions();
        omissions.extend(found.omissions);
        let (records, todo) = (self.records(), self.todo());
        let numbers = found.blocks.iter().map(|found| u64::from(found.ranked.candidate.n));
        let ahead = records.read_ahead(todo, Space::Block, numbers)?;
        let mut blocks = Vec::with_capacity(found.blocks.len());
        for found in found.blocks {
            let n = found.ranked.candidate.n;
            blocks.extend(self.found_block(n, &ahead, &mut omissions)?.map(|block| (found, block)));
        }
        let carrying = blocks.iter().filter(|(found, _)| !found.passages.is_empty());
        let seqs = carrying.flat_map(|(_, block)| block.range.as_u64());
        let ahead = records.read_ahead(todo, Space::Message, seqs)?;
        let mut hits = Vec::with_capacity(blocks.len());
        for (found, block) in blocks {
            hits.push(self.hit(found, block, &ahead, &mut omissions)?);
        }
        let unsearched =
            omissions.into_iter().filter_map(|omission| Unsearched::of(todo.id(), omission));
        let not_searched = NotSearched::of(unsearched.collect());
        Ok(SearchAnswer { hits, by_words_alone: None, not_searched })
    }

    /// Returns the record of a block that was found; `None` if it can no longer be read.
    fn found_block(
        &self,
        n: u32,
        ahead: &ReadAhead,
        omissions: &mut Vec<Omission>,
    ) -> Result<Option<Block>, Error> {
        let mut lack = |why| omissions.push(Omission { block: n, part: OmissionPart::Block, why });
        match self.block(n, ahead) {
            Ok(Some(block)) => Ok(Some(block)),
            Ok(None) => {
                // A todo that has been forgotten meanwhile lacks nothing.
                if self.records().last_block_n(self.todo())? > 0 {
                    lack(WhyUnsearched::Missing);
                }
                Ok(None)
            }
            Err(Error::Corrupt { .. }) => {
                lack(WhyUnsearched::Damaged);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the hit of a block that was found.
    fn hit(
        &self,
        found: FoundBlock,
        block: Block,
        ahead: &ReadAhead,
        omissions: &mut Vec<Omission>,
    ) -> Result<Hit, Error> {
        let FoundBlock { ranked, place, passages, relevance, exact, explanation } = found;
        let passages = self.passage_hits(&block, passages, ahead, omissions)?;
        Ok(Hit {
            block,
            passages,
            score: ranked.score.sum() as f32,
            bm25: ranked.candidate.bm25 as f32,
            cosine: ranked.candidate.cosine.unwrap_or(0.0),
            exact,
            relevance,
            best_seq: place.map(|place| SeqNo(place.seq)),
            explanation,
        })
    }

    /// Passages by the references of the messages that carry them. One whose message cannot be read
    /// is left out.
    fn passage_hits(
        &self,
        block: &Block,
        passages: Vec<FoundPassage>,
        ahead: &ReadAhead,
        omissions: &mut Vec<Omission>,
    ) -> Result<Vec<PassageHit>, Error> {
        if passages.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.records().payload_refs(self.todo(), block, ahead, omissions)?;
        let hit = |FoundPassage { meta, score, also_in }: FoundPassage| {
            let payload = known.iter().find(|known| known.n == meta.payload)?.clone();
            let (first_line, last_line) = meta.place.lines;
            let (bytes, skip) = (meta.place.bytes, meta.place.skip);
            let id = |n| BlockId::new(self.todo().id().clone(), n);
            let also_in = also_in.into_iter().map(id).collect();
            let score = score as f32;
            Some(PassageHit { payload, first_line, last_line, skip, bytes, score, also_in })
        };
        Ok(passages.into_iter().filter_map(hit).collect())
    }
}
