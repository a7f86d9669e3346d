//! What was tried, and what was found.

use std::collections::BTreeMap;
use std::fmt;

/// What the trials of one kind came to.
#[derive(Debug, Default)]
pub struct Report {
    /// How many trials were made.
    pub trials: u64,
    /// How often each thing happened, by its name.
    pub counts: BTreeMap<String, u64>,
    /// The trials that broke a promise.
    pub failures: Vec<Failure>,
}

/// A trial that broke a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the trial.
    pub seed: u64,
    /// Which trial it was, and what was wrong.
    pub what: String,
}

impl Report {
    /// Counts one thing.
    pub fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// How often this happened.
    #[must_use]
    pub fn counted(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Takes what a trial found.
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
