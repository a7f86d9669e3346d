//! The part of a live view that cannot be derived from the recorded messages.

use crate::called::Called;
use crate::failure::Failure;
use crate::fold_policy::Account;
use foldback_core::SeqNo;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The part of a live view that cannot be derived from the recorded messages and blocks.
///
/// It does not grow with the conversation: under `cache-aware` a number for each large result in view, and at most a
/// few kilobytes for the ledger's lines, the newest notes, calls and unresolved failures, 20 bytes for each message of
/// the system prompt and each pin, and what the caller sets (todo list, notices).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The messages at the beginning: the system prompt and the pinned ones.
    pub(crate) pins: Vec<SeqNo>,
    /// The first message that was not an instruction: an instruction before it belongs to the system prompt.
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
    /// The account of the fold policy `cache-aware`. Older stores end before it.
    #[serde(default)]
    pub(crate) account: Option<Account>,
    /// Messages of other branches. Older stores end before it.
    #[serde(default)]
    pub(crate) others: Vec<Range<u64>>,
    /// The numbers of closed blocks, each with its first message that is shown with a later block.
    #[serde(default)]
    pub(crate) kept_back: Vec<(u32, SeqNo)>,
}

impl Snapshot {
    /// Returns the messages that [`LiveView::restore`](crate::LiveView::restore) needs beside those of the closed
    /// blocks in view and the open tail: the system prompt and the pinned ones, ascending.
    #[must_use]
    pub fn pins(&self) -> &[SeqNo] {
        &self.pins
    }

    /// Returns the number of the first of `closed` blocks that
    /// [`LiveView::restore`](crate::LiveView::restore) needs with its messages; it needs all from there
    /// on. If that is after the last one, or 0, it needs none.
    #[must_use]
    pub fn first_in_view(&self, closed: u32) -> u32 {
        let Some(account) = &self.account else { return closed };
        let kept_back = self.kept_back.iter().map(|(n, _)| *n).min();
        kept_back.unwrap_or(u32::MAX).min(account.folded + 1)
    }

    /// Returns how many blocks were folded.
    #[must_use]
    pub fn folds(&self) -> u64 {
        self.folds
    }
}
