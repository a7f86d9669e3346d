//! A question answered by words and by meaning.

use crate::{Error, Hit, SearchRequest, Searcher};
use foldback_core::{EmbedError, Embedder};

/// The blocks that answer a question.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAnswer {
    /// The blocks, the best first.
    pub hits: Vec<Hit>,
    /// Why the hits were found by words alone, where the embedder could not embed the question.
    pub by_words_alone: Option<EmbedError>,
}

impl SearchAnswer {
    /// The hits, for those to whom words alone are no answer.
    ///
    /// # Errors
    /// When the question could not be embedded.
    pub fn by_meaning(self) -> Result<Vec<Hit>, EmbedError> {
        self.by_words_alone.map_or(Ok(self.hits), Err)
    }
}

impl Searcher {
    /// As [`search`](Self::search), by meaning too: `embedder` makes the question's vector. Where it fails,
    /// the words alone decide, which serves better than no answer, and the answer says so.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_with(
        &self,
        request: &SearchRequest<'_>,
        embedder: &dyn Embedder,
    ) -> Result<SearchAnswer, Error> {
        let (vectors, by_words_alone) = match embedder.embed_question(request.query()) {
            Ok(vectors) => (vectors, None),
            Err(error) => (<_>::default(), Some(error)),
        };
        let hits = match vectors.row(0) {
            Some(vector) => self.search(&request.vector(embedder, vector))?,
            None => self.search(request)?,
        };
        Ok(SearchAnswer { hits, by_words_alone })
    }
}
