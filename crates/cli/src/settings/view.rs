//! `[view]`: what a model is shown.

use super::Wrong;
use foldback::{CacheAware, FoldPolicy, ViewConfig};
use foldback_core::Budget;
use foldback_policies::PolicyChoice;
use serde::{Deserialize, Serialize};

/// What a model is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ViewSettings {
    /// The context policy, by name; without one, `auto`.
    pub(crate) policy: Option<String>,
    /// The model that writes the summaries of policies that have some, by its name or one of `[models]`.
    pub(crate) summary_model: Option<String>,
    /// The fields that such summaries keep.
    pub(crate) summary_fields: Vec<String>,
    /// The most tokens of a prompt.
    pub(crate) budget_tokens: Option<usize>,
    /// The most messages in view under `strict`.
    pub(crate) window_messages: usize,
    /// The newest unit's parts that are stored outside are shown whole up to this many tokens.
    pub(crate) fresh_tokens: u64,
    /// The most blocks that the ledger lists.
    pub(crate) ledger_lines: usize,
    /// Whether JSON in results is shown in fewer tokens.
    pub(crate) compact_json: bool,
    /// Whether text that is already in view is shown only once.
    pub(crate) deduplicate: bool,
    /// Whether prompts name earlier blocks that match what is said now.
    pub(crate) hints: bool,
    /// The most messages in view under `cache-aware`.
    pub(crate) cache_aware_messages: usize,
    /// The most tokens of messages in view under `cache-aware`.
    pub(crate) cache_aware_tokens: u64,
}

impl Default for ViewSettings {
    fn default() -> Self {
        Self {
            policy: None,
            summary_model: None,
            summary_fields: Vec::new(),
            budget_tokens: None,
            window_messages: 12,
            fresh_tokens: 8_000,
            ledger_lines: 9,
            compact_json: true,
            deduplicate: true,
            hints: true,
            cache_aware_messages: 1_024,
            cache_aware_tokens: 32_000,
        }
    }
}

impl ViewSettings {
    /// The budget of a prompt.
    pub(crate) fn budget(&self) -> Budget {
        Budget { tokens: self.budget_tokens }
    }

    /// How a memory shows a conversation: this view, unless the settings say otherwise.
    pub(crate) fn of(&self, view: ViewConfig) -> ViewConfig {
        // The numbers were checked earlier.
        self.config(view.clone()).unwrap_or(view)
    }

    pub(super) fn check(&self) -> Result<(), Wrong> {
        if let Some(name) = &self.policy
            && let Err(unknown) = name.parse::<PolicyChoice>()
        {
            return Err(("view.policy", unknown.to_string()));
        }
        if self.budget_tokens == Some(0) {
            let what = "a prompt has no room in 0 tokens; at least 1 was expected";
            return Err(("view.budget_tokens", what.to_owned()));
        }
        self.config(ViewConfig::default())?;
        self.marks(CacheAware::default()).map(|_| ())
    }

    fn config(&self, view: ViewConfig) -> Result<ViewConfig, Wrong> {
        let policy = match *view.fold_policy() {
            FoldPolicy::CacheAware(settings) => FoldPolicy::CacheAware(self.marks(settings)?),
            policy => policy,
        };
        let view = view.with_fold_policy(policy).with_fresh_tokens(self.fresh_tokens);
        let view = view.with_compact_json(self.compact_json).with_deduplicate(self.deduplicate);
        let view = view.with_hints(self.hints);
        let view = view.with_window_max(self.window_messages);
        let view = view.map_err(|error| ("view.window_messages", error.to_string()))?;
        let view = view.with_ledger_max_lines(self.ledger_lines);
        view.map_err(|error| ("view.ledger_lines", error.to_string()))
    }

    fn marks(&self, settings: CacheAware) -> Result<CacheAware, Wrong> {
        let (messages, tokens) = (self.cache_aware_messages, self.cache_aware_tokens);
        let key = match messages {
            0..12 => "view.cache_aware_messages",
            _ => "view.cache_aware_tokens",
        };
        settings.with_most(messages, tokens).map_err(|error| (key, error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_policies::Policy;

    #[test]
    fn a_policy_is_named_or_left_to_prices() {
        let named = |name: &str| ViewSettings { policy: Some(name.to_owned()), ..<_>::default() };
        assert!(named("auto").check().is_ok() && named("foldback").check().is_ok());
        let (key, what) = named("none").check().unwrap_err();
        assert!(key == "view.policy" && what.contains("auto, foldback"), "{what}");
    }

    /// The defaults are written as numbers here; they are the library's.
    #[test]
    fn what_is_not_said_is_as_the_library_has_it() {
        for policy in [Policy::Foldback, Policy::CacheAware] {
            assert_eq!(ViewSettings::default().of(policy.view()), policy.view());
        }
    }
}
