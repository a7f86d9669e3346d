//! The replay of a session, which shows what a model is sent at each call.

use super::answer::{ApiError, Json, Named, noted, raw, reading, session_id};
use crate::pictures::Undrawn;
use crate::server::Shared;
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

/// What a session's page draws of its replay.
#[derive(Serialize, ToSchema)]
pub(crate) struct Replay {
    /// The policies that are compared, and the figures of a replay, as in `foldback replay --json`. Null if the session
    /// cannot be replayed.
    #[schema(value_type = Option<Object>)]
    index: Option<Box<RawValue>>,
    /// The data of the page of `foldback replay --report`: messages, calls with the prompt of each, blocks, payloads,
    /// searches. Null if the session cannot be replayed.
    #[schema(value_type = Option<Object>)]
    picture: Option<Box<RawValue>>,
    /// Why it is not replayed: it is damaged, or has over 10,000 messages or 32 MB of them.
    undrawn: Option<String>,
}

/// Replays the record of a session into memory, so that the transcript can be shown beside what a model sees at each
/// call. That takes milliseconds a message; the last few replays are kept.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/replay",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = Replay), (status = "4XX", body = ApiError))
)]
pub(crate) async fn replay(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
) -> Result<Json<Replay>, ApiError> {
    let todo = session_id(&id)?;
    let replay = reading(shared, move |shared| {
        // A session that does not exist is an error.
        shared.memory.len(&todo)?;
        noted(shared, Some(&todo), "inspect", &[])?;
        let by_gateway = shared.sessions.savings(&todo)?.is_some();
        let memory = &shared.memory;
        let now = || Ok((memory.find(&todo)?.no(), memory.len(&todo)?));
        let now = || now().map_err(|error: foldback::Error| error.to_string());
        match shared.pictures.of(memory, &todo, now, by_gateway) {
            Ok(drawn) => Ok(Replay {
                index: Some(raw(&drawn.index)?),
                picture: drawn.picture.as_deref().map(raw).transpose()?,
                undrawn: None,
            }),
            Err(Undrawn::Failed(why)) => {
                Ok(Replay { index: None, picture: None, undrawn: Some(why) })
            }
            Err(Undrawn::Busy) => {
                Err(ApiError::busy("other sessions are being replayed; ask again in a moment"))
            }
        }
    });
    Ok(Json(replay.await?))
}
