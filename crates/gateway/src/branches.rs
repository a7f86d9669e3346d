//! What a store holds of one client's conversation.

use crate::trail::Trail;
use foldback::{Sent, SentAgain};
use std::collections::HashMap;
use std::ops::Range;

/// A client's conversation as a tree: rewinding, editing, forking and compacting begin a branch, and
/// everything before the branch is shared.
#[derive(Default)]
pub struct Branches {
    nodes: Vec<Node>,
    /// By the preceding node and the digest of the message.
    by_digest: HashMap<(Option<u32>, blake3::Hash), u32>,
}

struct Node {
    parent: Option<u32>,
    recorded: Range<u64>,
    has_children: bool,
    mark: Mark,
    /// What precedes it.
    trail: Trail,
}

/// A message of a branch.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// Its number.
    pub(crate) n: u32,
    /// What was recorded of it.
    pub(crate) recorded: Range<u64>,
    /// What precedes it.
    pub(crate) trail: Trail,
    /// What preceded it when a model said it here.
    pub(crate) behind: Trail,
}

/// What identifies a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The digest of its content.
    pub(crate) digest: blake3::Hash,
    /// For the first message that a request adds: which tools the agent had.
    pub(crate) agent: Option<blake3::Hash>,
    /// For an answer that the model gave here: how it is stored.
    pub(crate) answer: Option<Heard>,
    /// What preceded the answer for the model, if that was not what the client sent.
    pub(crate) behind: Option<u64>,
}

/// How an answer of the model is stored.
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
    /// How many of its first messages are known.
    pub(crate) messages: usize,
    /// The last of them.
    pub(crate) node: Option<u32>,
    /// Whether it was the last message of its branch.
    pub(crate) is_tip: bool,
    /// Whether an answer that the model gave here is among them.
    pub(crate) is_answered: bool,
}

impl Known {
    /// Nothing of it is known.
    pub(crate) const NOTHING: Self =
        Self { messages: 0, node: None, is_tip: false, is_answered: false };
}

impl Branches {
    /// Builds the tree of what a client sent, in order. A record that names no message is skipped, together with
    /// what depends on it.
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

    /// Returns the numbers of the messages of a branch, from its beginning to `tip`.
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

    /// Returns what was recorded of each message of the branch that ends with `tip`.
    pub(crate) fn recorded(&self, tip: Option<u32>) -> Vec<Range<u64>> {
        let branch = tip.map(|tip| self.branch(tip)).unwrap_or_default();
        let nodes = branch.iter().filter_map(|n| self.nodes.get(*n as usize));
        nodes.map(|node| node.recorded.clone()).collect()
    }

    /// Returns what was recorded of each message that follows this one on some branch.
    pub(crate) fn behind(&self, node: Option<u32>) -> impl Iterator<Item = Range<u64>> {
        let children = self.nodes.iter().filter(move |child| child.parent == node);
        children.map(|child| child.recorded.clone())
    }

    /// Returns how each message of the branch that ends with `tip` is stored.
    pub(crate) fn standing(&self, tip: Option<u32>) -> Vec<Standing> {
        let branch = tip.map(|tip| self.branch(tip)).unwrap_or_default();
        let standing = |n: u32| {
            let node = self.nodes.get(n as usize)?;
            let (recorded, trail) = (node.recorded.clone(), node.trail);
            Some(Standing { n, recorded, trail, behind: node.mark.behind.map_or(trail, Trail) })
        };
        branch.into_iter().filter_map(standing).collect()
    }

    /// Returns the last messages of all branches, in order.
    #[must_use]
    pub fn tips(&self) -> Vec<u32> {
        let numbered = (0..).zip(&self.nodes);
        numbered.filter(|(_, node)| !node.has_children).map(|(n, _)| n).collect()
    }

    /// Follows a conversation as far as it is known.
    pub(crate) fn follow(&self, digests: &[blake3::Hash]) -> Known {
        self.go_on(Known { is_tip: self.nodes.is_empty(), ..Known::NOTHING }, digests)
    }

    /// Follows a conversation beyond the part that is known.
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

    /// Returns the message after another that has this digest: usually the next one.
    fn child(&self, parent: Option<u32>, digest: &blake3::Hash) -> Option<u32> {
        let next = parent.map_or(0, |parent| parent + 1);
        let is_it = |node: &Node| node.parent == parent && node.mark.digest == *digest;
        match self.nodes.get(next as usize).is_some_and(is_it) {
            true => Some(next),
            false => self.by_digest.get(&(parent, *digest)).copied(),
        }
    }

    /// Adds a message and returns its number.
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

    /// Returns the number of the next message.
    pub(crate) fn next(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether an agent with these tools has spoken here.
    pub(crate) fn has_agent(&self, agent: &blake3::Hash) -> bool {
        self.nodes.iter().any(|node| node.mark.agent.as_ref() == Some(agent))
    }

    /// Returns those of the first messages of a conversation, up to `tip`, that the client has not sent before:
    /// the number of each in the conversation, and how it is stored from now on, without its text.
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

    /// Returns how many messages of the client are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether no message is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl Mark {
    /// Returns the bytes of a mark: the digest, that of the tools if there is one, and for an answer a number and
    /// what preceded it.
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
