//! Feeding a recorded conversation through a live session, message by message, as if it happened
//! now: measuring what a model would be sent, and proving that everything comes back.

mod beside;
mod proof;
mod report;
mod run;
mod sample;
mod screen;
mod summary;

pub(crate) use beside::{Beside, BesideUsage, Forgot, replay_baseline, rivals};
pub(crate) use report::Report;
pub(crate) use run::{Event, Run, Stop, replay};
pub(crate) use sample::{Sample, samples};
pub(crate) use screen::{Many, Screen};
pub(crate) use summary::{Totals, summary};

use foldback::{CacheAware, Options, Schedule, ViewConfig};
use foldback_baselines::{BASELINES, Baseline, VARIANTS, baseline};

/// A policy that decides what a model is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Policy {
    /// The memory: a window of constant size.
    Foldback,
    /// The memory, folding when that is cheaper than reading from the provider's cache.
    CacheAware,
    /// What others do.
    Baseline(&'static Baseline),
}

impl Policy {
    /// The names there are, the memory's own first.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        let baselines = BASELINES.iter().chain(VARIANTS).map(|baseline| baseline.name);
        [Self::Foldback, Self::CacheAware].map(Self::as_str).into_iter().chain(baselines)
    }

    /// The policy of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let own = [Self::Foldback, Self::CacheAware].into_iter().find(|own| own.as_str() == name);
        own.or_else(|| baseline(name).map(Self::Baseline))
    }

    /// The name as it is given and reported.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Foldback => "foldback",
            Self::CacheAware => "foldback-cache-aware",
            Self::Baseline(baseline) => baseline.name,
        }
    }

    /// Whether it is the memory itself.
    pub(crate) fn is_foldback(self) -> bool {
        !matches!(self, Self::Baseline(_))
    }

    /// How the memory shows a conversation under this policy.
    pub(crate) fn view(self) -> ViewConfig {
        let schedule = match self {
            Self::CacheAware => Schedule::CacheAware(CacheAware::default()),
            Self::Foldback | Self::Baseline(_) => Schedule::Strict,
        };
        ViewConfig::default().with_schedule(schedule)
    }

    /// These options, with the view of this policy.
    pub(crate) fn options(self, options: Options) -> Options {
        Options { view: self.view(), ..options }
    }

    /// The greatest number of messages that the live view shows of closed blocks and the open tail,
    /// but for a single unit that is larger; `None` where there is no bound.
    pub(crate) fn window_bound(self) -> Option<usize> {
        self.is_foldback().then(|| self.view().window_bound())
    }
}
