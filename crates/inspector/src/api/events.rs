//! Changes as they happen: server-sent events.

use super::answer::{ApiError, reading};
use super::sessions::todos;
use crate::server::Shared;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;

/// How often the store is asked.
const EVERY: Duration = Duration::from_secs(1);

/// A session that has changed.
#[derive(Serialize, ToSchema)]
pub(crate) struct Changed {
    id: String,
    /// How many messages it has now; 0 if it is gone.
    messages: u64,
}

/// What one page has been told.
struct Watcher {
    shared: Arc<Shared>,
    /// The messages of each session; `None` as long as the store could not be read.
    known: Option<HashMap<String, u64>>,
    due: VecDeque<Changed>,
    _room: OwnedSemaphorePermit,
}

/// Sends an event `session` whenever messages are recorded: the store is asked once a second.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    responses(
        (status = 200, body = Changed, content_type = "text/event-stream"),
        (status = 503, body = ApiError, description = "Too many pages watch already")
    )
)]
pub(crate) async fn events(
    State(shared): State<Arc<Shared>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let room = Arc::clone(&shared.watchers).try_acquire_owned();
    let room = room.map_err(|_| ApiError::busy("too many pages watch already; close some"))?;
    // What the page asks for after this answer is not older than what changes are compared with.
    let known = reading(Arc::clone(&shared), lengths).await.ok();
    let watcher = Watcher { shared, known, due: VecDeque::new(), _room: room };
    let changes = futures::stream::unfold(watcher, |mut watcher| async {
        let changed = watcher.next().await;
        let data = serde_json::to_string(&changed).unwrap_or_default();
        Some((Ok(Event::default().event("session").data(data)), watcher))
    });
    Ok(Sse::new(changes).keep_alive(KeepAlive::new()))
}

impl Watcher {
    /// Waits for the next change. The first look is what changes are compared with.
    async fn next(&mut self) -> Changed {
        loop {
            if let Some(changed) = self.due.pop_front() {
                return changed;
            }
            if self.known.is_some() {
                tokio::time::sleep(EVERY).await;
            }
            // A store that cannot be read for a moment is asked again.
            if let Ok(now) = reading(Arc::clone(&self.shared), lengths).await {
                if let Some(known) = &self.known {
                    self.due = changes(known, &now);
                }
                self.known = Some(now);
            } else if self.known.is_none() {
                tokio::time::sleep(EVERY).await;
            }
        }
    }
}

fn lengths(shared: &Shared) -> Result<HashMap<String, u64>, ApiError> {
    let all = todos(&shared.memory)?;
    let lengths = all.iter().map(|todo| (todo.to_string(), shared.memory.len(todo).unwrap_or(0)));
    Ok(lengths.collect())
}

fn changes(before: &HashMap<String, u64>, now: &HashMap<String, u64>) -> VecDeque<Changed> {
    let changed = now.iter().filter(|(id, len)| before.get(*id) != Some(len));
    let gone = before.keys().filter(|id| !now.contains_key(*id)).map(|id| (id, &0));
    let all = changed.chain(gone).map(|(id, len)| Changed { id: id.clone(), messages: *len });
    let mut all: Vec<Changed> = all.collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in4_what_is_new_longer_or_gone_is_told_once() {
        let map = |all: &[(&str, u64)]| {
            all.iter().map(|(id, len)| ((*id).to_owned(), *len)).collect::<HashMap<_, _>>()
        };
        let (before, now) =
            (map(&[("a", 1), ("b", 2), ("c", 3)]), map(&[("a", 1), ("b", 4), ("d", 1)]));
        let told: Vec<_> =
            changes(&before, &now).into_iter().map(|one| (one.id, one.messages)).collect();
        assert_eq!(told, [("b".to_owned(), 4), ("c".to_owned(), 0), ("d".to_owned(), 1)]);
        assert!(changes(&now, &now).is_empty());
    }
}
