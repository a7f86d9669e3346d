//! The JSON API: what the pages ask, and anybody else with the token.

mod answer;
mod blocks;
mod branches;
mod contents;
mod events;
mod failures;
mod hits;
mod messages;
mod openapi;
mod payloads;
mod readable;
mod replays;
mod requests;
mod roster;
mod run_places;
mod runs;
mod savings;
mod search;
mod sent_parts;
mod sessions;

pub(crate) use answer::ApiError;
pub(crate) use sessions::Sessions;

use crate::server::Shared;
use axum::Router;
use axum::routing::{MethodRouter, get};
use std::sync::Arc;

/// Every route, with what answers it.
fn all() -> [(&'static str, MethodRouter<Arc<Shared>>); 15] {
    [
        ("/api/v1/sessions", get(sessions::list)),
        ("/api/v1/sessions/{id}", get(sessions::one)),
        ("/api/v1/sessions/{id}/replay", get(replays::replay)),
        ("/api/v1/sessions/{id}/requests", get(requests::requests)),
        ("/api/v1/sessions/{id}/requests/{number}", get(contents::contents)),
        ("/api/v1/sessions/{id}/branches", get(branches::branches)),
        ("/api/v1/sessions/{id}/runs", get(runs::runs)),
        ("/api/v1/sessions/{id}/blocks", get(blocks::blocks)),
        ("/api/v1/sessions/{id}/messages", get(messages::messages)),
        ("/api/v1/sessions/{id}/payloads", get(payloads::payloads)),
        ("/api/v1/sessions/{id}/payloads/{ref}", get(payloads::payload)),
        ("/api/v1/sessions/{id}/search", get(search::in_session)),
        ("/api/v1/search", get(search::everywhere)),
        ("/api/v1/events", get(events::events)),
        ("/api/v1/openapi.json", get(openapi::openapi)),
    ]
}

/// The routes of the API.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    all().into_iter().fold(Router::new(), |router, (path, answer)| router.route(path, answer))
}
