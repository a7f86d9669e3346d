//! The conversations of one sender.

use crate::Branches;
use crate::branches::Known;
use foldback::{Error, ErrorKind, Memory, Origin, Session};
use foldback_core::TodoId;

/// How many messages of a client are read at once.
const PER_READ: usize = 4_096;

/// The conversations of one agent of one session, each in a todo of its own; of senders that name no session,
/// those that begin alike.
pub(crate) struct Family {
    base: String,
    /// Whether the sender says which conversation it is.
    is_known: bool,
    /// What is noted with its todos.
    origin: Origin,
    pub(crate) members: Vec<Member>,
}

/// One conversation.
pub(crate) struct Member {
    pub(crate) session: Session,
    pub(crate) branches: Branches,
}

impl Member {
    fn open(memory: &Memory, todo: &TodoId) -> Result<Self, Error> {
        let mut member = Self { session: memory.session(todo)?, branches: Branches::default() };
        member.refresh(memory)?;
        Ok(member)
    }

    /// Reads again what the store holds: another process may have written.
    pub(crate) fn refresh(&mut self, memory: &Memory) -> Result<(), Error> {
        self.session.refresh()?;
        let mut sent = Vec::new();
        loop {
            let from = u32::try_from(sent.len()).unwrap_or(u32::MAX);
            let more = memory.sent(self.session.todo(), from, PER_READ)?;
            let is_last = more.len() < PER_READ;
            sent.extend(more);
            if is_last {
                break;
            }
        }
        self.branches = Branches::of(&sent);
        Ok(())
    }
}

impl Family {
    /// Reads from the store what it holds of a family.
    pub(crate) fn open(
        memory: &Memory,
        base: String,
        is_known: bool,
        origin: Origin,
    ) -> Result<Self, Error> {
        let mut family = Self { base, is_known, origin, members: Vec::new() };
        loop {
            let todo = family.todo(family.members.len());
            match memory.conversations().info(&todo) {
                Ok(_) => family.members.push(Member::open(memory, &todo)?),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(family),
                Err(error) => return Err(error),
            }
        }
    }

    /// The todo of a member: the family's name, with a number from the second on.
    fn todo(&self, n: usize) -> TodoId {
        match n {
            0 => TodoId::from_foreign(&self.base),
            n => TodoId::from_foreign(&format!("{}-{}", self.base, n + 1)),
        }
    }

    /// The member that a conversation goes on in, and how far it is known there. The one that holds most of it,
    /// of equals the one where nothing else was said since; a new one where it is nobody's.
    pub(crate) fn place(
        &mut self,
        memory: &Memory,
        digests: &[blake3::Hash],
        agent: &blake3::Hash,
        is_begun: bool,
    ) -> Result<(usize, Known), Error> {
        let known = self.members.iter().map(|member| member.branches.follow(digests)).enumerate();
        let best =
            known.max_by_key(|(n, known)| (known.messages, known.is_tip, std::cmp::Reverse(*n)));
        if let Some((n, known)) = best.filter(|(_, known)| known.messages > 0) {
            // Senders that name no session may begin alike: what only begins is a conversation of its own, unless
            // nothing was said yet in the one that is there.
            if self.is_known || is_begun || known.is_tip {
                return Ok((n, known));
            }
        }
        // An agent of a session that begins anew has compacted what it said, or gone back to the start.
        let begins = Known { messages: 0, node: None, is_tip: false };
        let same = self.members.iter().position(|member| {
            self.is_known && (member.branches.is_empty() || member.branches.has_agent(agent))
        });
        if let Some(n) = same {
            return Ok((n, begins));
        }
        let todo = self.todo(self.members.len());
        self.members.push(Member::open(memory, &todo)?);
        // One that came from elsewhere keeps where it came from.
        if memory.conversations().info(&todo)?.origin == Origin::default() {
            memory.conversations().set_origin(&todo, &self.origin)?;
        }
        Ok((self.members.len() - 1, begins))
    }

    /// How many messages it holds in memory.
    pub(crate) fn len(&self) -> usize {
        self.members.iter().map(|member| member.branches.len()).sum()
    }
}
