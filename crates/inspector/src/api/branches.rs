//! The branches of a session: a client that rewinds, edits, forks or compacts its conversation begins one.

use super::answer::{ApiError, Json, Named, noted, reading, session_id};
use super::sessions::first_line;
use crate::server::Shared;
use axum::extract::State;
use foldback::core::{Message, Role, TodoId};
use foldback::{Memory, SentTree};
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;
use utoipa::ToSchema;

/// A session as a tree.
#[derive(Serialize, ToSchema)]
pub(crate) struct BranchTree {
    /// How many stretches there are.
    total: usize,
    /// The stretches between the places where branches begin, each after the one that it continues; the first 1,000. A
    /// session that never branched is one stretch; one that no client sends whole has none.
    stretches: Vec<Stretch>,
}

/// Messages that follow each other on every branch that has them.
#[derive(Serialize, ToSchema)]
pub(crate) struct Stretch {
    /// Its number in the tree, from 0.
    n: usize,
    /// The stretch that it continues; null at the beginning of a conversation.
    parent: Option<usize>,
    /// Its first and its last message as recorded. Messages of other branches may be between them.
    first_seq: u64,
    last_seq: u64,
    /// How many messages the client sent in it.
    messages: usize,
    /// The first line of what the user said first in it.
    title: Option<String>,
    /// Whether no branch continues it.
    is_tip: bool,
    /// Whether the message that was recorded last is in it.
    is_latest: bool,
    /// What was recorded of its first messages.
    #[serde(skip)]
    #[schema(ignore)]
    beginning: Vec<Range<u64>>,
}

/// How many stretches are listed.
const MOST: usize = 1_000;

/// The client's messages of a stretch among which its title is looked for.
const TITLE_WITHIN: usize = 4;

/// Returns the branches of a session as a tree.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/branches",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = BranchTree), (status = "4XX", body = ApiError))
)]
pub(crate) async fn branches(
    State(shared): State<Arc<Shared>>,
    Named(id): Named<String>,
) -> Result<Json<BranchTree>, ApiError> {
    let todo = session_id(&id)?;
    let tree = reading(shared, move |shared| {
        noted(shared, Some(&todo), "inspect", &[])?;
        let mut stretches = stretches(&shared.memory.sent_tree(&todo)?);
        let total = stretches.len();
        stretches.truncate(MOST);
        for stretch in &mut stretches {
            stretch.title = title(&shared.memory, &todo, stretch);
        }
        Ok(BranchTree { total, stretches })
    });
    Ok(Json(tree.await?))
}

/// Joins each message with the only one that follows it.
fn stretches(tree: &SentTree) -> Vec<Stretch> {
    let latest = (0..tree.next()).max_by_key(|n| tree.recorded(*n).end);
    // The stretch of each message.
    let mut of: Vec<usize> = Vec::with_capacity(tree.len());
    let mut found: Vec<Stretch> = Vec::new();
    for n in 0..tree.next() {
        let recorded = tree.recorded(n);
        let parent = tree.parent(n);
        let stretch_of = |n: u32| of.get(n as usize).copied();
        let continued = parent.filter(|parent| tree.followers(*parent) == 1).and_then(stretch_of);
        let at = continued.unwrap_or(found.len());
        if at == found.len() {
            found.push(Stretch {
                n: at,
                parent: parent.and_then(stretch_of),
                first_seq: recorded.start,
                last_seq: recorded.start,
                messages: 0,
                title: None,
                is_tip: false,
                is_latest: false,
                beginning: Vec::new(),
            });
        }
        if let Some(stretch) = found.get_mut(at) {
            stretch.last_seq = recorded.end.saturating_sub(1);
            stretch.messages += 1;
            stretch.is_tip = tree.followers(n) == 0;
            stretch.is_latest |= latest == Some(n);
            if stretch.beginning.len() < TITLE_WITHIN {
                stretch.beginning.push(recorded);
            }
        }
        of.push(at);
    }
    found
}

fn title(memory: &Memory, todo: &TodoId, stretch: &Stretch) -> Option<String> {
    let ranges = stretch.beginning.iter().cloned();
    let first: Vec<Message> =
        ranges.filter_map(|range| memory.messages(todo, range).ok()).flatten().collect();
    let said = first.iter().find(|message| *message.role() == Role::User).or(first.first())?;
    first_line(&said.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(parents: &[Option<u32>]) -> SentTree {
        let mut tree = SentTree::default();
        for (n, parent) in (0_u8..).zip(parents) {
            let first = u64::from(n) * 2;
            tree.push(*parent, first..first + 2, [n; 32]);
        }
        tree
    }

    #[test]
    fn in2_branches_are_stretches_between_forks() {
        let seen = |parents: &[Option<u32>]| -> Vec<(Option<usize>, u64, u64, usize, bool, bool)> {
            let all = stretches(&tree(parents));
            all.iter()
                .map(|s| (s.parent, s.first_seq, s.last_seq, s.messages, s.is_tip, s.is_latest))
                .collect()
        };
        assert!(seen(&[]).is_empty());
        let straight = [None, Some(0), Some(1)];
        assert_eq!(seen(&straight), [(None, 0, 5, 3, true, true)]);
        // After two messages the client went back to the first, and then began anew.
        let forked = [None, Some(0), Some(0), Some(2), None];
        assert_eq!(
            seen(&forked),
            [
                (None, 0, 1, 1, false, false),
                (Some(0), 2, 3, 1, true, false),
                (Some(0), 4, 7, 2, true, false),
                (None, 8, 9, 1, true, true),
            ]
        );
    }
}
