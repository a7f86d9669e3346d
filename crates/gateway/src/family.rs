//! The conversations of one sender.

use crate::branches::Known;
use crate::identity::KnownBy;
use crate::member::Member;
use foldback::{Error, ErrorKind, Memory, Origin};
use foldback_core::TodoId;
use std::cmp::Reverse;

/// The conversations of one agent of one session, each in a todo of its own; if the sender names no session,
/// those that begin alike.
pub(crate) struct Family {
    base: String,
    known_by: KnownBy,
    /// The origin that is recorded with its todos.
    origin: Origin,
    pub(crate) members: Vec<Member>,
}

impl Family {
    /// Reads from the store what it holds of a family.
    pub(crate) fn open(
        memory: &Memory,
        base: String,
        known_by: KnownBy,
        origin: Origin,
    ) -> Result<Self, Error> {
        let mut family = Self { base, known_by, origin, members: Vec::new() };
        loop {
            let todo = family.todo(family.members.len());
            match memory.conversations().info(&todo) {
                Ok(_) => family.members.push(Member::open(memory, &todo)?),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(family),
                Err(error) => return Err(error),
            }
            // A named todo is a single conversation.
            if known_by == KnownBy::Todo {
                return Ok(family);
            }
        }
    }

    /// Returns the todo of a member: the family's name, with a number from the second on.
    fn todo(&self, n: usize) -> TodoId {
        match n {
            0 => TodoId::from_foreign(&self.base),
            n => TodoId::from_foreign(&format!("{}-{}", self.base, n + 1)),
        }
    }

    /// Returns the member that a conversation continues, and how much of it is known there. That is the member
    /// that holds most of it, of equals the one in which nothing else was said since; a new one if no member holds
    /// it. Without an agent it is that of the session's first.
    pub(crate) fn place(
        &mut self,
        memory: &Memory,
        digests: &[blake3::Hash],
        agent: Option<&blake3::Hash>,
    ) -> Result<(usize, Known), Error> {
        loop {
            if let Some(found) = self.find(digests, agent) {
                return Ok(found);
            }
            // One may have been created that could not be written to.
            let n = self.members.iter().position(Member::is_empty).unwrap_or(self.members.len());
            let todo = self.todo(n);
            if n == self.members.len() {
                self.members.push(Member::open(memory, &todo)?);
            }
            // A todo that came from elsewhere keeps its origin.
            if memory.conversations().info(&todo)?.origin == Origin::default() {
                memory.conversations().set_origin(&todo, &self.origin)?;
            }
            let is_empty = self.members.get(n).is_none_or(Member::is_empty);
            if is_empty || self.known_by == KnownBy::Todo {
                return Ok((n, Known::NOTHING));
            }
            // Another process has begun a conversation under this name meanwhile.
        }
    }

    /// Returns the member that a conversation continues; `None` if it is a new one.
    pub(crate) fn find(
        &self,
        digests: &[blake3::Hash],
        agent: Option<&blake3::Hash>,
    ) -> Option<(usize, Known)> {
        let known = self.members.iter().map(|member| member.branches.follow(digests)).enumerate();
        let rank = |(n, known): &(usize, Known)| (known.messages, known.is_tip, Reverse(*n));
        let best = known.max_by_key(rank).filter(|(_, known)| known.messages > 0);
        let is_meant = |known: &Known| match self.known_by {
            KnownBy::Todo | KnownBy::Session => true,
            // Conversations may begin alike, even with the same example answers. It is the same one if the model
            // has answered in it, or if nothing more was said than what is asked again.
            KnownBy::Beginning => known.is_answered || known.is_tip,
        };
        best.filter(|(_, known)| is_meant(known)).or_else(|| {
            // An agent of a session that begins anew has compacted its conversation, or gone back to the start.
            let same = |member: &Member| match self.known_by {
                KnownBy::Todo => true,
                KnownBy::Session => agent.is_none_or(|agent| member.branches.has_agent(agent)),
                KnownBy::Beginning => false,
            };
            self.members.iter().position(same).map(|n| (n, Known::NOTHING))
        })
    }

    /// Returns how many messages it holds in memory.
    pub(crate) fn len(&self) -> usize {
        self.members.iter().map(|member| member.branches.len()).sum()
    }
}
