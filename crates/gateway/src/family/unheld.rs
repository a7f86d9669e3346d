//! The conversations of a family that are not held in memory.

use crate::branches::Branches;
use crate::trail::Trail;
use std::collections::BTreeMap;

/// How many landmarks of conversations are kept: a conversation without branches has two.
const MOST_LANDMARKS: usize = 16_384;

/// What identifies the conversations that only the store holds.
#[derive(Default)]
pub(super) struct Unheld {
    /// The landmarks, each with the number of its conversation, and whether it was the last message of a branch.
    landmarks: BTreeMap<(u64, usize), bool>,
}

/// How much of a conversation is found: how many messages, and whether they were all of a branch.
pub(super) type Extent = (usize, bool);

impl Unheld {
    /// Adds a conversation. Of too many landmarks, some are dropped.
    pub(super) fn add(&mut self, n: usize, branches: &Branches) {
        for (trail, is_tip) in branches.landmarks() {
            self.landmarks.insert((trail.0, n), is_tip);
        }
        while self.landmarks.len() > MOST_LANDMARKS {
            // Which one is first is chance: trails are digests.
            self.landmarks.pop_first();
        }
    }

    /// Removes a conversation.
    pub(super) fn remove(&mut self, n: usize) {
        self.landmarks.retain(|(_, of), _| *of != n);
    }

    /// Returns the conversation that holds most of these messages, as far as its landmarks show it, and how much.
    pub(super) fn find(&self, digests: &[blake3::Hash]) -> Option<(Extent, usize)> {
        if self.landmarks.is_empty() {
            return None;
        }
        let trails = digests.iter().scan(Trail::default(), |trail, digest| {
            *trail = trail.then(digest.as_bytes());
            Some(trail.0)
        });
        let trails: Vec<_> = trails.collect();
        trails.iter().enumerate().rev().find_map(|(before, trail)| {
            let those = || self.landmarks.range((*trail, 0)..=(*trail, usize::MAX));
            let ((_, n), is_tip) =
                those().find(|(_, is_tip)| **is_tip).or_else(|| those().next())?;
            Some(((before + 1, *is_tip), *n))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_LANDMARKS, Unheld};
    use crate::branches::{Branches, Heard, Mark};

    /// A conversation with one answer, and what follows it in two ways.
    fn forked(n: usize) -> ([blake3::Hash; 4], Branches) {
        let said =
            ["问", "答", "左", "右"].map(|text| blake3::hash(format!("{text} {n}").as_bytes()));
        let mut branches = Branches::default();
        for (digest, parent) in said.into_iter().zip([None, Some(0), Some(1), Some(1)]) {
            let answer = (parent == Some(0)).then_some(Heard::FromModel);
            branches.push(parent, 0..0, Mark { digest, agent: None, answer, behind: None });
        }
        (said, branches)
    }

    #[test]
    fn gw3_a_conversation_is_recognised_by_each_branch_and_by_its_first_answer() {
        let mut unheld = Unheld::default();
        let ([asked, answer, left, right], branches) = forked(1);
        unheld.add(5, &branches);
        unheld.add(6, &forked(2).1);
        let new = blake3::hash("新".as_bytes());
        assert_eq!(unheld.find(&[asked, answer, left, new]), Some(((3, true), 5)));
        assert_eq!(unheld.find(&[asked, answer, right]), Some(((3, true), 5)));
        assert_eq!(unheld.find(&[asked, answer, new, left]), Some(((2, false), 5)));
        assert_eq!(unheld.find(&[asked, new, left]), None);
        unheld.remove(5);
        assert_eq!(unheld.find(&[asked, answer, left]), None);
    }

    #[test]
    fn landmarks_are_bounded() {
        let mut unheld = Unheld::default();
        (0..MOST_LANDMARKS / 3 + 9).for_each(|n| unheld.add(n, &forked(n).1));
        assert_eq!(unheld.landmarks.len(), MOST_LANDMARKS);
    }
}
