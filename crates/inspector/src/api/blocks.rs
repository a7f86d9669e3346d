//! The blocks of a session.

use super::answer::{ApiError, Asked, Json, Named, noted, reading, session_id};
use crate::server::Shared;
use axum::extract::State;
use foldback::core::{Block, CloseReason};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Closed blocks, in order of time.
#[derive(Serialize, ToSchema)]
pub(crate) struct BlockList {
    blocks: Vec<BlockRow>,
    /// The open messages after the last closed block, as the block that they would be; only on the last page.
    open: Option<BlockRow>,
    /// The `after` of the next page; null on the last one.
    next: Option<u32>,
}

/// A block.
#[derive(Serialize, ToSchema)]
pub(crate) struct BlockRow {
    block_id: String,
    /// Its number in the session, from 1.
    n: u32,
    /// `tool_call`, `qa` or `chat`.
    block_type: &'static str,
    keywords: Vec<String>,
    /// What happened in it, in a sentence.
    core_semantic: String,
    create_time: String,
    /// Payloads that its messages refer to.
    data_ids: Vec<String>,
    /// Its first and its last message.
    first_seq: u64,
    last_seq: u64,
    /// Why it closed: `topic`, `gap`, `switch`, `loop`, `size` or `end`; `open` if it is not closed.
    close_reason: String,
}

/// Which blocks are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BlocksQuery {
    /// The number of the block before the first.
    #[param(default = 0)]
    after: Option<u32>,
    /// At most this many: 1 to 1,000.
    #[param(default = 200)]
    limit: Option<usize>,
}

const LIMIT: usize = 200;
const LIMIT_MOST: usize = 1_000;

/// Lists the blocks of a session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/blocks",
    params(("id" = String, Path, description = "The session"), BlocksQuery),
    responses((status = 200, body = BlockList), (status = "4XX", body = ApiError))
)]
pub(crate) async fn blocks(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
    Asked(asked): Asked<BlocksQuery>,
) -> Result<Json<BlockList>, ApiError> {
    let todo = session_id(&id)?;
    let (after, limit) = (asked.after.unwrap_or(0), asked.limit.unwrap_or(LIMIT));
    if !(1..=LIMIT_MOST).contains(&limit) {
        return Err(ApiError::invalid(format!("limit is {limit}, expected 1 to {LIMIT_MOST}")));
    }
    let list = reading(shared, move |shared| {
        noted(shared, Some(&todo), "inspect", &[])?;
        let mut found = shared.memory.blocks(&todo, after, limit + 1)?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let open = if has_more { None } else { shared.memory.open_block(&todo)? };
        let next = found.last().map(|block| block.header.block_id.n()).filter(|_| has_more);
        let blocks = found.into_iter().map(BlockRow::from).collect();
        Ok(BlockList { blocks, open: open.map(BlockRow::from), next })
    });
    Ok(Json(list.await?))
}

impl From<Block> for BlockRow {
    fn from(block: Block) -> Self {
        let header = block.header;
        let close_reason = match block.close_reason {
            CloseReason::Open => "open".to_owned(),
            reason => reason.as_str().to_owned(),
        };
        Self {
            n: header.block_id.n(),
            block_id: header.block_id.to_string(),
            block_type: header.block_type.as_str(),
            keywords: header.keywords,
            core_semantic: header.core_semantic,
            create_time: header.create_time,
            data_ids: header.data_ids,
            first_seq: block.range.first().0,
            last_seq: block.range.last().0,
            close_reason,
        }
    }
}
