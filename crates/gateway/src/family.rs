//! The conversations of one sender.

use crate::branches::{Branches, Known};
use crate::identity::KnownBy;
use crate::member::Member;
use foldback::{Error, ErrorKind, Memory, Origin};
use foldback_core::TodoId;
use std::cmp::Reverse;
use unheld::Unheld;

mod unheld;

/// How many conversations of a family are held in memory at most: those that were used last. The store has them all.
const MOST_MEMBERS: usize = 64;

/// How many messages these may have together. A few conversations are held whatever their size.
const MOST_MESSAGES: usize = 50_000;

/// How many conversations are held, whatever their size.
const FEW_MEMBERS: usize = 8;

/// How many conversations, the latest to begin, the store is asked about for their last use.
const MOST_SEEN: usize = 256;

/// How many messages of a conversation that is not opened are read: enough to recognise it.
const FEW_MESSAGES: usize = 64;

/// The conversations of one agent of one session, each in a todo of its own; if the sender names no session,
/// those that begin alike.
pub(crate) struct Family {
    base: String,
    known_by: KnownBy,
    /// The origin that is recorded with its todos.
    origin: Origin,
    /// Those that were used last, in the order in which they began.
    pub(crate) members: Vec<Member>,
    /// The others, as far as they are known.
    unheld: Unheld,
    /// The number of the next todo.
    next: usize,
    /// How often a member was used.
    uses: u64,
}

impl Family {
    /// Reads from the store what it holds of a family: the conversations that were used last.
    pub(crate) fn open(
        memory: &Memory,
        base: String,
        known_by: KnownBy,
        origin: Origin,
    ) -> Result<Self, Error> {
        let (members, unheld) = (Vec::new(), Unheld::default());
        let mut family = Self { base, known_by, origin, members, unheld, next: 0, uses: 0 };
        family.read(memory)?;
        Ok(family)
    }

    /// Reads the conversations that began since this was last read. Afterwards, of these and the held ones, those that were
    /// used last are held.
    fn read(&mut self, memory: &Memory) -> Result<(), Error> {
        let end = self.end(memory)?;
        let mut seen = Vec::new();
        for n in self.next.max(end.saturating_sub(MOST_SEEN))..end {
            match memory.conversations().last_recorded(&self.todo(n)) {
                Ok(at) => seen.push((at, n)),
                // It was forgotten.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.next = end;
        seen.sort_unstable();
        let mut opened = Vec::new();
        let mut is_full = false;
        for (at, n) in seen.into_iter().rev() {
            let later = self.members.iter().filter(|member| Some(member.used.0) > at);
            let later = opened.iter().chain(later);
            let (members, messages) = later.fold((0, 0), |(members, messages), one: &Member| {
                (members + 1, messages + one.branches.len())
            });
            is_full |= !fit(members + 1, messages);
            if is_full {
                self.look_at(memory, n)?;
            } else {
                opened.push(Member::open(memory, &self.todo(n), n)?);
            }
        }
        self.members.extend(opened);
        self.members.sort_by_key(|member| member.number);
        self.make_room(0);
        Ok(())
    }

    /// Reads what a conversation is recognised by.
    fn look_at(&mut self, memory: &Memory, n: usize) -> Result<(), Error> {
        match memory.sent(&self.todo(n), 0, FEW_MESSAGES) {
            Ok(sent) => self.unheld.add(n, &Branches::of(&sent)),
            // It was forgotten, or is damaged.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether there is a todo with this number.
    fn exists(&self, memory: &Memory, n: usize) -> Result<bool, Error> {
        match memory.conversations().info(&self.todo(n)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the number behind the last todo, as far as there is no gap.
    fn end(&self, memory: &Memory) -> Result<usize, Error> {
        let exists = |n: usize| self.exists(memory, n);
        if !exists(self.next)? {
            return Ok(self.next);
        }
        // A named todo is a single conversation.
        if self.known_by == KnownBy::Todo {
            return Ok(self.next + 1);
        }
        // A family may have very many.
        let (mut taken, mut step) = (self.next, 1);
        let mut free = loop {
            let n = taken.saturating_add(step);
            if !exists(n)? {
                break n;
            }
            (taken, step) = (n, step.saturating_mul(2));
        };
        while taken + 1 < free {
            let middle = taken + (free - taken) / 2;
            match exists(middle)? {
                true => taken = middle,
                false => free = middle,
            }
        }
        Ok(free)
    }

    /// Returns the todo of a member: the family's name, with a number from the second on.
    fn todo(&self, n: usize) -> TodoId {
        match n {
            0 => TodoId::from_foreign(&self.base),
            n => TodoId::from_foreign(&format!("{}-{}", self.base, n + 1)),
        }
    }

    /// Returns the member that a conversation continues, and how much of it is known there, as [`find`](Self::find) does;
    /// a new one if it continues none.
    pub(crate) fn place(
        &mut self,
        memory: &Memory,
        digests: &[blake3::Hash],
        agent: Option<&blake3::Hash>,
    ) -> Result<(usize, Known), Error> {
        loop {
            if let Some((n, known)) = self.find(memory, digests, agent)? {
                self.used(memory, n);
                return Ok((n, known));
            }
            // One may have been created that could not be written to.
            let n = match self.members.iter().position(Member::is_empty) {
                Some(n) => n,
                None => {
                    self.make_room(1);
                    self.members.push(Member::open(memory, &self.todo(self.next), self.next)?);
                    self.next += 1;
                    self.members.len().saturating_sub(1)
                }
            };
            let Some(member) = self.members.get(n) else { return Ok((n, Known::NOTHING)) };
            // A todo that came from elsewhere keeps its origin.
            let todo = member.session.todo();
            if memory.conversations().info(todo)?.origin == Origin::default() {
                memory.conversations().set_origin(todo, &self.origin)?;
            }
            if member.is_empty() || self.known_by == KnownBy::Todo {
                self.used(memory, n);
                return Ok((n, Known::NOTHING));
            }
            // Another process has begun conversations under these names meanwhile.
            self.read(memory)?;
        }
    }

    /// Notes that a member is used.
    fn used(&mut self, memory: &Memory, n: usize) {
        self.uses += 1;
        let now = (memory.now(), self.uses);
        self.members.get_mut(n).into_iter().for_each(|member| member.used = now);
    }

    /// Closes the members that were not used for longest, until there is room for this many more.
    fn make_room(&mut self, more: usize) {
        while !self.members.is_empty() && !fit(self.members.len() + more, self.len()) {
            let used = self.members.iter().map(|member| member.used).enumerate();
            let Some((oldest, _)) = used.min_by_key(|(_, used)| *used) else { return };
            let closed = self.members.remove(oldest);
            self.unheld.add(closed.number, &closed.branches);
        }
    }

    /// Returns the member that a conversation continues, and how much of it is known there; `None` if it is a new one.
    /// That is the member that holds most of it, of equals the one in which nothing else was said since, and of these
    /// the one that began first. A conversation that is not held is opened if it holds more.
    pub(crate) fn find(
        &mut self,
        memory: &Memory,
        digests: &[blake3::Hash],
        agent: Option<&blake3::Hash>,
    ) -> Result<Option<(usize, Known)>, Error> {
        let held = self.held(digests, agent);
        let extent = held.map_or((0, false), |(_, known)| (known.messages, known.is_tip));
        while let Some((_, n)) = self.unheld.find(digests).filter(|(other, _)| *other > extent) {
            if !self.exists(memory, n)? {
                self.unheld.remove(n);
                continue;
            }
            let member = Member::open(memory, &self.todo(n), n)?;
            self.unheld.remove(n);
            self.make_room(1);
            let at = self.members.partition_point(|member| member.number < n);
            self.members.insert(at, member);
            self.used(memory, at);
            self.make_room(0);
            return Ok(self.held(digests, agent));
        }
        Ok(held)
    }

    /// As [`find`](Self::find), among those that are held.
    fn held(
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
            // An agent of a session that begins anew has compacted its conversation, or gone back to the start. A
            // request that names no agent belongs to the session's first.
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

/// Returns whether this many conversations with this many messages may be held.
fn fit(members: usize, messages: usize) -> bool {
    members <= FEW_MEMBERS || (members <= MOST_MEMBERS && messages <= MOST_MESSAGES)
}

#[cfg(test)]
mod tests;
