//! Finds the groups that express the dependences.

use crate::json::DEPTH_MOST;
use crate::{Plan, StepId};
use std::collections::BTreeMap;

/// Steps, by their places in the plan, as a nesting of groups.
pub(super) enum Tree {
    Leaf(usize),
    Parallel(Vec<Self>),
    Sequential(Vec<Self>),
}

impl Tree {
    /// The steps in the order of the text.
    pub(super) fn leaves(&self, out: &mut Vec<usize>) {
        match self {
            Self::Leaf(place) => out.push(*place),
            Self::Parallel(items) | Self::Sequential(items) => {
                items.iter().for_each(|item| item.leaves(out));
            }
        }
    }
}

/// Takes a plan apart into groups. Each level of nesting takes time in proportion to steps plus
/// dependences.
pub(super) struct Nesting {
    /// For each step, the places of the steps that it waits for; all are lower.
    after: Vec<Vec<usize>>,
    /// For each step, its place in the set under examination.
    ranks: Vec<usize>,
}

/// The rank of a step that is in no set examined so far.
const NONE: usize = usize::MAX;

impl Nesting {
    pub(super) fn of(plan: &Plan) -> Self {
        let places: BTreeMap<StepId, usize> =
            plan.steps.iter().zip(0..).map(|(step, place)| (step.id, place)).collect();
        // In a plan that may run, steps wait for lower numbers only.
        let after = plan.steps.iter().zip(0..).map(|(step, own)| {
            let mut after: Vec<usize> = step
                .after
                .iter()
                .filter_map(|on| places.get(on).copied())
                .filter(|place| *place < own)
                .collect();
            after.sort_unstable();
            after.dedup();
            after
        });
        Self { after: after.collect(), ranks: vec![NONE; plan.steps.len()] }
    }

    /// Returns the groups that give exactly the order of a set of ascending places. `Err` is a step
    /// that no group can express.
    pub(super) fn tree(&mut self, set: Vec<usize>, depth: usize) -> Result<Tree, usize> {
        let first = set.first().copied().unwrap_or(0);
        if depth + 2 > DEPTH_MOST {
            return Err(first);
        }
        if let [only] = set.as_slice() {
            return Ok(Tree::Leaf(*only));
        }
        let pairs = self.pairs(&set);
        let mut parts = components(&set, &pairs);
        let is_parallel = parts.len() != 1;
        if !is_parallel {
            parts = sequence(set, &pairs);
            if parts.len() == 1 {
                return Err(first);
            }
        }
        let items: Result<Vec<Tree>, usize> =
            parts.into_iter().map(|part| self.tree(part, depth + 1)).collect();
        items.map(if is_parallel { Tree::Parallel } else { Tree::Sequential })
    }

    /// Returns the pairs of a set in which the second waits for the first, by their ranks in it.
    /// Indirect waiting runs through other steps of the same set, because of the way the sets are
    /// built.
    fn pairs(&mut self, set: &[usize]) -> Vec<(usize, usize)> {
        for (rank, place) in set.iter().enumerate() {
            self.ranks[*place] = rank;
        }
        let mut pairs = Vec::new();
        for (rank, place) in set.iter().enumerate() {
            let inside = self.after[*place].iter().map(|on| self.ranks[*on]);
            pairs.extend(inside.filter(|on| *on != NONE).map(|on| (on, rank)));
        }
        for place in set {
            self.ranks[*place] = NONE;
        }
        pairs
    }
}

/// Returns sets that have no dependences on each other.
fn components(set: &[usize], pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    // The lowest known rank of each step's component, or a step on the way to it.
    let mut lower: Vec<usize> = (0..set.len()).collect();
    for (one, other) in pairs {
        let (one, other) = (root(&mut lower, *one), root(&mut lower, *other));
        lower[one.max(other)] = one.min(other);
    }
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); set.len()];
    for (rank, place) in set.iter().enumerate() {
        parts[root(&mut lower, rank)].push(*place);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn root(lower: &mut [usize], mut rank: usize) -> usize {
    while lower[rank] != rank {
        lower[rank] = lower[lower[rank]];
        rank = lower[rank];
    }
    rank
}

/// Returns sets of which each ends before the next begins.
///
/// A set can be cut before a rank if everything after the cut waits for everything before it. That is
/// the case if each end (a step before the cut that nothing before the cut waits for) is paired with
/// each beginning (a step after the cut that waits for nothing after it). So ends, beginnings and their
/// pairs are counted for every cut.
fn sequence(set: Vec<usize>, pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let count = set.len();
    // The first step that waits for each step, and the last step that each one waits for, plus one.
    let mut first_behind = vec![count; count];
    let mut last_before = vec![0; count];
    for (before, behind) in pairs {
        first_behind[*before] = first_behind[*before].min(*behind);
        last_before[*behind] = last_before[*behind].max(before + 1);
    }
    let mut ends = Counts::new(count);
    let mut beginnings = Counts::new(count);
    let mut joints = Counts::new(count);
    for rank in 0..count {
        ends.add(rank + 1, first_behind[rank]);
        beginnings.add(last_before[rank], rank);
    }
    for (before, behind) in pairs {
        joints.add(last_before[*behind], first_behind[*before]);
    }
    let cuts = ends.sums().zip(beginnings.sums()).zip(joints.sums());
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for (place, ((ends, beginnings), joints)) in set.into_iter().zip(cuts) {
        match parts.last_mut() {
            Some(part) if joints != ends * beginnings => part.push(place),
            _ => parts.push(vec![place]),
        }
    }
    parts
}

/// The number of ranges that contain each cut.
struct Counts(Vec<isize>);

impl Counts {
    fn new(count: usize) -> Self {
        Self(vec![0; count + 2])
    }

    /// Counts the cuts from the first to the last, inclusive; none if the last is lower.
    fn add(&mut self, first: usize, last: usize) {
        if first <= last {
            self.0[first] += 1;
            self.0[last + 1] -= 1;
        }
    }

    /// The number of each cut.
    fn sums(&self) -> impl Iterator<Item = isize> {
        self.0.iter().scan(0, |sum, change| {
            *sum += change;
            Some(*sum)
        })
    }
}
