//! The requests of a session that passed through the gateway, from its ledger.

use super::answer::{ApiError, Json, Named, noted, reading, session_id};
use super::sent_parts::{changed_from, messages_left_out, tools_changed};
use crate::server::Shared;
use axum::extract::State;
use foldback_gateway::{Bill, Entry};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Requests in the order in which they were answered.
#[derive(Serialize, ToSchema)]
pub(crate) struct RequestList {
    /// How many there are in all.
    total: usize,
    /// The last of them, at most 10,000.
    requests: Vec<Request>,
}

/// A request, what it cost, and what it would have cost in full.
#[derive(Serialize, ToSchema)]
struct Request {
    /// Its number among all of the session, from 1.
    number: usize,
    /// When it was made, in RFC 3339.
    at: String,
    model: String,
    /// What it was for.
    class: String,
    sent: RequestBill,
    /// What would have been sent in full.
    whole: RequestBill,
    /// The tokens of the answer.
    output: u64,
    /// The recalls of the model within the turn: how many requests, and their cost.
    recalls: u64,
    recalls_cost: f64,
    /// Whether its tokens are estimated.
    is_estimate: bool,
    /// How many messages were recorded when it was made; null if it is not recorded which messages it had.
    after: Option<u64>,
    /// How many messages of the client's conversation it left out; null as `after`.
    left_out: Option<u64>,
    /// The first recorded message that the request before had and that this one left out or has in another form: what a
    /// provider's cache holds is of use up to there. Null if there is none, or as `after`.
    changed_from: Option<u64>,
    /// Whether it had other tools than the request before, the gateway's included: they come before the messages, so that
    /// a cache is of no use. Null if it is not recorded which tools either had.
    tools_changed: Option<bool>,
}

/// Tokens and cost. Costs are in weighted tokens (tokens at the plain price of the model) and cover the input.
#[derive(Serialize, ToSchema)]
struct RequestBill {
    tokens: u64,
    /// Those that were read from a cache.
    read: u64,
    /// Those that were written to a cache.
    written: u64,
    cost: f64,
}

/// How many requests are listed.
const MOST: usize = 10_000;

/// Lists what the gateway sent in a session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/requests",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = RequestList), (status = "4XX", body = ApiError))
)]
pub(crate) async fn requests(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
) -> Result<Json<RequestList>, ApiError> {
    let todo = session_id(&id)?;
    let list = reading(shared, move |shared| {
        shared.memory.len(&todo)?;
        noted(shared, Some(&todo), "inspect", &[])?;
        let last = |total: usize| total.saturating_sub(MOST)..total;
        let (total, last) = shared.sessions.ledgers.entries(todo.as_str(), last)?;
        let before = total - last.len();
        let earlier = std::iter::once(None).chain(last.iter().map(Some));
        let requests = (before + 1..).zip(last.iter().zip(earlier));
        let requests =
            requests.map(|(number, (entry, before))| Request::new(number, entry, before));
        Ok(RequestList { total, requests: requests.collect() })
    });
    Ok(Json(list.await?))
}

impl Request {
    fn new(number: usize, entry: &Entry, before: Option<&Entry>) -> Self {
        let contents = entry.contents.as_ref();
        let asked = contents.map(|contents| &contents.asked);
        let both = before.and_then(|before| before.contents.as_ref()).zip(contents);
        Self {
            number,
            at: entry.at.to_rfc3339(),
            model: entry.model.clone(),
            class: entry.class.clone(),
            sent: (&entry.sent).into(),
            whole: (&entry.whole).into(),
            output: entry.output,
            recalls: entry.recalls.requests,
            recalls_cost: entry.recalls.cost,
            is_estimate: entry.is_estimate,
            after: asked.and_then(|asked| asked.iter().map(|(_, end)| *end).max()),
            left_out: contents.map(messages_left_out),
            changed_from: both.and_then(|(before, now)| changed_from(before, now)),
            tools_changed: both.and_then(|(before, now)| tools_changed(before, now)),
        }
    }
}

impl From<&Bill> for RequestBill {
    fn from(bill: &Bill) -> Self {
        let tokens = &bill.tokens;
        Self { tokens: tokens.total(), read: tokens.read, written: tokens.written, cost: bill.cost }
    }
}
