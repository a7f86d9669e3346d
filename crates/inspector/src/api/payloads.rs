//! The payloads of a session, whole or by lines.

use super::answer::{ApiError, Asked, Json, Named, noted, reading, session_id};
use crate::server::Shared;
use axum::extract::State;
use data_encoding::BASE64;
use foldback::core::PayloadRef;
use foldback_backend_store::{Meta, Position};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The payloads of a session, in the order in which they were stored.
#[derive(Serialize, ToSchema)]
pub(crate) struct PayloadList {
    payloads: Vec<PayloadRow>,
    /// The `after` of the next page; null on the last one.
    next: Option<u64>,
}

/// A payload.
#[derive(Serialize, ToSchema)]
struct PayloadRow {
    #[serde(rename = "ref")]
    reference: String,
    /// `text`, `JSON`, `log`, `code` or `binary`.
    kind: String,
    bytes: u64,
    lines: u64,
}

/// Lines of a payload.
#[derive(Serialize, ToSchema)]
pub(crate) struct PayloadPart {
    #[serde(flatten)]
    payload: PayloadRow,
    first_line: u64,
    last_line: u64,
    /// The lines; null for bytes that are not text.
    text: Option<String>,
    /// The bytes, if they are not text.
    base64: Option<String>,
    /// Where the rest begins, as `lines` takes it; null if this is all that was asked for.
    next: Option<String>,
}

/// Which payloads are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PayloadsQuery {
    /// The number of the payload before the first.
    #[param(default = 0)]
    after: Option<u64>,
    /// At most this many: 1 to 1,000.
    #[param(default = 200)]
    limit: Option<usize>,
}

/// Which lines are read.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LinesQuery {
    /// `A-B`, `A-` or `A`, counted from 1. An answer has about 20,000 tokens at most; `next` continues it.
    #[param(example = "1-200")]
    lines: Option<String>,
}

const LIMIT: usize = 200;
const LIMIT_MOST: usize = 1_000;

/// The most tokens of an answer.
const TOKENS: usize = 20_000;

/// Lists the payloads of a session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/payloads",
    params(("id" = String, Path, description = "The session"), PayloadsQuery),
    responses((status = 200, body = PayloadList), (status = "4XX", body = ApiError))
)]
pub(crate) async fn payloads(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
    Asked(asked): Asked<PayloadsQuery>,
) -> Result<Json<PayloadList>, ApiError> {
    let todo = session_id(&id)?;
    let (after, limit) = (asked.after.unwrap_or(0), asked.limit.unwrap_or(LIMIT));
    if !(1..=LIMIT_MOST).contains(&limit) {
        return Err(ApiError::invalid(format!("limit is {limit}, expected 1 to {LIMIT_MOST}")));
    }
    let list = reading(shared, move |shared| {
        noted(shared, Some(&todo), "inspect", &[])?;
        let todo = shared.memory.find(&todo)?;
        let mut metas = shared.memory.payloads().metas(&todo, after, limit + 1)?;
        let has_more = metas.len() > limit;
        metas.truncate(limit);
        let next = metas.last().map(|meta| meta.n).filter(|_| has_more);
        Ok(PayloadList { payloads: metas.iter().map(PayloadRow::from).collect(), next })
    });
    Ok(Json(list.await?))
}

/// Reads a payload, whole or by lines.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/payloads/{ref}",
    params(
        ("id" = String, Path, description = "The session"),
        ("ref" = String, Path, description = "The payload: `2-k4qd`, or `store://2-k4qd` with its slashes encoded"),
        LinesQuery
    ),
    responses((status = 200, body = PayloadPart), (status = "4XX", body = ApiError))
)]
pub(crate) async fn payload(
    State(shared): State<Arc<Shared>>,
    Named((id, reference)): Named<(String, String)>,
    Asked(asked): Asked<LinesQuery>,
) -> Result<Json<PayloadPart>, ApiError> {
    let todo = session_id(&id)?;
    let scheme = if reference.contains("://") { "" } else { PayloadRef::SCHEME };
    let named: PayloadRef = format!("{scheme}{reference}").parse().map_err(ApiError::invalid)?;
    if named.todo.as_ref().is_some_and(|of| *of != todo) {
        return Err(ApiError::invalid(format!("{named} is of another session than {todo}")));
    }
    let named = PayloadRef::local(named.n, named.check);
    let (first, last) = lines(asked.lines.as_deref().unwrap_or("1-"))?;
    let part = reading(shared, move |shared| {
        noted(shared, Some(&todo), "load", &[named.to_string()])?;
        let todo = shared.memory.find(&todo)?;
        let payloads = shared.memory.payloads();
        let meta = payloads.resolve(&todo, &named)?;
        if meta.bytes == 0 {
            return Ok(PayloadPart::new(&meta, Vec::new(), (0, 0), None));
        }
        let excerpt = payloads.lines(&todo, meta.n, first, last, TOKENS)?;
        let bytes = excerpt.runs.iter().flat_map(|run| run.content.iter().copied()).collect();
        Ok(PayloadPart::new(
            &meta,
            bytes,
            (excerpt.first_line(), excerpt.last_line()),
            excerpt.next,
        ))
    });
    Ok(Json(part.await?))
}

/// Reads `A-B`, `A-` or `A`.
fn lines(text: &str) -> Result<(Position, u64), ApiError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let place = first.parse::<Position>().ok().filter(|place| place.line > 0);
    // A place inside a long line, such as 7+4096, ends with that line.
    let last = match last.split('+').next().unwrap_or_default() {
        "" => Some(u64::MAX),
        last => last.parse().ok(),
    };
    let range = place.zip(last).filter(|(first, last)| first.line <= *last);
    range.ok_or_else(|| {
        ApiError::invalid(format!("lines {text:?}: expected 10-20, 10- or 10, counted from 1"))
    })
}

impl From<&Meta> for PayloadRow {
    fn from(meta: &Meta) -> Self {
        Self {
            reference: meta.reference().to_string(),
            kind: meta.kind.to_string(),
            bytes: meta.bytes,
            lines: meta.lines,
        }
    }
}

impl PayloadPart {
    fn new(meta: &Meta, bytes: Vec<u8>, lines: (u64, u64), next: Option<Position>) -> Self {
        let (text, base64) = match String::from_utf8(bytes) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(BASE64.encode(error.as_bytes()))),
        };
        Self {
            payload: meta.into(),
            first_line: lines.0,
            last_line: lines.1,
            text,
            base64,
            next: next.map(|next| next.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in3_lines_are_read_in_three_forms() {
        for (text, first, last) in [("3-9", 3, 9), ("3-", 3, u64::MAX), ("3", 3, 3)] {
            let read = lines(text).unwrap();
            assert_eq!((read.0.line, read.1), (first, last), "{text}");
        }
        assert_eq!(lines("7+4096").unwrap(), ("7+4096".parse().unwrap(), 7));
        for bad in ["", "-", "0", "0-3", "9-3", "-3", "a-b", "3-4-5", "99999999999999999999"] {
            assert!(lines(bad).is_err(), "{bad}");
        }
    }
}
