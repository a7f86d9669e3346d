//! What of a live view the recorded messages do not tell.

use crate::called::Called;
use crate::failure::Failure;
use crate::fold_policy::Account;
use foldback_core::SeqNo;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// What of a live view the recorded messages and blocks do not tell.
///
/// It does not grow with the conversation: under `cache-aware` a number for each large result in view,
/// and a few kilobytes at most for the ledger's lines, the newest notes, calls and the failures that are not resolved, 20 bytes for each message of the system prompt and
/// pin, and what the caller sets (todo list, notices).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The messages that stand at the beginning: the system prompt and what is pinned.
    pub(crate) pins: Vec<SeqNo>,
    /// The first message that was no instruction: an instruction before it is the system prompt's.
    pub(crate) begins: Option<SeqNo>,
    pub(crate) ledger: Vec<String>,
    pub(crate) folds: u64,
    pub(crate) moves: u64,
    pub(crate) fresh_from: SeqNo,
    pub(crate) notes: BTreeMap<SeqNo, String>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) todo_list: Option<String>,
    pub(crate) notices: BTreeMap<String, String>,
    /// Older stores end before it.
    #[serde(default)]
    pub(crate) called: Called,
    /// Of the fold policy `cache-aware`. Older stores end before it.
    #[serde(default)]
    pub(crate) account: Option<Account>,
    /// Messages of other branches. Older stores end before it.
    #[serde(default)]
    pub(crate) others: Vec<Range<u64>>,
    /// The numbers of closed blocks, and of each its first message that is shown with a later one.
    #[serde(default)]
    pub(crate) kept_back: Vec<(u32, SeqNo)>,
}

impl Snapshot {
    /// The messages that [`LiveView::restore`](crate::LiveView::restore) needs beside those of the
    /// closed blocks in view and the open tail: the system prompt and what is pinned, ascending.
    #[must_use]
    pub fn pins(&self) -> &[SeqNo] {
        &self.pins
    }

    /// Of `closed` blocks, the number of the first that [`LiveView::restore`](crate::LiveView::restore)
    /// needs with its messages; it needs all from there on. Where that is after the last one, or 0, it
    /// needs none.
    #[must_use]
    pub fn first_in_view(&self, closed: u32) -> u32 {
        let Some(account) = &self.account else { return closed };
        let kept_back = self.kept_back.iter().map(|(n, _)| *n).min();
        kept_back.unwrap_or(u32::MAX).min(account.folded + 1)
    }

    /// How many blocks were folded.
    #[must_use]
    pub fn folds(&self) -> u64 {
        self.folds
    }
}
