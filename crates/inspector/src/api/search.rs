//! Searches, in one session and in all.

use super::answer::{ApiError, Asked, Json, Named, raw, reading, session_id};
use super::hits::HitRow;
use crate::server::Shared;
use axum::extract::State;
use foldback::{AllTodosRequest, NotSearched, question_words};
use foldback_blockstore::{Hit, SearchRequest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Instant;
use utoipa::{IntoParams, ToSchema};

/// The blocks that answer a question, best first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Found {
    hits: Vec<HitRow>,
    /// The words of the question that are worth marking in a hit, in lower case.
    words: Vec<String>,
    took_us: u64,
    /// Why the question was not compared by meaning.
    by_words_alone: Option<String>,
    /// How many blocks were searched; only of a search over all sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<u64>,
    /// About how many messages were not searched, because no index holds them yet; only of a search over all sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<u64>,
    /// Damaged, missing or unreadable parts that were not searched, and why.
    #[schema(value_type = Vec<Object>)]
    unsearched: Box<RawValue>,
    /// Further such parts.
    unsearched_more: u64,
}

/// A question.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// The question: words, names, paths, error messages; at most 4,000 characters.
    q: String,
    /// At most this many blocks: 1 to 200.
    #[param(default = 10)]
    k: Option<usize>,
    /// Also blocks that have little to do with the question.
    #[param(default = false)]
    all: Option<bool>,
}

const K: usize = 10;
const QUERY_CHARS: usize = 4_000;

/// A block below this relevance does not answer the question; `foldback search` leaves it out, too.
const CUTOFF: f32 = 0.675;

impl SearchQuery {
    fn checked(self) -> Result<Self, ApiError> {
        let k = self.k.unwrap_or(K);
        if !(1..=SearchRequest::MAX_K).contains(&k) {
            return Err(ApiError::invalid(format!(
                "k is {k}, expected 1 to {}",
                SearchRequest::MAX_K
            )));
        }
        if self.q.trim().is_empty() {
            return Err(ApiError::invalid("q is empty, expected a question"));
        }
        if self.q.chars().count() > QUERY_CHARS {
            return Err(ApiError::invalid(format!("q is longer than {QUERY_CHARS} characters")));
        }
        Ok(self)
    }

    fn request(&self) -> SearchRequest<'_> {
        let cutoff = (!self.all.unwrap_or(false)).then_some(CUTOFF);
        SearchRequest::new(&self.q).k(self.k.unwrap_or(K)).cutoff(cutoff)
    }
}

/// Searches a session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/search",
    params(("id" = String, Path, description = "The session"), SearchQuery),
    responses((status = 200, body = Found), (status = "4XX", body = ApiError))
)]
pub(crate) async fn in_session(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
    Asked(asked): Asked<SearchQuery>,
) -> Result<Json<Found>, ApiError> {
    let (todo, asked) = (session_id(&id)?, asked.checked()?);
    let found = reading(shared, move |shared| {
        let begun = Instant::now();
        let answer = shared.memory.search(&todo, &asked.request())?;
        let by_words_alone = answer.by_words_alone.map(|error| error.to_string());
        found(shared, &asked.q, begun, answer.hits, by_words_alone, &answer.not_searched)
    });
    Ok(Json(found.await?))
}

/// Searches all sessions, as their owner may. What the index over all of them does not hold yet is read from the
/// records, up to some hundreds of blocks.
#[utoipa::path(
    get,
    path = "/api/v1/search",
    params(SearchQuery),
    responses((status = 200, body = Found), (status = "4XX", body = ApiError))
)]
pub(crate) async fn everywhere(
    State(shared): State<Arc<Shared>>,
    Asked(asked): Asked<SearchQuery>,
) -> Result<Json<Found>, ApiError> {
    let asked = asked.checked()?;
    let found = reading(shared, move |shared| {
        let begun = Instant::now();
        let answer = shared.memory.owner().search(&AllTodosRequest::new(asked.request()))?;
        let by_words_alone = answer.by_words_alone.map(|error| error.to_string());
        let (blocks, waiting) = (Some(answer.blocks), Some(answer.waiting));
        let found =
            found(shared, &asked.q, begun, answer.hits, by_words_alone, &answer.not_searched)?;
        Ok(Found { blocks, waiting, ..found })
    });
    Ok(Json(found.await?))
}

fn found(
    shared: &Shared,
    question: &str,
    begun: Instant,
    mut hits: Vec<Hit>,
    by_words_alone: Option<String>,
    not_searched: &NotSearched,
) -> Result<Found, ApiError> {
    // A block that shares neither a word nor any meaning is not an answer.
    hits.retain(|hit| hit.bm25 > 0.0 || hit.cosine > 0.0);
    let unsearched = serde_json::to_string(&not_searched.parts).map_err(ApiError::failed)?;
    Ok(Found {
        hits: hits.iter().map(|hit| HitRow::of(&shared.memory, hit)).collect(),
        words: question_words(question),
        took_us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        by_words_alone,
        blocks: None,
        waiting: None,
        unsearched: raw(&unsearched)?,
        unsearched_more: not_searched.more,
    })
}
