//! The cost of opening a store of which nothing is in memory.

use super::machine::{self, Times};
use foldback_bench::BenchError;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// A store that was opened with nothing of it in memory. What the system does not report is left out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ColdStart {
    /// The time until the store was open, in milliseconds.
    pub(super) open_ms: f64,
    /// The time from the same start until the first search had answered.
    pub(super) first_hit_ms: f64,
    /// The total growth of the process, in megabytes.
    pub(super) rss_mb: Option<f64>,
    /// Its growth without file pages.
    pub(super) own_mb: Option<f64>,
    /// The number of descriptors of the open store.
    pub(super) descriptors: Option<u64>,
}

impl ColdStart {
    /// Opens the store in `dir`, searches it once, and then `more` times before memory and descriptors
    /// are measured. `search` is given the number of the search, counted from 0.
    pub(super) fn measure<S>(
        dir: &Path,
        open: impl FnOnce() -> Result<S, BenchError>,
        mut search: impl FnMut(&S, u64) -> Result<(), BenchError>,
        more: u64,
    ) -> Result<Self, BenchError> {
        machine::evict(dir)?;
        let (resident, descriptors) = (machine::resident(), machine::descriptors());
        let begin = Instant::now();
        let store = open()?;
        let open_ms = machine::ms(begin);
        search(&store, 0)?;
        let first_hit_ms = machine::ms(begin);
        (1..=more).try_for_each(|at| search(&store, at))?;
        let grown = machine::resident().zip(resident);
        Ok(Self {
            open_ms,
            first_hit_ms,
            rss_mb: grown.map(|(after, before)| after.all - before.all),
            own_mb: grown.map(|(after, before)| after.own - before.own),
            descriptors: machine::descriptors()
                .zip(descriptors)
                .map(|(after, before)| after.saturating_sub(before)),
        })
    }

    /// Returns the median of each figure.
    pub(super) fn median(starts: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| starts.iter().map(figure).collect::<Times>().p50();
        let told = |figure: fn(&Self) -> Option<f64>| {
            starts.iter().map(figure).collect::<Option<Times>>().map(|times| times.p50())
        };
        Self {
            open_ms: of(|start| start.open_ms),
            first_hit_ms: of(|start| start.first_hit_ms),
            rss_mb: told(|start| start.rss_mb),
            own_mb: told(|start| start.own_mb),
            descriptors: told(|start| start.descriptors.map(|count| count as f64))
                .map(|count| count.round() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_search_is_timed_and_the_others_are_made() {
        let dir = tempfile::tempdir().unwrap();
        let mut asked = Vec::new();
        let search = |_: &(), at| {
            asked.push(at);
            Ok(())
        };
        let start = ColdStart::measure(dir.path(), || Ok(()), search, 2).unwrap();
        assert!(start.first_hit_ms >= start.open_ms);
        assert_eq!(asked, [0, 1, 2]);
    }

    #[test]
    fn a_median_is_told_where_every_start_told() {
        let start = |ms, rss_mb| ColdStart {
            open_ms: ms,
            first_hit_ms: ms * 2.0,
            rss_mb,
            own_mb: Some(ms),
            descriptors: Some(ms as u64),
        };
        let median =
            ColdStart::median(&[start(9.0, Some(1.0)), start(1.0, None), start(3.0, Some(2.0))]);
        assert_eq!((median.open_ms, median.first_hit_ms), (3.0, 6.0));
        assert_eq!((median.rss_mb, median.own_mb, median.descriptors), (None, Some(3.0), Some(3)));
    }
}
