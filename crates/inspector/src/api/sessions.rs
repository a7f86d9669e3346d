//! Sessions: the list, the newest first unless asked otherwise, and what is known of one.

use super::answer::{ApiError, Asked, Json, Named, noted, reading, session_id};
use super::failures::{FailedCalls, READ_MOST};
use super::roster::{Listed, Roster, Rosters, last};
use super::savings::{Ledgers, Read, Savings};
use crate::server::Shared;
use axum::extract::State;
use foldback::Memory;
use foldback::core::{Role, Timestamp, TodoId};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A page of sessions.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionList {
    sessions: Vec<Session>,
    /// How many there are in all.
    total: usize,
    /// The `after` of the next page; null on the last one.
    next: Option<String>,
    /// What the gateway saved in all.
    savings: Option<Savings>,
}

/// What is known of a session. What cannot be read of it is null.
#[derive(Serialize, ToSchema)]
pub(crate) struct Session {
    /// The todo that holds it.
    id: String,
    /// The first line of what the user said first.
    title: Option<String>,
    /// The conversation's own id, if it differs.
    foreign_id: Option<String>,
    messages: Option<u64>,
    /// How many calls failed, as their results state or, where a result states nothing, as its text says. Null as long as
    /// not all messages were read for it: ask again.
    failed_calls: Option<u64>,
    /// Closed blocks.
    blocks: Option<u32>,
    /// The time of its last message or, if that has none, when it was recorded, in RFC 3339.
    last: Option<String>,
    /// The format or program that it came from.
    source: Option<String>,
    /// The folder in which the work was done.
    folder: Option<String>,
    /// The session of the agent that delegated this one; null if nobody did.
    parent: Option<String>,
    /// What the gateway saved; null if the session did not pass through it.
    savings: Option<Savings>,
    /// What cannot be read, in sentences.
    problems: Vec<String>,
}

/// Which sessions are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// What comes first.
    #[param(inline, default = "latest")]
    sort: Option<Sort>,
    /// The `next` of the page before. While the order changes between two pages, as that by cost does with each request,
    /// a session may be on both of them, or on neither.
    after: Option<String>,
    /// At most this many: 1 to 500.
    #[param(default = 50)]
    limit: Option<usize>,
}

/// An order of sessions. Those of which it says nothing, or the same, have the latest message first.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// The one with the latest message.
    #[default]
    Latest,
    /// The one that cost most, as the provider billed it.
    Cost,
    /// The one in which the gateway saved the most tokens.
    TokensSaved,
}

impl Sort {
    fn of<'r>(self, roster: &'r Roster, ledger: &Read) -> Vec<&'r Listed> {
        let mut all: Vec<_> = roster.newest_first().iter().collect();
        let most = |one: &Listed| {
            let (cost, saved) = ledger.cost_and_saved(one.id().as_str())?;
            Some(if matches!(self, Self::Cost) { cost } else { saved as f64 })
        };
        if !matches!(self, Self::Latest) {
            // Those of which the ledger says nothing are last.
            let of = |one| most(one).unwrap_or(f64::NEG_INFINITY);
            let mut with: Vec<_> = all.into_iter().map(|one| (of(one), one)).collect();
            with.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            all = with.into_iter().map(|(_, one)| one).collect();
        }
        all
    }
}

/// The sessions of a page, unless asked otherwise, and at most.
const LIMIT: usize = 50;
const LIMIT_MOST: usize = 500;

/// The messages among which the title is looked for, and its greatest length in characters.
const TITLE_WITHIN: u64 = 8;
const TITLE_CHARS: usize = 140;

/// What is remembered of sessions between requests.
pub(crate) struct Sessions {
    pub(crate) ledgers: Ledgers,
    pub(super) rosters: Rosters,
    failed: FailedCalls,
}

impl Sessions {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            ledgers: Ledgers::new(folder),
            rosters: Rosters::default(),
            failed: FailedCalls::default(),
        }
    }

    /// What the gateway saved in a session.
    pub(super) fn savings(&self, todo: &TodoId) -> Result<Option<Savings>, ApiError> {
        Ok(self.ledgers.now()?.of(todo.as_str()))
    }
}

/// Lists sessions, the one with the latest message first unless another order is asked for.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    params(ListQuery),
    responses((status = 200, body = SessionList), (status = "4XX", body = ApiError))
)]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Asked(asked): Asked<ListQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let limit = asked.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MOST).contains(&limit) {
        return Err(ApiError::invalid(format!("limit is {limit}, expected 1 to {LIMIT_MOST}")));
    }
    let after = asked.after.as_deref().map(session_id).transpose()?;
    let list = reading(shared, move |shared| {
        let roster = shared.sessions.rosters.now(&shared.memory)?;
        let ledger = shared.sessions.ledgers.now()?;
        let sort = asked.sort.unwrap_or_default();
        let all = sort.of(&roster, &ledger);
        let from = match &after {
            None => 0,
            Some(after) => {
                let at = match sort {
                    Sort::Latest => roster.place(after),
                    _ => all.iter().position(|one| one.id() == after),
                };
                at.ok_or_else(|| ApiError::not_found(format!("there is no session {after}")))? + 1
            }
        };
        let page = all.get(from..).unwrap_or_default();
        let shown = page.get(..limit.min(page.len())).unwrap_or_default();
        let next = (shown.len() < page.len()).then(|| shown.last().map(|one| one.id().to_string()));
        let savings: Vec<_> = shown.iter().map(|one| ledger.of(one.id().as_str())).collect();
        let in_all = ledger.all();
        drop(ledger);
        let mut seen = Seen::default();
        let sessions = shown.iter().zip(savings);
        let sessions = sessions.map(|(one, saved)| session(shared, one.id(), saved, &mut seen));
        Ok(SessionList {
            sessions: sessions.collect(),
            total: all.len(),
            next: next.flatten(),
            savings: in_all,
        })
    });
    Ok(Json(list.await?))
}

/// Returns what is known of a session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = Session), (status = "4XX", body = ApiError))
)]
pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
) -> Result<Json<Session>, ApiError> {
    let todo = session_id(&id)?;
    let one = reading(shared, move |shared| {
        // A session that does not exist is an error, although damage is not one here.
        shared.memory.len(&todo)?;
        noted(shared, Some(&todo), "inspect", &[])?;
        let savings = shared.sessions.savings(&todo)?;
        Ok(session(shared, &todo, savings, &mut Seen::default()))
    });
    Ok(Json(one.await?))
}

/// What is known of a session. Damage does not hide the rest.
fn session(shared: &Shared, todo: &TodoId, savings: Option<Savings>, seen: &mut Seen) -> Session {
    let memory = &shared.memory;
    let mut problems = Vec::new();
    let mut tell = |error: foldback::Error| problems.push(error.to_string());
    let messages = memory.len(todo).map_err(&mut tell).ok();
    let info = memory.conversations().info(todo).map_err(&mut tell).unwrap_or_default();
    let blocks = memory.closed_blocks(todo).map_err(&mut tell).ok();
    let last = messages.and_then(|len| last(memory, todo, len));
    let title = messages.and_then(|len| title(memory, todo, len));
    let failed_calls = messages
        .zip(memory.find(todo).ok())
        .and_then(|(len, todo)| shared.sessions.failed.of(memory, &todo, len, &mut seen.left));
    Session {
        id: todo.to_string(),
        title,
        failed_calls,
        foreign_id: info.foreign_id,
        messages,
        blocks,
        last: last.map(Timestamp::to_rfc3339),
        source: info.origin.source,
        folder: info.origin.folder,
        parent: seen.lists.parent(memory, todo),
        savings,
        problems,
    }
}

/// What one answer has read, and may still read.
struct Seen {
    lists: Lists,
    /// The messages that may still be read to count failed calls.
    left: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { lists: Lists::default(), left: READ_MOST }
    }
}

/// The items of todo lists. Each list is read once, however many of its items are listed.
#[derive(Default)]
struct Lists(HashMap<TodoId, HashSet<TodoId>>);

impl Lists {
    /// The session whose todo list has this one as an item: an item is named after its list.
    fn parent(&mut self, memory: &Memory, todo: &TodoId) -> Option<String> {
        let (list, _) = todo.as_str().rsplit_once('.')?;
        let list = TodoId::new(list).ok()?;
        let items = self.0.entry(list.clone()).or_insert_with(|| {
            let read = memory.todo_list(&list).unwrap_or_default();
            read.items().iter().map(|item| item.id.clone()).collect()
        });
        items.contains(todo).then(|| list.to_string())
    }
}

/// The first line of what the user said first.
fn title(memory: &Memory, todo: &TodoId, len: u64) -> Option<String> {
    let first = memory.messages(todo, 0..len.min(TITLE_WITHIN)).ok()?;
    first_line(&first.iter().find(|message| *message.role() == Role::User)?.text())
}

/// The first line of a text that is not empty, and not a tag alone if there is another, at most as long as a title.
pub(super) fn first_line(text: &str) -> Option<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_tag = |line: &&str| {
        let inside = line.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
        inside.is_some_and(|inside| !inside.contains(['<', '>']))
    };
    let line = lines().find(|line| !is_tag(line)).or_else(|| lines().next())?;
    let mut title: String = line.chars().take(TITLE_CHARS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}
