//! The fold policy: which blocks leave the view, and when.

mod cache_aware;
mod strict;

pub(crate) use cache_aware::Account;
pub use cache_aware::{Billed, CacheAware};

use crate::contents::{ClosedBlock, Contents};
use crate::declared_tools::DeclaredTools;
use crate::entry::{Form, Shown};
use crate::failures::OpenCall;
use crate::layout::Extent;
use crate::opening::Pinned;
use cache_aware::CacheAwarePolicy;
use foldback_core::{BlockId, Budget, Prompt, TokenCounter};
use serde::{Deserialize, Serialize};
use strict::StrictPolicy;

/// The fold policy of a view: which blocks leave it, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FoldPolicy {
    /// With each block that closes, the previous one leaves: the smallest view.
    #[default]
    Strict,
    /// Several leave at once when that is cheaper than reading them repeatedly from the provider's
    /// cache.
    CacheAware(CacheAware),
}

impl FoldPolicy {
    /// Returns the policy that costs less at the prices of these settings: `strict` if all tokens have one price, or
    /// no view is large enough for a provider to cache it.
    #[must_use]
    pub fn auto(settings: CacheAware) -> Self {
        if settings.pays() { Self::CacheAware(settings) } else { Self::Strict }
    }

    /// Returns the name, as commands print it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::CacheAware(_) => "cache-aware",
        }
    }

    /// Returns the greatest number of messages in view, if the view keeps `window_max` with one closed block.
    pub(crate) fn window_bound(&self, window_max: usize) -> usize {
        match self {
            Self::Strict => window_max,
            Self::CacheAware(settings) => settings.messages_max,
        }
    }
}

/// The decisions of a fold policy. [`Contents`] are what a view holds under any of them; a policy
/// may keep state of its own.
pub(crate) trait Policy {
    /// Is called before every message that the view takes. An answer of the model shows that the
    /// previous prompt was sent.
    fn before_append(&mut self, _contents: &mut Contents, _shown: &Shown) {}

    /// Pins the task: the message is the next to be placed.
    fn pin_task(&mut self, contents: &mut Contents, task: Pinned);

    /// Pins a message that the view has, or had.
    fn pin(&mut self, contents: &mut Contents, pinned: Pinned);

    /// Appends the message. Returns the call that it answers.
    fn place(&mut self, contents: &mut Contents, shown: &Shown) -> Option<OpenCall>;

    /// Takes the block that has closed; its messages are no longer in the open tail.
    fn fold(&mut self, contents: &mut Contents, block: ClosedBlock);

    /// Returns whether the stable part of the next prompt is not a continuation of the last one.
    fn is_about_to_move(&self, contents: &Contents) -> bool;

    /// Returns the request to send to the model now.
    fn prompt(&self, contents: &Contents, budget: &Budget, counter: &dyn TokenCounter) -> Prompt;

    /// Returns the turns between the system prompt and the messages in view.
    fn opening(&self) -> Vec<&Form>;

    /// Returns the recall tools that the model is given.
    fn tools(&self) -> &DeclaredTools;

    /// Returns whether a prompt that shows this much declares them.
    fn declares_tools(&self, extent: Extent) -> bool;

    /// Returns what the end of the prompt says about messages that are not in view.
    fn out_of_view(&self, contents: &Contents, extent: Extent) -> OutOfView;

    /// Returns the policy's own state to save.
    fn account(&self, contents: &Contents) -> Option<Account>;
}

/// The lines at the end of a prompt about messages that are not in view.
pub(crate) struct OutOfView {
    pub(crate) sections: Vec<String>,
    /// The blocks that are named as holding some of them, newest first.
    pub(crate) blocks: Vec<BlockId>,
}

/// The fold policy of one view, with its state.
#[derive(Clone)]
pub(crate) enum ActivePolicy {
    Strict(StrictPolicy),
    CacheAware(Box<CacheAwarePolicy>),
}

impl ActivePolicy {
    /// Returns the policy that the settings name, for an empty view.
    pub(crate) fn new(contents: &Contents) -> Self {
        match contents.config.fold_policy {
            FoldPolicy::Strict => Self::Strict(StrictPolicy::new(contents)),
            FoldPolicy::CacheAware(settings) => {
                Self::CacheAware(Box::new(CacheAwarePolicy::new(settings)))
            }
        }
    }

    /// Returns the policy that the settings name, for a view that was saved with `account`: by the
    /// same policy or by the other.
    pub(crate) fn restore(contents: &mut Contents, account: Option<Account>) -> Self {
        let cache_aware = |policy| Self::CacheAware(Box::new(policy));
        match (contents.config.fold_policy, account) {
            (FoldPolicy::Strict, None) => Self::Strict(StrictPolicy::resume(contents)),
            (FoldPolicy::Strict, Some(_)) => {
                Self::Strict(StrictPolicy::after_cache_aware(contents))
            }
            (FoldPolicy::CacheAware(settings), Some(account)) => {
                cache_aware(CacheAwarePolicy::resume(settings, account, contents))
            }
            (FoldPolicy::CacheAware(settings), None) => {
                cache_aware(CacheAwarePolicy::after_strict(settings, contents))
            }
        }
    }

    pub(crate) fn get(&self) -> &dyn Policy {
        match self {
            Self::Strict(policy) => policy,
            Self::CacheAware(policy) => policy.as_ref(),
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut dyn Policy {
        match self {
            Self::Strict(policy) => policy,
            Self::CacheAware(policy) => policy.as_mut(),
        }
    }
}
