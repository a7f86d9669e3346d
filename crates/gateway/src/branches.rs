//! What a store holds of one client's conversation.

use crate::trail::Trail;
use foldback::{Sent, SentAgain, SentTree};
use std::ops::Range;

/// A client's conversation as a tree: rewinding, editing, forking and compacting begin a branch, and
/// everything before the branch is shared.
#[derive(Default)]
pub struct Branches {
    tree: SentTree,
    /// What the gateway knows of each message.
    notes: Vec<Noted>,
}

struct Noted {
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
        self.tree.branch(tip)
    }

    /// Returns what was recorded of each message of the branch that ends with `tip`.
    pub(crate) fn recorded(&self, tip: Option<u32>) -> Vec<Range<u64>> {
        let branch = tip.map(|tip| self.branch(tip)).unwrap_or_default();
        branch.into_iter().map(|n| self.tree.recorded(n)).collect()
    }

    /// Returns what was recorded of each message that follows this one on some branch.
    pub(crate) fn behind(&self, node: Option<u32>) -> impl Iterator<Item = Range<u64>> {
        self.tree.children(node).map(|n| self.tree.recorded(n))
    }

    /// Returns how each message of the branch that ends with `tip` is stored.
    pub(crate) fn standing(&self, tip: Option<u32>) -> Vec<Standing> {
        let branch = tip.map(|tip| self.branch(tip)).unwrap_or_default();
        let standing = |n: u32| {
            let Noted { mark, trail } = self.notes.get(n as usize)?;
            let behind = mark.behind.map_or(*trail, Trail);
            Some(Standing { n, recorded: self.tree.recorded(n), trail: *trail, behind })
        };
        branch.into_iter().filter_map(standing).collect()
    }

    /// Returns the last messages of all branches, in order.
    #[must_use]
    pub fn tips(&self) -> Vec<u32> {
        self.tree.tips().collect()
    }

    /// Returns what its branches are recognised by: what precedes a message that follows the last one of a branch, or
    /// the first answer on it that the model gave here; and whether it is the last one.
    pub(crate) fn landmarks(&self) -> Vec<(Trail, bool)> {
        let mut is_answered: Vec<bool> = Vec::with_capacity(self.notes.len());
        let mut landmarks = Vec::new();
        for (n, Noted { mark, trail }) in (0..).zip(&self.notes) {
            let parent = self.tree.parent(n).and_then(|parent| is_answered.get(parent as usize));
            let was_answered = parent.copied().unwrap_or_default();
            is_answered.push(was_answered || mark.answer.is_some());
            let is_first = mark.answer.is_some() && !was_answered;
            let is_tip = self.tree.followers(n) == 0;
            if is_tip || is_first {
                landmarks.push((trail.then(mark.digest.as_bytes()), is_tip));
            }
        }
        landmarks
    }

    /// Follows a conversation as far as it is known.
    pub(crate) fn follow(&self, digests: &[blake3::Hash]) -> Known {
        self.go_on(Known { is_tip: self.is_empty(), ..Known::NOTHING }, digests)
    }

    /// Follows a conversation beyond the part that is known.
    pub(crate) fn go_on(&self, mut known: Known, digests: &[blake3::Hash]) -> Known {
        for digest in digests {
            let Some(n) = self.tree.child(known.node, digest.as_bytes()) else { break };
            let Some(noted) = self.notes.get(n as usize) else { break };
            known = Known {
                messages: known.messages + 1,
                node: Some(n),
                is_tip: self.tree.followers(n) == 0,
                is_answered: known.is_answered || noted.mark.answer.is_some(),
            };
        }
        known
    }

    /// Adds a message and returns its number.
    pub(crate) fn push(&mut self, parent: Option<u32>, recorded: Range<u64>, mark: Mark) -> u32 {
        let n = self.tree.push(parent, recorded, *mark.digest.as_bytes());
        let before = self.tree.parent(n).and_then(|parent| self.notes.get(parent as usize));
        let trail = before
            .map_or_else(Trail::default, |before| before.trail.then(before.mark.digest.as_bytes()));
        self.notes.push(Noted { mark, trail });
        n
    }

    /// Returns the number of the next message.
    pub(crate) fn next(&self) -> u32 {
        self.tree.next()
    }

    /// Returns whether an agent with these tools has spoken here.
    pub(crate) fn has_agent(&self, agent: &blake3::Hash) -> bool {
        self.notes.iter().any(|noted| noted.mark.agent.as_ref() == Some(agent))
    }

    /// Returns those of the first messages of a conversation, up to `tip`, that the client has not sent before:
    /// the number of each in the conversation, and how it is stored from now on, without its text.
    pub(crate) fn sent_now(&mut self, tip: Option<u32>) -> Vec<(usize, SentAgain)> {
        let branch = tip.map(|tip| self.branch(tip)).unwrap_or_default();
        let mut now = Vec::new();
        for (place, n) in branch.into_iter().enumerate() {
            let Some(Noted { mark, .. }) = self.notes.get_mut(n as usize) else { continue };
            if mark.answer == Some(Heard::FromModel) {
                mark.answer = Some(Heard::FromClient);
                let (parent, recorded) = (self.tree.parent(n), self.tree.recorded(n));
                let sent = Sent { parent, recorded, tag: mark.tag(), json: String::new() };
                now.push((place, SentAgain { n, sent }));
            }
        }
        now
    }

    /// Returns how many messages of the client are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Returns whether no message is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
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
