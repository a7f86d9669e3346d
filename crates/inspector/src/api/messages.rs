//! The messages of a session, exactly as they were recorded.

use super::answer::{ApiError, Asked, Json, Named, noted, raw, reading, session_id};
use crate::server::Shared;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Messages of a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessageList {
    /// How many the session has.
    total: u64,
    messages: Vec<Numbered>,
    /// The first message that was asked for and is left out, because the answer would exceed 4 MB with it; null if there is
    /// none. One message is always given, whatever its size.
    next: Option<u64>,
}

/// A message and its number.
#[derive(Serialize, ToSchema)]
struct Numbered {
    seq: u64,
    /// The message, exactly as it was recorded.
    #[schema(value_type = Object)]
    message: Box<RawValue>,
}

/// Which messages are read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessagesQuery {
    /// The first message, counted from 0.
    #[param(default = 0)]
    from: Option<u64>,
    /// The end: the number after the last message, at most 1,000 after `from`. Without it, 100 messages are read.
    to: Option<u64>,
}

/// How many messages are read, unless asked otherwise, and at most.
const MESSAGES: u64 = 100;
const MESSAGES_MOST: u64 = 1_000;

/// The most bytes of messages in one answer.
const BYTES_MOST: usize = 4_000_000;

/// How many messages are in memory beside those of the answer.
const STEP: u64 = 8;

/// Reads messages of a session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/messages",
    params(("id" = String, Path, description = "The session"), MessagesQuery),
    responses((status = 200, body = MessageList), (status = "4XX", body = ApiError))
)]
pub(crate) async fn messages(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
    Asked(asked): Asked<MessagesQuery>,
) -> Result<Json<MessageList>, ApiError> {
    let todo = session_id(&id)?;
    let from = asked.from.unwrap_or(0);
    let to = asked.to.unwrap_or_else(|| from.saturating_add(MESSAGES));
    if to < from || to - from > MESSAGES_MOST {
        let what = format!(
            "messages {from} to {to}: expected a range of at most {MESSAGES_MOST}, first before last"
        );
        return Err(ApiError::invalid(what));
    }
    let list = reading(shared, move |shared| {
        noted(shared, Some(&todo), "inspect", &[])?;
        let total = shared.memory.len(&todo)?;
        let (from, to) = (from.min(total), to.min(total));
        let (mut messages, mut bytes) = (Vec::new(), 0);
        let mut at = from;
        while at < to {
            for message in shared.memory.messages(&todo, at..to.min(at + STEP))? {
                bytes += message.json().len();
                if bytes > BYTES_MOST && !messages.is_empty() {
                    return Ok(MessageList { total, messages, next: Some(at) });
                }
                messages.push(Numbered { seq: at, message: raw(message.json())? });
                at += 1;
            }
        }
        Ok(MessageList { total, messages, next: None })
    });
    Ok(Json(list.await?))
}
