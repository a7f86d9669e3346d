//! The results of trials.

use std::collections::BTreeMap;
use std::fmt;

/// The outcome of the trials of one kind.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of trials.
    pub trials: u64,
    /// How often each event happened, by name.
    pub counts: BTreeMap<String, u64>,
    /// The trials in which a promise was broken.
    pub failures: Vec<Failure>,
}

/// A trial in which a promise was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the trial.
    pub seed: u64,
    /// Which trial it was, and what was wrong.
    pub what: String,
}

impl Report {
    /// Counts one event.
    pub fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// Returns how often this event happened.
    #[must_use]
    pub fn counted(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Adds the findings of a trial.
    pub fn found(&mut self, seed: u64, trial: &str, findings: Vec<String>) {
        let failure = |what| Failure { seed, what: format!("{trial}: {what}") };
        self.failures.extend(findings.into_iter().map(failure));
    }

    /// Adds another report of the same kind.
    pub fn add(&mut self, other: Self) {
        self.trials += other.trials;
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        self.failures.extend(other.failures);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} trials, {} failures", self.trials, self.failures.len())?;
        for (what, count) in &self.counts {
            write!(f, "\n    {count:>7}  {what}")?;
        }
        for Failure { seed, what } in &self.failures {
            write!(f, "\n  FAILED with --seed {seed}: {what}")?;
        }
        Ok(())
    }
}
