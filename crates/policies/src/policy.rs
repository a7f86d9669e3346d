//! The policies that decide what is sent to a model, by name.

use crate::kept::Kept;
use foldback::{CacheAware, FoldPolicy, Memory, Options, ViewConfig};
use foldback_baselines::{BASELINES, Baseline, Summaries, VARIANTS, baseline};
use foldback_core::{CacheTerms, ContextError, ContextManager, Estimate, TodoId};
use std::sync::Arc;
use std::time::Duration;

/// A policy that decides what is sent to a model.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// A third-party policy.
    Baseline(&'static Baseline),
    /// The memory, with the smallest view at all times: its default.
    Foldback,
    /// The memory, folding when that is cheaper than continuing to read from the provider's cache.
    CacheAware,
}

impl Policy {
    /// Returns the policies that are compared: the others in their order, then the memory.
    #[must_use]
    pub fn all() -> Vec<Self> {
        BASELINES.iter().map(Self::Baseline).chain([Self::Foldback, Self::CacheAware]).collect()
    }

    /// Returns every name that [`named`](Self::named) knows, the memory's own first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let baselines = BASELINES.iter().chain(VARIANTS).map(|baseline| baseline.name);
        [Self::Foldback, Self::CacheAware].map(Self::name).into_iter().chain(baselines)
    }

    /// Returns the policy with this name: one of [`all`](Self::all), by its [short name](Self::short_name), too, or another
    /// mode of one of the others, such as `stm-ltm:compress`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let is_own = |own: &Self| own.name() == name || own.short_name() == Some(name);
        let own = [Self::Foldback, Self::CacheAware].into_iter().find(is_own);
        own.or_else(|| baseline(name).map(Self::Baseline))
    }

    /// Returns the name that is used in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline(baseline) => baseline.name,
            Self::Foldback => "foldback",
            Self::CacheAware => "foldback-cache-aware",
        }
    }

    /// Returns the name of its fold policy, which [`named`](Self::named) takes as well; `None` for one of the others.
    #[must_use]
    pub fn short_name(self) -> Option<&'static str> {
        match self {
            Self::Foldback => Some("strict"),
            Self::CacheAware => Some("cache-aware"),
            Self::Baseline(_) => None,
        }
    }

    /// Describes what it does, in a sentence or two.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Baseline(baseline) => baseline.about,
            Self::Foldback => {
                "Every block that closes is folded at once: the latest block and a few loose \
                 messages are sent, and everything else can be searched and loaded."
            }
            Self::CacheAware => {
                "The same memory, which folds only when that is expected to cost less than continuing \
                 to read from the provider's cache."
            }
        }
    }

    /// Returns whether it is one of the memory's own.
    #[must_use]
    pub fn is_foldback(self) -> bool {
        matches!(self, Self::Foldback | Self::CacheAware)
    }

    /// Returns how the memory shows a conversation under this policy, at the prices that it assumes unless others are
    /// given.
    #[must_use]
    pub fn view(self) -> ViewConfig {
        let fold_policy = match self {
            Self::CacheAware => FoldPolicy::CacheAware(CacheAware::default()),
            Self::Foldback | Self::Baseline(_) => FoldPolicy::Strict,
        };
        ViewConfig::default().with_fold_policy(fold_policy)
    }

    /// Returns the same on these terms of a provider.
    #[must_use]
    pub fn view_at(self, terms: CacheTerms) -> ViewConfig {
        match self {
            Self::CacheAware => {
                let settings = cache_aware(terms);
                ViewConfig::default().with_fold_policy(FoldPolicy::CacheAware(settings))
            }
            Self::Foldback | Self::Baseline(_) => self.view(),
        }
    }

    /// Returns these options, with the view of this policy.
    #[must_use]
    pub fn options(self, options: Options) -> Options {
        options.with_view(self.view())
    }

    /// Returns whether it summarises what leaves its prompts as [`open_with`](Self::open_with) says.
    #[must_use]
    pub fn takes_summaries(self) -> bool {
        matches!(self, Self::Baseline(baseline) if baseline.takes_summaries)
    }

    /// Opens the context of a todo under this policy, which resumes where it was: all messages are kept in `memory`,
    /// and a todo may be opened under another policy each time. For foldback's own policies it is the todo's session,
    /// whose view is that of the memory's [options](Self::options); a third-party policy receives the conversation first.
    ///
    /// # Errors
    /// When the memory fails.
    pub fn open(
        self,
        todo: &TodoId,
        memory: &Memory,
    ) -> Result<Box<dyn ContextManager>, ContextError> {
        self.open_with(todo, memory, &Summaries::default())
    }

    /// Like [`open`](Self::open), but if the policy has summaries, they are written as these say.
    ///
    /// # Errors
    /// When the memory fails.
    pub fn open_with(
        self,
        todo: &TodoId,
        memory: &Memory,
        summaries: &Summaries,
    ) -> Result<Box<dyn ContextManager>, ContextError> {
        match self {
            Self::Baseline(baseline) => {
                let policy = baseline.start_with(todo.clone(), Arc::new(Estimate), summaries);
                Ok(Box::new(Kept::open(policy, memory)?))
            }
            Self::Foldback | Self::CacheAware => Ok(Box::new(memory.session(todo)?)),
        }
    }
}

/// Returns the fold policy on these terms. Invalid prices are replaced by those that it assumes by itself.
pub(crate) fn cache_aware(terms: CacheTerms) -> CacheAware {
    let life = Some(terms.life).filter(|life| *life < Duration::MAX);
    let settings = CacheAware::default().with_least_cached(terms.least).with_cache_life(life);
    settings.with_prices(terms.prices).unwrap_or(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::Prices;

    /// CX10: a mode is a policy with a name of its own, and not part of the list that is compared.
    #[test]
    fn cx10_every_policy_has_a_name_and_a_mode_is_asked_for_by_one() {
        let named = |name: &str| Policy::named(name).map(Policy::name);
        for name in Policy::names().chain(Policy::all().into_iter().map(Policy::name)) {
            assert_eq!(named(name), Some(name));
        }
        assert!(Policy::all().iter().all(|policy| !policy.name().contains(':')));
        assert!(Policy::names().any(|name| name == "stm-ltm:compress"));
        assert_eq!(Policy::names().count(), Policy::all().len() + VARIANTS.len());
        assert_eq!(named("foldback:compress"), None);
    }

    #[test]
    fn the_terms_are_those_of_the_view() {
        let prices = Prices { read: 0.5, write: 1.0, plain: 1.0 };
        let terms = CacheTerms { prices, least: 2_048, life: Duration::from_secs(60) };
        let view = Policy::CacheAware.view_at(terms);
        let settings = CacheAware::default().with_least_cached(2_048).with_prices(prices).unwrap();
        let settings = settings.with_cache_life(Some(terms.life));
        assert_eq!(*view.fold_policy(), FoldPolicy::CacheAware(settings));
    }
}
