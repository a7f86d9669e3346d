//! Order, cycles and critical paths.

use crate::steps::{ids, plan, step};
use foldback_planner::{Graph, StepId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// OP6: a cycle is named in order, from its lowest step on, each waiting for the next.
#[test]
fn op6_a_cycle_is_named_in_order() {
    let graph =
        plan(vec![step(1, &[]), step(2, &[1, 3]), step(3, &[4]), step(4, &[2]), step(5, &[4])])
            .graph();
    let cycles = graph.cycles();
    assert_eq!(cycles.len(), 1);
    assert_eq!(cycles[0].to_string(), "step2 -> step3 -> step4 -> step2");
}

/// OP6: each group of steps in a ring is named once; a step after a ring is in none.
#[test]
fn op6_every_cycle_is_found_at_once() {
    let steps = vec![step(1, &[2]), step(2, &[1]), step(3, &[3]), step(4, &[3]), step(5, &[1, 6])];
    let named: Vec<String> = Graph::new(&steps).cycles().iter().map(ToString::to_string).collect();
    assert_eq!(named, ["step1 -> step2 -> step1", "step3 -> step3"]);
}

/// B3: a ring of 100,000 steps is found without recursion, and so is the order of a chain.
#[test]
fn b3_deep_graphs_do_not_overflow_the_stack() {
    let count = 100_000;
    let mut steps: Vec<_> = (1..=count).map(|id| step(id, &[id - 1])).collect();
    steps[0].after = Vec::new();
    let graph = Graph::new(&steps);
    assert_eq!(graph.order().len(), steps.len());
    assert_eq!(graph.critical_path(|_| Duration::from_secs(1)).length.as_secs(), u64::from(count));
    assert!(graph.cycles().is_empty());
    steps[0].after = ids(&[count]);
    let graph = Graph::new(&steps);
    assert!(graph.order().is_empty());
    let cycles = graph.cycles();
    assert_eq!(cycles.len(), 1);
    assert_eq!(cycles[0].steps.len(), steps.len());
    assert_eq!(cycles[0].steps[..2], ids(&[1, count]));
}

/// OP7: the critical path is the longest chain, not the chain of most steps.
#[test]
fn op7_the_critical_path_is_the_longest_chain() {
    let graph =
        plan(vec![step(1, &[]), step(2, &[]), step(3, &[1]), step(4, &[2, 3]), step(5, &[2])])
            .graph();
    let takes = |id: StepId| Duration::from_millis([0, 10, 100, 20, 5, 7][id.0 as usize]);
    let path = graph.critical_path(takes);
    assert_eq!(path.steps, ids(&[2, 5]));
    assert_eq!(path.length, Duration::from_millis(107));
    assert_eq!(Graph::new(&[]).critical_path(takes).length, Duration::ZERO);
}

/// What a step comes after, found by walking from each step.
fn ancestors(after: &BTreeMap<u32, Vec<u32>>, of: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut open = vec![of];
    while let Some(id) = open.pop() {
        for &on in after.get(&id).into_iter().flatten() {
            if found.insert(on) {
                open.push(on);
            }
        }
    }
    found
}

proptest! {
    /// OP6, OP7: cycles, order and the critical path of any graph equal the result of walking from each
    /// step.
    #[test]
    fn op6_op7_graphs_equal_a_naive_walk(
        edges in prop::collection::vec((1_u32..10, 1_u32..10), 0..24),
        takes in prop::collection::vec(0_u64..9, 10),
    ) {
        let mut after: BTreeMap<u32, Vec<u32>> = (1..10).map(|id| (id, Vec::new())).collect();
        for (step, on) in edges {
            after.entry(step).or_default().push(on);
        }
        for list in after.values_mut() {
            list.sort_unstable();
            list.dedup();
        }
        let steps: Vec<_> = after.iter().map(|(&id, after)| step(id, after)).collect();
        let graph = Graph::new(&steps);
        let all: BTreeMap<u32, BTreeSet<u32>> =
            after.keys().map(|&id| (id, ancestors(&after, id))).collect();
        let in_ring = |id: u32| all[&id].contains(&id);
        let stuck = |id: u32| in_ring(id) || all[&id].iter().any(|&on| in_ring(on));

        // Each ring is real, and each group of steps in rings is named once.
        let cycles = graph.cycles();
        for cycle in &cycles {
            let steps = &cycle.steps;
            for (i, id) in steps.iter().enumerate() {
                prop_assert!(after[&id.0].contains(&steps[(i + 1) % steps.len()].0));
            }
            prop_assert_eq!(steps.iter().min(), steps.first());
        }
        let groups: BTreeSet<Vec<u32>> = (1..10).filter(|&id| in_ring(id))
            .map(|id| (1..10).filter(|&o| all[&id].contains(&o) && all[&o].contains(&id)).collect())
            .collect();
        let named: Vec<u32> = cycles.iter().map(|cycle| cycle.steps[0].0).collect();
        let lowest: Vec<u32> = groups.iter().map(|group| group[0]).collect();
        prop_assert_eq!(named, lowest);

        // The order contains everything that can run, after its dependences.
        let order = graph.order();
        let place = |id: u32| order.iter().position(|other| other.0 == id);
        for id in 1..10 {
            prop_assert_eq!(place(id).is_none(), stuck(id));
            for &on in after[&id].iter().filter(|_| !stuck(id)) {
                prop_assert!(place(on) < place(id));
            }
        }
        let duration = |id: StepId| Duration::from_secs(takes[id.0 as usize]);
        let mut ends: BTreeMap<StepId, Duration> = BTreeMap::new();
        for &id in &order {
            let start = after[&id.0].iter().map(|&on| ends[&StepId(on)]).max().unwrap_or_default();
            ends.insert(id, start + duration(id));
        }
        let path = graph.critical_path(duration);
        prop_assert_eq!(path.length, ends.values().copied().max().unwrap_or_default());
        prop_assert_eq!(path.steps.iter().map(|&id| duration(id)).sum::<Duration>(), path.length);
        for pair in path.steps.windows(2) {
            prop_assert!(after[&pair[1].0].contains(&pair[0].0));
        }
    }
}
