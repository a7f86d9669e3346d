//! The time of plans in which a tool takes one unit and a model call `l` units.

use super::gold::GoldPlan;
use serde::Serialize;

/// The times of a model call, in units of a tool's, for which both ways are compared.
pub const MODEL_TIMES: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

/// Sums over plans: the time of both ways follows from these three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClosedForm {
    /// The number of plans.
    pub plans: usize,
    /// The number of their calls.
    pub calls: usize,
    /// The number of calls on their critical paths.
    pub critical_path: usize,
}

impl ClosedForm {
    /// Sums up plans.
    #[must_use]
    pub fn of<'a>(plans: impl IntoIterator<Item = &'a GoldPlan>) -> Self {
        let mut all = Self::default();
        for plan in plans {
            let waits = plan.waits();
            all.plans += 1;
            all.calls += waits.len();
            all.critical_path += critical_path(&waits, |_| 1_u64) as usize;
        }
        all
    }

    /// Returns the ratio of all calls to the calls on critical paths.
    #[must_use]
    pub fn width(self) -> f64 {
        self.calls as f64 / self.critical_path.max(1) as f64
    }

    /// Returns the model calls of working step by step: one before each call, and one for the answer.
    #[must_use]
    pub fn react_calls(self) -> usize {
        self.calls + self.plans
    }

    /// Returns the model calls of one plan: one for the plan, and one for the answer.
    #[must_use]
    pub fn one_plan_calls(self) -> usize {
        2 * self.plans
    }

    /// Returns the time of working step by step.
    #[must_use]
    pub fn react(self, l: f64) -> f64 {
        self.calls as f64 * (l + 1.0) + self.plans as f64 * l
    }

    /// Returns the time of one plan.
    #[must_use]
    pub fn one_plan(self, l: f64) -> f64 {
        2.0 * self.plans as f64 * l + self.critical_path as f64
    }

    /// Returns the speed-up of one plan.
    #[must_use]
    pub fn speedup(self, l: f64) -> f64 {
        self.react(l) / self.one_plan(l)
    }
}

/// Returns the length of the longest path through steps that each take a time and wait for lower ones.
/// It is used to judge the executor, and shares no code with it.
pub(crate) fn critical_path<T>(waits: &[Vec<usize>], time: impl Fn(usize) -> T) -> T
where
    T: Copy + Default + Ord + std::ops::Add<Output = T>,
{
    let mut ends: Vec<T> = Vec::with_capacity(waits.len());
    for (at, before) in waits.iter().enumerate() {
        let start = before.iter().filter_map(|one| ends.get(*one)).copied().max();
        ends.push(start.unwrap_or_default() + time(at));
    }
    ends.into_iter().max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::{Family, plan};

    /// The published sums for all of NESTFUL: 300 plans, 800 calls, 618 on critical paths.
    #[test]
    fn the_published_figures_follow() {
        let all = ClosedForm { plans: 300, calls: 800, critical_path: 618 };
        assert_eq!((all.react_calls(), all.one_plan_calls()), (1_100, 600));
        let speedups = MODEL_TIMES.map(|l| (all.speedup(l) * 100.0).round() / 100.0);
        assert_eq!(speedups, [1.47, 1.56, 1.65, 1.72]);
        assert_eq!((all.width() * 100.0).round(), 129.0);
    }

    #[test]
    fn the_longest_way_counts() {
        let waits = [vec![], vec![], vec![0, 1], vec![0]];
        let times = [3_u64, 1, 5, 7];
        assert_eq!(critical_path(&waits, |at| times[at]), 10);
        let nothing: [Vec<usize>; 0] = [];
        assert_eq!(critical_path(&nothing, |_| 1_u64), 0);
        let plans = [plan(Family::Chain, 5, 1), plan(Family::Independent, 5, 1)];
        let all = ClosedForm::of(&plans);
        assert_eq!(all, ClosedForm { plans: 2, calls: 10, critical_path: 6 });
        // A single call takes the same time either way.
        let one = ClosedForm { plans: 1, calls: 1, critical_path: 1 };
        assert_eq!(one.react(2.0), one.one_plan(2.0));
    }
}
