//! What a live view may show.

use crate::{Error, FoldPolicy, Names};
use serde::{Deserialize, Serialize};

/// How much a live view shows. Checked when it is made. A session keeps it with its state.
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
    /// The design's window: 8,000 fresh tokens, 12 messages, 9 lines of ledger; the 3 newest
    /// failures and consultations are kept in sight; the fold policy is `strict`; results are shown in compact JSON and
    /// without what stands in view already.
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
    /// When blocks leave the view. A todo may be recorded under one fold policy and continued under the
    /// other.
    #[must_use]
    pub fn with_fold_policy(self, fold_policy: FoldPolicy) -> Self {
        Self { fold_policy, ..self }
    }

    /// With these names for things.
    #[must_use]
    pub fn with_names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// Whether a result that holds JSON is shown without the white space of that, and its objects of the same keys
    /// as rows, where that takes fewer tokens. Keys, strings and numbers keep their spelling; what a call gave that names a file
    /// keeps every byte.
    #[must_use]
    pub fn with_compact_json(self, compact_json: bool) -> Self {
        Self { compact_json, ..self }
    }

    /// Whether a result that stands in view already, word for word, is shown by a line that names where, and lines of
    /// one as well. When the first place leaves the view, it is written out.
    #[must_use]
    pub fn with_deduplicate(self, deduplicate: bool) -> Self {
        Self { deduplicate, ..self }
    }

    /// Whether the end of a prompt names earlier blocks that match what is said now, and shows the passage that answers a
    /// question beyond doubt. It does by default.
    #[must_use]
    pub fn with_hints(self, hints: bool) -> Self {
        Self { hints, ..self }
    }

    /// What the model calls things by.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// When blocks leave the view.
    #[must_use]
    pub fn fold_policy(&self) -> &FoldPolicy {
        &self.fold_policy
    }

    /// The greatest number of messages of closed blocks and open ones that a prompt shows, but for a
    /// single unit that is larger on its own: what [`Prompt::window`](foldback_core::Prompt) keeps
    /// to.
    #[must_use]
    pub fn window_bound(&self) -> usize {
        self.fold_policy.window_bound(self.window_max)
    }

    /// A part that is stored outside is shown whole while it belongs to the newest unit and has
    /// fewer tokens than this. 0 shows no such part whole, ever.
    #[must_use]
    pub fn with_fresh_tokens(self, fresh_tokens: u64) -> Self {
        Self { fresh_tokens, ..self }
    }

    /// The same, where a part that is shown whole has fewer tokens than this in any case.
    #[must_use]
    pub fn with_most_fresh_tokens(self, most: u64) -> Self {
        Self { fresh_tokens: self.fresh_tokens.min(most), ..self }
    }

    /// Under `strict`, the greatest number of messages of the latest block and the open tail together;
    /// beyond it, the latest block is shown by its line alone.
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

    /// The greatest number of blocks whose lines stand in the ledger; with one block more, a fixed
    /// sentence takes the place of the lines. 0 never lists blocks.
    ///
    /// # Errors
    /// When it is above 100: the ledger stands in every prompt.
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
