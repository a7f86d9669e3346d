//! The distance between the cuts that were found and those that are given.

use serde::Serialize;

/// The errors of one segmentation: shares of windows, from 0 (as given) to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Errors {
    /// Pk (Beeferman, Berger and Lafferty, 1999): the share of windows whose ends are in one segment by
    /// one of the two segmentations and in different ones by the other.
    pub pk: f64,
    /// WindowDiff (Pevzner and Hearst, 2002): the share of windows in which the two segmentations have
    /// different numbers of cuts. Never below Pk.
    pub wd: f64,
}

impl Errors {
    /// Compares cuts among `n` messages, by windows of `k`. A cut is the index of the message before
    /// which it lies, from 1 to `n - 1`; both lists ascend.
    #[must_use]
    pub fn of(n: usize, k: usize, given: &[usize], found: &[usize]) -> Self {
        let inside = |cuts: &[usize], i: usize| {
            let until = |end: usize| cuts.partition_point(|cut| *cut <= end);
            until(i + k) - until(i)
        };
        let windows = n.saturating_sub(k);
        let (mut pk, mut wd) = (0_usize, 0_usize);
        for i in 0..windows {
            let (given, found) = (inside(given, i), inside(found, i));
            pk += usize::from((given == 0) != (found == 0));
            wd += usize::from(given != found);
        }
        let share = |errors: usize| errors as f64 / windows.max(1) as f64;
        Self { pk: share(pk), wd: share(wd) }
    }
}

/// Returns the window by which a conversation of `n` messages with this many given cuts is judged: half
/// a mean segment, rounded, at least 2.
#[must_use]
pub fn window(n: usize, cuts: usize) -> usize {
    let half = n as f64 / (cuts + 1) as f64 / 2.0;
    (half.round() as usize).max(2)
}

/// Counts of cuts, over one conversation or many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of given cuts.
    pub given: usize,
    /// The number of cuts found.
    pub found: usize,
    /// The number of cuts found exactly at the message of a given one.
    pub hits: usize,
}

impl Tally {
    /// Counts the cuts of one conversation; both lists ascend.
    #[must_use]
    pub fn of(given: &[usize], found: &[usize]) -> Self {
        let hits = found.iter().filter(|cut| given.binary_search(cut).is_ok()).count();
        Self { given: given.len(), found: found.len(), hits }
    }

    /// Adds the counts of another conversation.
    pub fn add(&mut self, other: Self) {
        self.given += other.given;
        self.found += other.found;
        self.hits += other.hits;
    }

    /// Returns the harmonic mean of precision and recall, exact to the message; 1 if nothing is given
    /// and nothing was found.
    #[must_use]
    pub fn f1(self) -> f64 {
        match self.found + self.given {
            0 => 1.0,
            both => 2.0 * self.hits as f64 / both as f64,
        }
    }

    /// Returns the number of cuts found for each given one; `None` if none is given.
    #[must_use]
    pub fn ratio(self) -> Option<f64> {
        (self.given > 0).then(|| self.found as f64 / self.given as f64)
    }
}
