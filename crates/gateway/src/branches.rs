//! What a store holds of one client's conversation.

use crate::trail::Trail;
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
}

struct Node {
    parent: Option<u32>,
    recorded: Range<u64>,
    has_children: bool,
    mark: Mark,
    /// What it stands behind.
    trail: Trail,
}

/// A message of a branch.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// Its number.
    pub(crate) n: u32,
    /// What was recorded of it.
    pub(crate) recorded: Range<u64>,
    /// What it stands behind.
    pub(crate) trail: Trail,
    /// What a model said it behind here.
    pub(crate) behind: Trail,
}

/// What a message is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// What it says.
    pub(crate) digest: blake3::Hash,
    /// Which tools the agent had, of the first message that a request adds.
    pub(crate) agent: Option<blake3::Hash>,
    /// Where the model said it here.
    pub(crate) answer: Option<Heard>,
    /// What the model said it behind, where that was not what the client sent.
    pub(crate) behind: Option<u64>,
}

/// How an answer of the model stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// As the model said it: the client has not sent it yet.
    FromModel = 1,
    /// As the client sends it.
    FromClient = 2,
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
    /// Whether an answer that the model gave here is among them.
    pub(crate) is_answered: bool,
}

impl Known {
    /// Nothing of it is.
    pub(crate) const NOTHING: Self =
        Self { messages: 0, node: None, is_tip: false, is_answered: false };
}

impl Branches {
    /// The tree of what a client sent, in the order in which it came. A record that names no message is passed over
    /// with what stands on it.
    #[must_use]
    pub fn of(sent: &[Sent]) -> Self {
        let mut tree = Self::default();
        tree.extend(sent);
        tree
    }

    /// Adds what came later.
    pub(crate) fn extend(&mut self, sent: &[Sent]) {
        for one in sent {
            self.push(one.parent, one.recorded.clone(), Mark::read(&one.tag));
        }
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

    /// What was recorded of each message of the branch that ends with `tip`.
    pub(crate) fn recorded(&self, tip: Option<u32>) -> Vec<Range<u64>> {
        let branch = tip.map(|tip| self.branch(tip)).unwrap_or_default();
        let nodes = branch.iter().filter_map(|n| self.nodes.get(*n as usize));
        nodes.map(|node| node.recorded.clone()).collect()
    }

    /// What was recorded of each message that stands behind this one on some branch.
    pub(crate) fn behind(&self, node: Option<u32>) -> impl Iterator<Item = Range<u64>> {
        let children = self.nodes.iter().filter(move |child| child.parent == node);
        children.map(|child| child.recorded.clone())
    }

    /// How each message of the branch stands that ends with `tip`.
    pub(crate) fn standing(&self, tip: Option<u32>) -> Vec<Standing> {
        let branch = tip.map(|tip| self.branch(tip)).unwrap_or_default();
        let standing = |n: u32| {
            let node = self.nodes.get(n as usize)?;
            let (recorded, trail) = (node.recorded.clone(), node.trail);
            Some(Standing { n, recorded, trail, behind: node.mark.behind.map_or(trail, Trail) })
        };
        branch.into_iter().filter_map(standing).collect()
    }

    /// The last messages of all branches, in the order in which they came.
    #[must_use]
    pub fn tips(&self) -> Vec<u32> {
        let numbered = (0..).zip(&self.nodes);
        numbered.filter(|(_, node)| !node.has_children).map(|(n, _)| n).collect()
    }

    /// Follows a conversation as far as it is known.
    pub(crate) fn follow(&self, digests: &[blake3::Hash]) -> Known {
        self.go_on(Known { is_tip: self.nodes.is_empty(), ..Known::NOTHING }, digests)
    }

    /// Follows a conversation on, behind what is known of it.
    pub(crate) fn go_on(&self, mut known: Known, digests: &[blake3::Hash]) -> Known {
        for digest in digests {
            let Some(n) = self.child(known.node, digest) else { break };
            let Some(node) = self.nodes.get(n as usize) else { break };
            known = Known {
                messages: known.messages + 1,
                node: Some(n),
                is_tip: !node.has_children,
                is_answered: known.is_answered || node.mark.answer.is_some(),
            };
        }
        known
    }

    /// The message behind another that says this: mostly the next one.
    fn child(&self, parent: Option<u32>, digest: &blake3::Hash) -> Option<u32> {
        let next = parent.map_or(0, |parent| parent + 1);
        let is_it = |node: &Node| node.parent == parent && node.mark.digest == *digest;
        match self.nodes.get(next as usize).is_some_and(is_it) {
            true => Some(next),
            false => self.by_digest.get(&(parent, *digest)).copied(),
        }
    }

    /// Adds a message and gives its number.
    pub(crate) fn push(&mut self, parent: Option<u32>, recorded: Range<u64>, mark: Mark) -> u32 {
        let (n, mut trail) = (self.next(), Trail::default());
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent as usize)) {
            parent.has_children = true;
            trail = parent.trail.then(parent.mark.digest.as_bytes());
        }
        self.nodes.push(Node { parent, recorded, has_children: false, mark, trail });
        self.by_digest.entry((parent, mark.digest)).or_insert(n);
        n
    }

    /// The number of the next message.
    pub(crate) fn next(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Whether an agent with these tools has spoken here.
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
            if node.mark.answer == Some(Heard::FromModel) {
                node.mark.answer = Some(Heard::FromClient);
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
    /// The bytes of a mark: the digest, that of the tools where there is one, and of an answer a number and what it
    /// was said behind.
    pub(crate) fn tag(&self) -> Vec<u8> {
        let mut tag = self.digest.as_bytes().to_vec();
        tag.extend(self.agent.iter().flat_map(|agent| agent.as_bytes()));
        tag.extend(self.answer.map(|answer| answer as u8));
        tag.extend(
            self.behind.filter(|_| self.answer.is_some()).into_iter().flat_map(u64::to_le_bytes),
        );
        tag
    }

    fn read(tag: &[u8]) -> Self {
        let (digests, rest) = tag.as_chunks::<{ blake3::OUT_LEN }>();
        let digest = digests.first().map_or_else(|| blake3::hash(tag), |one| (*one).into());
        let answer = match rest.first() {
            Some(1) => Some(Heard::FromModel),
            Some(2) => Some(Heard::FromClient),
            _ => None,
        };
        let behind =
            rest.get(1..).and_then(|behind| behind.try_into().ok()).map(u64::from_le_bytes);
        Self { digest, agent: digests.get(1).map(|one| (*one).into()), answer, behind }
    }
}
