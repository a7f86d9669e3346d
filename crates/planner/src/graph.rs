//! Dependences between steps: order, cycles and the critical path.

use crate::{Plan, Step, StepId};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The dependences of steps. Everything here takes time and memory in proportion to steps plus
/// dependences, and nothing recurses.
///
/// Dependences on steps that are not in the graph are left out; they are reported elsewhere.
#[derive(Clone, Debug)]
pub struct Graph {
    ids: Vec<StepId>,
    after: Lists,
    dependents: Lists,
}

/// Steps that wait for each other in a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Each step waits for the next, and the last for the first, which has the lowest number.
    pub steps: Vec<StepId>,
}

/// The chain of steps that determines how long a plan takes, whatever runs in parallel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// The steps of the chain, in starting order.
    pub steps: Vec<StepId>,
    /// Their total duration.
    pub length: Duration,
}

impl Graph {
    /// Returns the graph of some steps; each number occurs once.
    pub fn new<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let steps: Vec<&Step> = steps.into_iter().collect();
        let ids: Vec<StepId> = steps.iter().map(|step| step.id).collect();
        let at: FxHashMap<StepId, usize> = ids.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let edges = steps.iter().enumerate().flat_map(|(i, step)| {
            step.after.iter().filter_map(|id| at.get(id)).map(move |&on| (i, on))
        });
        Self::of_edges(ids, edges.collect())
    }

    /// Returns the graph of steps and pairs of places, in which the first waits for the second.
    pub(crate) fn of_edges(ids: Vec<StepId>, edges: Vec<(usize, usize)>) -> Self {
        let after = Lists::new(ids.len(), edges.iter().copied());
        let dependents = Lists::new(ids.len(), edges.iter().map(|&(step, on)| (on, step)));
        Self { ids, after, dependents }
    }

    /// Returns an order in which each step comes after its dependences; steps in a cycle, or after one,
    /// are left out.
    #[must_use]
    pub fn order(&self) -> Vec<StepId> {
        self.places().into_iter().map(|place| self.ids[place]).collect()
    }

    /// Returns the chain that takes longest, given the duration of each step. Among equal chains,
    /// returns the one whose steps have the lower numbers, seen from its end.
    pub fn critical_path(&self, duration: impl Fn(StepId) -> Duration) -> CriticalPath {
        // The earliest end of each step, and the dependence that it waits for longest.
        let mut ends = vec![(Duration::ZERO, None); self.ids.len()];
        let mut last: Option<usize> = None;
        let later = |ends: &[(Duration, _)], a: Option<usize>, b: usize| match a {
            Some(a) => {
                ends[b].0 > ends[a].0 || (ends[b].0 == ends[a].0 && self.ids[b] < self.ids[a])
            }
            None => true,
        };
        for place in self.places() {
            let mut latest = None;
            for &on in self.after.of(place) {
                if later(&ends, latest, on) {
                    latest = Some(on);
                }
            }
            let start = latest.map_or(Duration::ZERO, |on| ends[on].0);
            ends[place] = (start.saturating_add(duration(self.ids[place])), latest);
            if later(&ends, last, place) {
                last = Some(place);
            }
        }
        let length = last.map_or(Duration::ZERO, |place| ends[place].0);
        let mut steps = Vec::new();
        while let Some(place) = last {
            steps.push(self.ids[place]);
            last = ends[place].1;
        }
        steps.reverse();
        CriticalPath { steps, length }
    }

    /// Returns the cycles: for each group of steps that block each other from starting, the shortest
    /// cycle through its lowest step. Ascending by that step.
    #[must_use]
    pub fn cycles(&self) -> Vec<Cycle> {
        let groups = self.components();
        let mut lowest: FxHashMap<usize, usize> = FxHashMap::default();
        let mut sizes = vec![0_usize; self.ids.len()];
        for (place, &group) in groups.iter().enumerate() {
            sizes[group] += 1;
            let low = lowest.entry(group).or_insert(place);
            if self.ids[place] < self.ids[*low] {
                *low = place;
            }
        }
        let mut starts: Vec<usize> = lowest.into_values().collect();
        starts.retain(|&at| sizes[groups[at]] > 1 || self.after.of(at).contains(&at));
        starts.sort_unstable_by_key(|&at| self.ids[at]);
        let mut seen_from = vec![None; self.ids.len()];
        starts
            .into_iter()
            .map(|start| self.shortest_cycle(start, &groups, &mut seen_from))
            .collect()
    }

    /// Returns the groups of steps that wait for each other, directly or through others. A step that
    /// waits only for itself is not a group.
    pub(crate) fn groups(&self) -> Vec<Vec<StepId>> {
        let mut groups: FxHashMap<usize, Vec<StepId>> = FxHashMap::default();
        for (place, group) in self.components().into_iter().enumerate() {
            groups.entry(group).or_default().push(self.ids[place]);
        }
        let mut groups: Vec<_> = groups.into_values().filter(|group| group.len() > 1).collect();
        groups.sort_unstable();
        groups
    }

    /// Returns the same groups, given that no step waits for itself.
    pub(crate) fn without_self_dependences(&self) -> Self {
        let edges = (0..self.ids.len())
            .flat_map(|place| self.after.of(place).iter().map(move |&on| (place, on)))
            .filter(|(place, on)| place != on);
        Self::of_edges(self.ids.clone(), edges.collect())
    }

    /// Returns, for each queried pair, whether the first step comes after the second, directly or
    /// through others. The graph must have no cycle.
    pub(crate) fn come_after(&self, pairs: &[(StepId, StepId)]) -> Vec<bool> {
        let at: FxHashMap<StepId, usize> =
            self.ids.iter().enumerate().map(|(place, &id)| (id, place)).collect();
        let order = self.places();
        let mut targets: Vec<StepId> = pairs.iter().map(|pair| pair.1).collect();
        targets.sort_unstable();
        targets.dedup();
        let mut answers = vec![false; pairs.len()];
        // 64 targets at a time: a set bit says that the step comes after that target.
        for group in targets.chunks(64) {
            let mut bits = vec![0_u64; self.ids.len()];
            for &place in &order {
                for &on in self.after.of(place) {
                    let own = group.binary_search(&self.ids[on]).map_or(0, |bit| 1 << bit);
                    bits[place] |= bits[on] | own;
                }
            }
            for (answer, (step, target)) in answers.iter_mut().zip(pairs) {
                if let (Ok(bit), Some(&place)) = (group.binary_search(target), at.get(step)) {
                    *answer = bits[place] >> bit & 1 == 1;
                }
            }
        }
        answers
    }

    /// Returns the places in an order in which each comes after its dependences.
    fn places(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.ids.len()).map(|at| self.after.of(at).len()).collect();
        let mut order: Vec<usize> = (0..left.len()).filter(|&place| left[place] == 0).collect();
        let mut next = 0;
        while let Some(&place) = order.get(next) {
            next += 1;
            for &dependent in self.dependents.of(place) {
                left[dependent] -= 1;
                if left[dependent] == 0 {
                    order.push(dependent);
                }
            }
        }
        order
    }

    /// Returns the number of each place's strongly connected component (Tarjan's algorithm with the
    /// call stack as a vector).
    fn components(&self) -> Vec<usize> {
        const UNSEEN: usize = usize::MAX;
        let count = self.ids.len();
        let mut index = vec![UNSEEN; count];
        let mut low = vec![0; count];
        let mut component = vec![UNSEEN; count];
        let mut open = Vec::new();
        let mut seen = 0;
        for root in 0..count {
            if index[root] != UNSEEN {
                continue;
            }
            let mut calls = vec![(root, 0)];
            while let Some(call) = calls.last_mut() {
                let place = call.0;
                if call.1 == 0 {
                    index[place] = seen;
                    low[place] = seen;
                    seen += 1;
                    open.push(place);
                }
                if let Some(&on) = self.after.of(place).get(call.1) {
                    call.1 += 1;
                    if index[on] == UNSEEN {
                        calls.push((on, 0));
                    } else if component[on] == UNSEEN {
                        low[place] = low[place].min(index[on]);
                    }
                    continue;
                }
                calls.pop();
                if let Some(&(caller, _)) = calls.last() {
                    low[caller] = low[caller].min(low[place]);
                }
                if low[place] == index[place] {
                    while let Some(member) = open.pop() {
                        component[member] = place;
                        if member == place {
                            break;
                        }
                    }
                }
            }
        }
        component
    }

    fn shortest_cycle(
        &self,
        start: usize,
        groups: &[usize],
        seen_from: &mut [Option<usize>],
    ) -> Cycle {
        let mut queue = VecDeque::from([start]);
        let mut end = start;
        'search: while let Some(place) = queue.pop_front() {
            for &on in self.after.of(place) {
                if on == start {
                    end = place;
                    break 'search;
                }
                if groups[on] == groups[start] && seen_from[on].is_none() {
                    seen_from[on] = Some(place);
                    queue.push_back(on);
                }
            }
        }
        let mut steps = vec![self.ids[end]];
        while end != start {
            let Some(from) = seen_from[end] else { break };
            end = from;
            steps.push(self.ids[end]);
        }
        steps.reverse();
        Cycle { steps }
    }
}

impl Plan {
    /// Prints the dependences.
    #[must_use]
    pub fn graph(&self) -> Graph {
        Graph::new(&self.steps)
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(f, "{step} -> ")?;
        }
        self.steps.first().map_or(Ok(()), |first| first.fmt(f))
    }
}

/// A list of places for each place, in two vectors.
#[derive(Clone, Debug)]
struct Lists {
    /// The index at which the list of a place begins; the next one's beginning is its end.
    starts: Vec<usize>,
    items: Vec<usize>,
}

impl Lists {
    fn new(count: usize, pairs: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut starts = vec![0; count + 1];
        for (place, _) in pairs.clone() {
            starts[place + 1] += 1;
        }
        for place in 0..count {
            starts[place + 1] += starts[place];
        }
        let mut items = vec![0; starts[count]];
        let mut filled = starts.clone();
        for (place, item) in pairs {
            items[filled[place]] = item;
            filled[place] += 1;
        }
        Self { starts, items }
    }

    fn of(&self, place: usize) -> &[usize] {
        &self.items[self.starts[place]..self.starts[place + 1]]
    }
}
