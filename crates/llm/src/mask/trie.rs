//! Names as a tree of bytes.

use crate::hermes::quoted_name;
use std::collections::{BTreeMap, BTreeSet};

/// Names as they stand between the quotes of a JSON string, and the quote that ends each: so no name
/// is the beginning of another.
#[derive(Clone, Debug)]
pub(super) struct NameTrie {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: BTreeMap<u8, usize>,
    /// The name that ends here, by its place in the order of names.
    name: Option<usize>,
}

/// What a byte leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a name.
    Inside(usize),
    /// Behind the quote that ends this name.
    Ended(usize),
}

impl NameTrie {
    /// The node that every name begins at.
    pub(super) const ROOT: usize = 0;

    pub(super) fn new(names: &[String]) -> Self {
        let mut trie = Self { nodes: vec![Node::default()] };
        for (at, name) in names.iter().enumerate() {
            let mut node = Self::ROOT;
            for byte in quoted_name(name).bytes() {
                node = trie.child(node, byte);
            }
            if let Some(node) = trie.nodes.get_mut(node) {
                node.name = Some(at);
            }
        }
        trie
    }

    /// Where a byte leads from a node; `None` where no name goes on so.
    pub(super) fn step(&self, node: usize, byte: u8) -> Option<Step> {
        let next = *self.nodes.get(node)?.children.get(&byte)?;
        let name = self.nodes.get(next)?.name;
        Some(name.map_or(Step::Inside(next), Step::Ended))
    }

    /// The nodes on the way to a name, without the root.
    pub(super) fn path(&self, name: &str) -> BTreeSet<usize> {
        let mut path = BTreeSet::new();
        let mut node = Self::ROOT;
        for byte in quoted_name(name).bytes() {
            let child = self.nodes.get(node).and_then(|node| node.children.get(&byte));
            let Some(next) = child.copied() else { break };
            node = next;
            path.insert(node);
        }
        path
    }

    fn child(&mut self, node: usize, byte: u8) -> usize {
        let new = self.nodes.len();
        let Some(parent) = self.nodes.get_mut(node) else { return node };
        let child = *parent.children.entry(byte).or_insert(new);
        if child == new {
            self.nodes.push(Node::default());
        }
        child
    }
}
