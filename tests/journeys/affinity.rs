//! The order in which a conversation asks several nodes.

use foldback_core::nodes_by_affinity;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

proptest! {
    /// C9: every node is in the order once, however they are listed; without one of them, the rest keep theirs.
    #[test]
    fn c9_a_node_that_leaves_moves_only_its_own(
        nodes in proptest::collection::btree_set(".{1,12}", 1..8),
        key in "\\PC{0,20}",
        leaves in any::<prop::sample::Index>(),
    ) {
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let order = nodes_by_affinity(&nodes, &key);
        prop_assert_eq!(order.iter().collect::<BTreeSet<_>>(), nodes.iter().collect());
        prop_assert_eq!(order.len(), nodes.len());
        let twice: Vec<&str> = nodes.iter().rev().chain(&nodes).copied().collect();
        prop_assert_eq!(&nodes_by_affinity(&twice, &key), &order);
        let left = nodes[leaves.index(nodes.len())];
        let rest: Vec<&str> = nodes.into_iter().filter(|node| *node != left).collect();
        let expected: Vec<&str> = order.into_iter().filter(|node| *node != left).collect();
        prop_assert_eq!(nodes_by_affinity(&rest, &key), expected);
    }
}

/// C9: conversations spread evenly over the nodes, and those of a lost node over the others.
#[test]
fn c9_conversations_are_spread() {
    let nodes = ["http://a:8377", "http://b:8377", "http://c:8377", "http://d:8377"];
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    let mut second_of_a: BTreeMap<&str, u32> = BTreeMap::new();
    for n in 0..8_000 {
        let key = if n % 2 == 0 { format!("todo-{n}") } else { format!("码头-{n}") };
        let order = nodes_by_affinity(&nodes, &key);
        *first.entry(order[0]).or_default() += 1;
        if order[0] == nodes[0] {
            *second_of_a.entry(order[1]).or_default() += 1;
        }
    }
    // Five standard deviations of 8,000 and of some 2,000 draws.
    assert!(first.values().all(|count| count.abs_diff(2_000) < 195), "{first:?}");
    assert_eq!(second_of_a.len(), 3);
    assert!(second_of_a.values().all(|count| count.abs_diff(667) < 140), "{second_of_a:?}");
}
