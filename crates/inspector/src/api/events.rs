//! Changes as they happen: server-sent events.

use super::answer::{ApiError, reading};
use super::roster::{Listed, Roster};
use crate::server::Shared;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use serde::Serialize;
use std::collections::VecDeque;
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
    /// The sessions as it knows them; `None` as long as the store could not be read.
    known: Option<Arc<Roster>>,
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
    let known = reading(Arc::clone(&shared), roster).await.ok();
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
            if let Ok(now) = reading(Arc::clone(&self.shared), roster).await {
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

fn roster(shared: &Shared) -> Result<Arc<Roster>, ApiError> {
    Ok(shared.sessions.rosters.now(&shared.memory)?)
}

fn changes(before: &Arc<Roster>, now: &Arc<Roster>) -> VecDeque<Changed> {
    if Arc::ptr_eq(before, now) {
        return VecDeque::new();
    }
    let is_new = |one: &&Listed| before.get(one.id()).is_none_or(|known| !known.is_same(one));
    let changed = now.newest_first().iter().filter(is_new).map(|one| (one.id(), one.messages()));
    let gone = before.newest_first().iter().map(Listed::id).filter(|id| now.place(id).is_none());
    let all = changed.chain(gone.map(|id| (id, 0)));
    let mut all: Vec<_> =
        all.map(|(id, messages)| Changed { id: id.to_string(), messages }).collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::roster::Rosters;
    use foldback::core::{Message, TodoId};
    use foldback::{Memory, Options};

    #[test]
    fn in4_what_is_new_longer_or_gone_is_reported_once() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let id = |id: &str| TodoId::new(id).unwrap();
        let say = |name: &str| {
            memory.session(&id(name)).unwrap().record(Message::user("Berth 泊位")).unwrap();
        };
        let rosters = Rosters::default();
        ["a", "b", "c"].into_iter().for_each(say);
        let before = rosters.now(&memory).unwrap();
        ["b", "b", "d"].into_iter().for_each(say);
        memory.maintenance().forget(&id("c")).unwrap();
        let now = rosters.now(&memory).unwrap();
        let found = changes(&before, &now).into_iter().map(|one| (one.id, one.messages));
        let found: Vec<_> = found.collect();
        assert_eq!(found, [("b".to_owned(), 3), ("c".to_owned(), 0), ("d".to_owned(), 1)]);
        assert!(changes(&now, &rosters.now(&memory).unwrap()).is_empty());
        // Another session of the same name and length is a change.
        memory.maintenance().forget(&id("d")).unwrap();
        say("d");
        let found = changes(&now, &rosters.now(&memory).unwrap());
        assert_eq!(
            found.iter().map(|one| (&*one.id, one.messages)).collect::<Vec<_>>(),
            [("d", 1)]
        );
    }
}
