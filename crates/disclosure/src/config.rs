//! The settings of a live view.

use crate::{Error, FoldPolicy, Names};
use serde::{Deserialize, Serialize};

/// How much a live view shows. It is checked when it is made; a session stores it with its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ViewConfig {
    pub(crate) fold_policy: FoldPolicy,
    pub(crate) fresh_tokens: u64,
    pub(crate) window_max: usize,
    pub(crate) ledger_max_lines: usize,
    pub(crate) failures_max: usize,
    pub(crate) consulted_max: usize,
    /// Older stores end before it.
    #[serde(default)]
    pub(crate) names: Names,
    /// Older stores end before it.
    #[serde(default)]
    pub(crate) compact_json: bool,
    /// Older stores end before it.
    #[serde(default)]
    pub(crate) deduplicate: bool,
    /// Older stores end before it.
    #[serde(default)]
    pub(crate) hints: bool,
}

impl Default for ViewConfig {
    /// Returns the design's window: 8,000 fresh tokens, 12 messages, 9 lines of ledger; the 3 newest failures and
    /// consultations are kept in sight; the fold policy is `strict`; results are shown in compact JSON and without what
    /// is already in view.
    fn default() -> Self {
        Self {
            fold_policy: FoldPolicy::Strict,
            fresh_tokens: 8_000,
            window_max: 12,
            ledger_max_lines: 9,
            failures_max: 3,
            consulted_max: 3,
            names: Names::default(),
            compact_json: true,
            deduplicate: true,
            hints: true,
        }
    }
}

impl ViewConfig {
    /// Sets when blocks leave the view. A todo may be recorded under one fold policy and continued
    /// under the other.
    #[must_use]
    pub fn with_fold_policy(self, fold_policy: FoldPolicy) -> Self {
        Self { fold_policy, ..self }
    }

    /// Sets the names that the model uses.
    #[must_use]
    pub fn with_names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// Sets whether JSON in a result is shown without white space, and its objects of the same keys as rows, if that
    /// takes fewer tokens. Keys, strings and numbers keep their spelling; the result of a call that names a file keeps
    /// every byte.
    #[must_use]
    pub fn with_compact_json(self, compact_json: bool) -> Self {
        Self { compact_json, ..self }
    }

    /// Sets whether a result, or lines of one, that is already in view word for word is replaced by a line that names
    /// the place. When the first place leaves the view, the text is written out.
    #[must_use]
    pub fn with_deduplicate(self, deduplicate: bool) -> Self {
        Self { deduplicate, ..self }
    }

    /// Sets whether the end of a prompt names earlier blocks that match what is said now, and shows the passage that
    /// answers a question beyond doubt. It does by default.
    #[must_use]
    pub fn with_hints(self, hints: bool) -> Self {
        Self { hints, ..self }
    }

    /// Returns the names that the model uses.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Returns when blocks leave the view.
    #[must_use]
    pub fn fold_policy(&self) -> &FoldPolicy {
        &self.fold_policy
    }

    /// Returns the greatest number of messages of closed blocks and open ones that a prompt shows,
    /// except for a single unit that is larger on its own: the limit of
    /// [`Prompt::window`](foldback_core::Prompt).
    #[must_use]
    pub fn window_bound(&self) -> usize {
        self.fold_policy.window_bound(self.window_max)
    }

    /// Sets the number of tokens below which a part that is stored outside is shown whole while it is fresh: under
    /// `strict` until a block closes after the model has answered, under `cache-aware` until that answer, or longer where
    /// that costs less. With 0, no such part is ever shown whole.
    #[must_use]
    pub fn with_fresh_tokens(self, fresh_tokens: u64) -> Self {
        Self { fresh_tokens, ..self }
    }

    /// Limits that number, so that a part that is shown whole has fewer tokens than this in any case.
    #[must_use]
    pub fn with_most_fresh_tokens(self, most: u64) -> Self {
        Self { fresh_tokens: self.fresh_tokens.min(most), ..self }
    }

    /// Sets, for `strict`, the greatest number of messages of the latest block and the open tail
    /// together; beyond it, only the latest block's line is shown.
    ///
    /// # Errors
    /// When it is 0: then no block would ever be shown, not even beside an empty open tail.
    pub fn with_window_max(self, window_max: usize) -> Result<Self, Error> {
        if window_max == 0 {
            return Err(Error::Config {
                setting: "window_max",
                expected: "at least 1 message",
                found: window_max,
            });
        }
        Ok(Self { window_max, ..self })
    }

    /// Sets the greatest number of blocks whose lines are in the ledger; with one block more, a
    /// fixed sentence replaces the lines. With 0, blocks are never listed.
    ///
    /// # Errors
    /// When it is above 100: the ledger is in every prompt.
    pub fn with_ledger_max_lines(self, ledger_max_lines: usize) -> Result<Self, Error> {
        if ledger_max_lines > 100 {
            return Err(Error::Config {
                setting: "ledger_max_lines",
                expected: "at most 100 lines",
                found: ledger_max_lines,
            });
        }
        Ok(Self { ledger_max_lines, ..self })
    }
}
