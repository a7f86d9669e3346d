//! The policies that are compared.

use crate::{BenchError, Driven};
use foldback::{CacheAware, Memory, Options, Schedule, ViewConfig};
use foldback_baselines::{BASELINES, Baseline, baseline};
use foldback_core::{ContextManager, Prices, Timestamp, TodoId};
use std::sync::Arc;

/// A policy that decides what a model is sent.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// What others do.
    Baseline(&'static Baseline),
    /// The memory, with the smallest view at any time: its default.
    Foldback,
    /// The memory, folding when that is cheaper than reading on from the provider's cache.
    CacheAware,
}

impl Policy {
    /// Every policy: the others in their order, then the memory.
    #[must_use]
    pub fn all() -> Vec<Self> {
        BASELINES.iter().map(Self::Baseline).chain([Self::Foldback, Self::CacheAware]).collect()
    }

    /// The policy of this name: one of [`all`](Self::all), or a policy of others in another mode,
    /// such as `stm-ltm:compress`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let own = [Self::Foldback, Self::CacheAware].into_iter().find(|own| own.name() == name);
        own.or_else(|| baseline(name).map(Self::Baseline))
    }

    /// The name as it is reported.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline(baseline) => baseline.name,
            Self::Foldback => "foldback",
            Self::CacheAware => "foldback-cache-aware",
        }
    }

    /// What it does, in a sentence or two.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Baseline(baseline) => baseline.about,
            Self::Foldback => {
                "Every block that closes is folded at once: the latest block and a few loose \
                 messages are sent, and everything else can be searched and loaded."
            }
            Self::CacheAware => {
                "The same memory, which folds only when that is expected to cost less than reading \
                 on from the provider's cache."
            }
        }
    }

    /// Whether it is the memory.
    #[must_use]
    pub fn is_foldback(self) -> bool {
        matches!(self, Self::Foldback | Self::CacheAware)
    }

    /// A context of this policy that holds nothing yet, for a provider with these prices.
    ///
    /// # Errors
    /// When a memory cannot be made, or the prices are none.
    pub(crate) fn start(
        self,
        todo: TodoId,
        prices: Prices,
    ) -> Result<Box<dyn ContextManager>, BenchError> {
        let schedule = match self {
            Self::Baseline(baseline) => return Ok(baseline.start(todo, Driven::counters())),
            Self::Foldback => Schedule::Strict,
            Self::CacheAware => Schedule::CacheAware(
                CacheAware::default()
                    .with_prices(prices)
                    .map_err(|error| BenchError::Input(error.to_string()))?,
            ),
        };
        let options = Options {
            view: ViewConfig::default().with_schedule(schedule),
            // Same input, same figures: a message without a time gets no time of today.
            clock: Arc::new(|| Timestamp(0)),
            ..Options::default()
        };
        Ok(Box::new(Memory::in_memory(options)?.session(&todo)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CX10: a mode is a policy of its own name, and no part of the list that is compared.
    #[test]
    fn cx10_every_policy_has_a_name_and_a_mode_is_asked_for_by_one() {
        let named = |name: &str| Policy::named(name).map(Policy::name);
        for policy in Policy::all() {
            assert_eq!(named(policy.name()), Some(policy.name()));
        }
        assert_eq!(named("stm-ltm:compress"), Some("stm-ltm:compress"));
        assert!(Policy::all().iter().all(|policy| !policy.name().contains(':')));
        assert_eq!(named("foldback:compress"), None);
    }
}
