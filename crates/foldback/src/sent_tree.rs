//! What a client sent, as a tree.

use crate::Sent;
use std::collections::HashMap;
use std::ops::Range;

/// The length of a digest, in bytes.
const DIGEST: usize = 32;

/// The messages of a client as a tree: one that rewinds, edits or forks its conversation begins a branch, and shares
/// everything before it.
///
/// A message is known by the one before it and by a digest of what it says. Digests are the caller's: two messages with
/// the same one are the same message.
///
/// ```
/// use foldback::SentTree;
///
/// let digest = |text: &str| -> [u8; 32] {
///     let mut digest = [0; 32];
///     digest[..text.len()].copy_from_slice(text.as_bytes());
///     digest
/// };
/// let mut tree = SentTree::default();
/// let asked = tree.push(None, 0..1, digest("Which berth?"));
/// let seven = tree.push(Some(asked), 1..2, digest("Seven."));
/// let eight = tree.push(Some(asked), 2..3, digest("Eight."));
/// assert_eq!(tree.child(Some(asked), &digest("Eight.")), Some(eight));
/// assert_eq!(tree.branch(eight), [asked, eight]);
/// assert_eq!(tree.tips().collect::<Vec<_>>(), [seven, eight]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SentTree {
    nodes: Vec<Node>,
    by_digest: HashMap<(Option<u32>, [u8; DIGEST]), u32>,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Option<u32>,
    recorded: Range<u64>,
    digest: [u8; DIGEST],
    children: u32,
}

impl SentTree {
    /// Adds a message that follows another, and returns its number. One that is to follow a message that does not exist
    /// is on no branch but its own, and is not found as the beginning of a conversation.
    pub fn push(&mut self, parent: Option<u32>, recorded: Range<u64>, digest: [u8; DIGEST]) -> u32 {
        let n = self.next();
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent as usize)) {
            parent.children += 1;
        }
        self.nodes.push(Node { parent, recorded, digest, children: 0 });
        self.by_digest.entry((parent, digest)).or_insert(n);
        n
    }

    /// Adds a message as a store holds it, with the digest at the beginning of its [tag](Sent::tag).
    ///
    /// Returns its number.
    pub fn push_sent(&mut self, sent: &Sent) -> u32 {
        let mut digest = [0; DIGEST];
        let given = sent.tag.get(..DIGEST).unwrap_or(&sent.tag);
        for (byte, given) in digest.iter_mut().zip(given) {
            *byte = *given;
        }
        self.push(sent.parent, sent.recorded.clone(), digest)
    }

    /// Returns the message with this digest that follows another, or that begins a conversation.
    #[must_use]
    pub fn child(&self, parent: Option<u32>, digest: &[u8; DIGEST]) -> Option<u32> {
        // It is usually the next one.
        let next = parent.map_or(0, |parent| parent.saturating_add(1));
        match self.nodes.get(next as usize) {
            Some(node) if node.parent == parent && node.digest == *digest => Some(next),
            _ => self.by_digest.get(&(parent, *digest)).copied(),
        }
    }

    /// Returns the message that precedes another; `None` at the beginning of a conversation.
    #[must_use]
    pub fn parent(&self, n: u32) -> Option<u32> {
        self.nodes.get(n as usize)?.parent
    }

    /// Iterates over the messages that follow another, or that begin a conversation.
    pub fn children(&self, parent: Option<u32>) -> impl Iterator<Item = u32> {
        (0..).zip(&self.nodes).filter(move |(_, node)| node.parent == parent).map(|(n, _)| n)
    }

    /// Returns how many messages follow a message.
    #[must_use]
    pub fn followers(&self, n: u32) -> usize {
        self.nodes.get(n as usize).map_or(0, |node| node.children as usize)
    }

    /// Returns what was recorded of a message; nothing of one that does not exist.
    #[must_use]
    pub fn recorded(&self, n: u32) -> Range<u64> {
        self.nodes.get(n as usize).map_or(0..0, |node| node.recorded.clone())
    }

    /// Returns the messages of a branch, from its beginning to `tip`.
    #[must_use]
    pub fn branch(&self, tip: u32) -> Vec<u32> {
        let exists = Some(tip).filter(|tip| *tip < self.next());
        let before = |n: &u32| self.parent(*n).filter(|parent| parent < n);
        let mut branch: Vec<u32> = std::iter::successors(exists, before).collect();
        branch.reverse();
        branch
    }

    /// Iterates over the last messages of all branches, in order.
    pub fn tips(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.nodes).filter(|(_, node)| node.children == 0).map(|(n, _)| n)
    }

    /// Returns the number of the next message.
    #[must_use]
    pub fn next(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Returns how many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_sent_again_is_found_on_its_branch() {
        let digest = |n: u8| [n; DIGEST];
        let mut tree = SentTree::default();
        let a = tree.push(None, 0..2, digest(1));
        let b = tree.push(Some(a), 2..3, digest(2));
        let other = tree.push(Some(a), 3..4, digest(3));
        let deep = tree.push(Some(b), 4..5, digest(3));
        assert_eq!(tree.child(None, &digest(1)), Some(a));
        assert_eq!(
            [tree.child(Some(a), &digest(3)), tree.child(Some(b), &digest(3))],
            [Some(other), Some(deep)]
        );
        assert_eq!(tree.child(Some(deep), &digest(1)), None);
        assert_eq!((tree.branch(deep), tree.branch(99)), (vec![a, b, deep], vec![]));
        assert_eq!(tree.tips().collect::<Vec<_>>(), [other, deep]);
        assert_eq!(tree.children(Some(a)).collect::<Vec<_>>(), [b, other]);
        assert_eq!((tree.followers(a), tree.followers(deep), tree.recorded(b)), (2, 0, 2..3));
        // Of equal messages at one place the first is found again.
        let twin = tree.push(Some(a), 5..6, digest(3));
        assert_eq!(tree.child(Some(a), &digest(3)), Some(other));
        // A damaged record may name a message that does not precede it.
        let lost = tree.push(Some(77), 6..7, digest(4));
        assert_eq!((tree.branch(lost), tree.branch(twin)), (vec![lost], vec![a, twin]));
        assert_eq!(tree.child(None, &digest(4)), None);
    }
}
