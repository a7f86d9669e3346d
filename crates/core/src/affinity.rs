//! Which of several nodes over one store a conversation should go to.

/// Returns the nodes in the order in which a conversation should ask them, without repetitions: the first one that answers
/// has it. `key` names the conversation: its todo, or what it will always be known by.
///
/// Any node can serve any conversation, so the order is a hint. A node that had the conversation last is quicker, because
/// it has its index. By rendezvous hashing (highest random weight) everyone who knows the same nodes agrees on the order,
/// whatever order they know them in. A node that is added takes only its share of the conversations, and those of a node
/// that is removed are spread over the others.
///
/// ```
/// let nodes = ["http://a:8377", "http://b:8377", "http://c:8377"];
/// let order = foldback_core::nodes_by_affinity(&nodes, "quay");
/// assert_eq!(order.len(), 3);
/// assert_eq!(foldback_core::nodes_by_affinity(&["http://b:8377"], "quay"), ["http://b:8377"]);
/// ```
#[must_use]
pub fn nodes_by_affinity<'n>(nodes: &[&'n str], key: &str) -> Vec<&'n str> {
    let weight = |node: &str| {
        let mut hasher = blake3::Hasher::new();
        // The node's length is hashed too, so that no two pairs of node and key give the same bytes.
        hasher.update(&(node.len() as u64).to_le_bytes());
        hasher.update(node.as_bytes()).update(key.as_bytes());
        *hasher.finalize().as_bytes()
    };
    let mut weighed: Vec<_> = nodes.iter().map(|node| (weight(node), *node)).collect();
    weighed.sort_by(|one, other| other.cmp(one));
    weighed.dedup();
    weighed.into_iter().map(|(_, node)| node).collect()
}
