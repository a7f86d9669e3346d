//! The runs of an agent in a session, and its todo list.

use super::answer::{ApiError, Json, Named, noted, reading, session_id};
use super::run_places::{Said, place};
use crate::runs::Run;
use crate::server::Shared;
use axum::extract::State;
use foldback::core::TodoItem;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The runs of a session, and what its todo list is now.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunList {
    /// How many runs there are.
    total: usize,
    /// The last 20 of them, oldest first; each is a turn of the conversation.
    runs: Vec<Run>,
    /// The items of the todo list, in its order.
    todo_list: Vec<Item>,
}

/// An item of a todo list.
#[derive(Serialize, ToSchema)]
struct Item {
    /// Its id, which is also the session in which a sub-agent works on it.
    id: String,
    title: String,
    /// `pending`, `in_progress`, `completed`, `failed` or `cancelled`.
    state: &'static str,
    /// The items that it waits for.
    depends_on: Vec<String>,
    /// The result; of a failed item, the reason.
    result: Option<String>,
    /// Whether it has a session of its own.
    has_session: bool,
}

/// How many runs are listed.
const RUNS: usize = 20;

/// Lists the runs of an agent in a session, with the steps of each, and the session's todo list.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/runs",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = RunList), (status = "4XX", body = ApiError))
)]
pub(crate) async fn runs(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
) -> Result<Json<RunList>, ApiError> {
    let todo = session_id(&id)?;
    let list = reading(shared, move |shared| {
        // It is not begun by being asked for.
        shared.memory.find(&todo)?;
        let session = shared.memory.session(&todo)?;
        noted(shared, Some(&todo), "inspect", &[])?;
        let (total, mut runs) = shared.runs.last(&todo, RUNS).map_err(ApiError::failed)?;
        if !runs.is_empty() {
            let len = shared.memory.len(&todo)?;
            let said = Said::of_runs(&shared.memory, &todo, len, &runs)?;
            place(&mut runs, &said);
        }
        let items = session.todo_list().items().iter().map(|item| Item::of(shared, item));
        Ok(RunList { total, runs, todo_list: items.collect() })
    });
    Ok(Json(list.await?))
}

impl Item {
    fn of(shared: &Shared, item: &TodoItem) -> Self {
        Self {
            id: item.id.to_string(),
            title: item.title.clone(),
            state: item.state.as_str(),
            depends_on: item.depends_on.iter().map(ToString::to_string).collect(),
            result: item.result.clone(),
            has_session: shared.memory.len(&item.id).is_ok_and(|len| len > 0),
        }
    }
}
