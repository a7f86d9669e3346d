//! What a store holds of one client's conversation.

use foldback::{Sent, SentAgain};
use std::collections::HashMap;
use std::ops::Range;

/// A client's conversation as a tree: rewinding, editing, forking and compacting begin a branch, and whatever
/// stood before is shared.
#[derive(Default)]
pub struct Branches {
    nodes: Vec<Node>,
    /// By the node before it and what it says.
    by_digest: HashMap<(Option<u32>, blake3::Hash), u32>,
    /// The number of the next recorded message.
    next_seq: u64,
}

struct Node {
    parent: Option<u32>,
    recorded: Range<u64>,
    has_children: bool,
    mark: Mark,
}

/// What a message is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// What it says.
    pub(crate) digest: blake3::Hash,
    /// Which tools the agent had, where a conversation begins.
    pub(crate) agent: Option<blake3::Hash>,
    /// Whether it is as the model said it, and the client has not sent it yet.
    pub(crate) is_answer: bool,
}

/// How far a conversation is known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// So many of its first messages.
    pub(crate) messages: usize,
    /// The last of them.
    pub(crate) node: Option<u32>,
    /// Whether it was the last of what was said there.
    pub(crate) is_tip: bool,
}

impl Branches {
    /// The tree of what a client sent, in the order in which it came. A record that names no message is passed over
    /// with what stands on it.
    #[must_use]
    pub fn of(sent: &[Sent]) -> Self {
        let mut tree = Self::default();
        for one in sent {
            tree.push(one.parent, one.recorded.clone(), Mark::read(&one.tag));
        }
        tree
    }

    /// The numbers of the messages of a branch, from its beginning to `tip`.
    #[must_use]
    pub fn branch(&self, tip: u32) -> Vec<u32> {
        let mut branch = Vec::new();
        let mut at = Some(tip);
        while let Some(n) = at {
            let Some(node) = self.nodes.get(n as usize) else { break };
            branch.push(n);
            at = node.parent.filter(|parent| *parent < n);
        }
        branch.reverse();
        branch
    }

    /// The last messages of all branches, in the order in which they came.
    #[must_use]
    pub fn tips(&self) -> Vec<u32> {
        let numbered = (0..).zip(&self.nodes);
        numbered.filter(|(_, node)| !node.has_children).map(|(n, _)| n).collect()
    }

    /// Follows a conversation as far as it is known.
    pub(crate) fn follow(&self, digests: &[blake3::Hash]) -> Known {
        let mut known = Known { messages: 0, node: None, is_tip: self.nodes.is_empty() };
        for digest in digests {
            let Some(n) = self.by_digest.get(&(known.node, *digest)) else { break };
            let is_tip = self.nodes.get(*n as usize).is_some_and(|node| !node.has_children);
            known = Known { messages: known.messages + 1, node: Some(*n), is_tip };
        }
        known
    }

    /// Adds a message and gives its number.
    pub(crate) fn push(&mut self, parent: Option<u32>, recorded: Range<u64>, mark: Mark) -> u32 {
        let n = self.next();
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent as usize)) {
            parent.has_children = true;
        }
        self.next_seq = self.next_seq.max(recorded.end);
        self.nodes.push(Node { parent, recorded, has_children: false, mark });
        self.by_digest.entry((parent, mark.digest)).or_insert(n);
        n
    }

    /// The number of the next message.
    pub(crate) fn next(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// The number of the next recorded message.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Whether the last message that came is this one.
    pub(crate) fn ends_with(&self, node: Option<u32>) -> bool {
        node.map_or(0, |node| node.saturating_add(1)) == self.next()
    }

    /// Whether an agent with these tools has begun a conversation here.
    pub(crate) fn has_agent(&self, agent: &blake3::Hash) -> bool {
        self.nodes.iter().any(|node| node.mark.agent.as_ref() == Some(agent))
    }

    /// Those of the first messages of a conversation, up to `tip`, that the client has not sent before: the number
    /// of each in the conversation, and how it stands in the store from now on, but for its text.
    pub(crate) fn sent_now(&mut self, tip: Option<u32>) -> Vec<(usize, SentAgain)> {
        let branch = tip.map(|tip| self.branch(tip)).unwrap_or_default();
        let mut now = Vec::new();
        for (place, n) in branch.into_iter().enumerate() {
            let Some(node) = self.nodes.get_mut(n as usize) else { continue };
            if std::mem::take(&mut node.mark.is_answer) {
                let (parent, recorded) = (node.parent, node.recorded.clone());
                let sent = Sent { parent, recorded, tag: node.mark.tag(), json: String::new() };
                now.push((place, SentAgain { n, sent }));
            }
        }
        now
    }

    /// How many messages of the client are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl Mark {
    /// The bytes of a mark: the digest, that of the tools where there is one, and a one where it is an answer.
    pub(crate) fn tag(&self) -> Vec<u8> {
        let mut tag = self.digest.as_bytes().to_vec();
        tag.extend(self.agent.iter().flat_map(|agent| agent.as_bytes()));
        tag.extend(self.is_answer.then_some(1));
        tag
    }

    fn read(tag: &[u8]) -> Self {
        let (digests, rest) = tag.as_chunks::<{ blake3::OUT_LEN }>();
        let digest = digests.first().map_or_else(|| blake3::hash(tag), |one| (*one).into());
        Self { digest, agent: digests.get(1).map(|one| (*one).into()), is_answer: !rest.is_empty() }
    }
}
