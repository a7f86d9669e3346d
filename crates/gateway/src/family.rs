//! The conversations of one sender.

use crate::branches::Known;
use crate::identity::KnownBy;
use crate::member::Member;
use foldback::{Error, ErrorKind, Memory, Origin};
use foldback_core::TodoId;
use std::cmp::Reverse;

/// How many conversations of a family are held in memory at most: those that were used last. The store has them all.
const MOST_MEMBERS: usize = 64;

/// How many messages they may have. More are held of a few conversations only.
const MOST_MESSAGES: usize = 50_000;

/// How many conversations are held, whatever their size.
const FEW_MEMBERS: usize = 8;

/// Of how many conversations, those that began last, the store is asked when they were used.
const MOST_SEEN: usize = 256;

/// The conversations of one agent of one session, each in a todo of its own; if the sender names no session,
/// those that begin alike.
pub(crate) struct Family {
    base: String,
    known_by: KnownBy,
    /// The origin that is recorded with its todos.
    origin: Origin,
    /// Those that were used last, in the order in which they began.
    pub(crate) members: Vec<Member>,
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
        let mut family = Self { base, known_by, origin, members: Vec::new(), next: 0, uses: 0 };
        family.read(memory)?;
        Ok(family)
    }

    /// Reads the conversations that began since this was last read: those that were used last.
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
        seen.sort_unstable();
        let (mut opened, mut messages) = (Vec::new(), 0);
        for (_, n) in seen.into_iter().rev() {
            if !fit(opened.len() + 1, messages) {
                break;
            }
            let member = Member::open(memory, &self.todo(n))?;
            messages += member.branches.len();
            opened.push((n, member));
        }
        for (_, member) in opened.iter_mut().rev() {
            self.uses += 1;
            member.used = self.uses;
        }
        opened.sort_by_key(|(n, _)| *n);
        self.members.extend(opened.into_iter().map(|(_, member)| member));
        self.next = end;
        self.make_room(0);
        Ok(())
    }

    /// Returns the number of a todo that does not exist, although the one before it does or was read already.
    fn end(&self, memory: &Memory) -> Result<usize, Error> {
        let exists = |n: usize| match memory.conversations().info(&self.todo(n)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
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
            if let Some((n, known)) = self.find(digests, agent) {
                self.used(n);
                return Ok((n, known));
            }
            // One may have been created that could not be written to.
            let n = match self.members.iter().position(Member::is_empty) {
                Some(n) => n,
                None => {
                    self.make_room(1);
                    self.members.push(Member::open(memory, &self.todo(self.next))?);
                    self.next += 1;
                    self.members.len().saturating_sub(1)
                }
            };
            self.used(n);
            let Some(member) = self.members.get(n) else { return Ok((n, Known::NOTHING)) };
            // A todo that came from elsewhere keeps its origin.
            let todo = member.session.todo();
            if memory.conversations().info(todo)?.origin == Origin::default() {
                memory.conversations().set_origin(todo, &self.origin)?;
            }
            if member.is_empty() || self.known_by == KnownBy::Todo {
                return Ok((n, Known::NOTHING));
            }
            // Another process has begun conversations under these names meanwhile.
            self.read(memory)?;
        }
    }

    /// Notes that a member is used.
    fn used(&mut self, n: usize) {
        self.uses += 1;
        self.members.get_mut(n).into_iter().for_each(|member| member.used = self.uses);
    }

    /// Forgets the members that were not used for longest, until there is room for this many more.
    fn make_room(&mut self, more: usize) {
        while !self.members.is_empty() && !fit(self.members.len() + more, self.len()) {
            let used = self.members.iter().map(|member| member.used).enumerate();
            let Some((oldest, _)) = used.min_by_key(|(_, used)| *used) else { return };
            self.members.remove(oldest);
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

/// Returns whether this many conversations with this many messages may be held.
fn fit(members: usize, messages: usize) -> bool {
    members <= FEW_MEMBERS || (members <= MOST_MEMBERS && messages <= MOST_MESSAGES)
}

#[cfg(test)]
mod tests {
    use super::{Family, MOST_MEMBERS, MOST_MESSAGES, fit};
    use crate::branches::{Heard, Mark};
    use crate::identity::KnownBy;
    use foldback::{Memory, NewSent, Options, Origin};
    use foldback_core::{Message, SeqNo, Timestamp, TodoId};
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// What was asked and answered in a conversation.
    fn said(n: usize) -> [blake3::Hash; 2] {
        [blake3::hash("你好".as_bytes()), blake3::hash(format!("答 {n}").as_bytes())]
    }

    /// Records a conversation's first turn, or later a message without its client's.
    fn record(memory: &Memory, n: usize) {
        let name = if n == 1 { "a".to_owned() } else { format!("a-{n}") };
        let mut session = memory.session(&TodoId::new(&name).unwrap()).unwrap();
        if !session.is_empty() {
            session.record(Message::user("again")).unwrap();
            return;
        }
        let [asked, answer] = said(n);
        let mut parent = None;
        let sent = [(asked, None), (answer, Some(Heard::FromClient))].map(|(digest, answer)| {
            let tag = Mark { digest, agent: None, answer, behind: None }.tag();
            let messages = vec![Message::user("你好")];
            NewSent { parent: parent.replace(0), tag, json: "{}".to_owned(), messages }
        });
        session.record_sent(SeqNo(0), 0, &sent, &[]).unwrap();
    }

    fn names(family: &Family) -> BTreeSet<usize> {
        let number = |name: &str| name.strip_prefix("a-").map_or(1, |n| n.parse().unwrap());
        family.members.iter().map(|member| number(member.session.todo().as_str())).collect()
    }

    fn family(memory: &Memory) -> Family {
        let origin = Origin::default();
        Family::open(memory, "a".to_owned(), KnownBy::Beginning, origin).unwrap()
    }

    /// GW3: of conversations that begin alike, a bounded number is read and held, and they are those that were used
    /// last; whatever is not held is begun again, and mixes with none.
    #[test]
    fn gw3_the_conversations_that_were_used_last_are_held() {
        let now = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&now);
        let options = Options::default();
        let options = options.with_clock(move || Timestamp(clock.fetch_add(1, Ordering::Relaxed)));
        let memory = Memory::in_memory(options).unwrap();
        (1..=100).for_each(|n| record(&memory, n));
        record(&memory, 3);
        memory.maintenance().forget(&TodoId::new("a-90").unwrap()).unwrap();
        let mut opened = family(&memory);
        let last: BTreeSet<_> = [3].into_iter().chain(37..90).chain(91..=100).collect();
        assert_eq!((names(&opened), opened.members.len()), (last, MOST_MEMBERS));
        // One that is held continues, and stays when a new one begins.
        let (n, known) = opened.place(&memory, &said(37), None).unwrap();
        assert_eq!((opened.members[n].session.todo().as_str(), known.messages), ("a-37", 2));
        let (n, known) = opened.place(&memory, &said(1), None).unwrap();
        assert_eq!((opened.members[n].session.todo().as_str(), known.messages), ("a-101", 0));
        assert_eq!(opened.members.len(), MOST_MEMBERS);
        assert!(names(&opened).contains(&37) && !names(&opened).contains(&38));
        // Another process has begun many under the next names.
        (101..=400).for_each(|n| record(&memory, n));
        let mut late = family(&memory);
        (401..=700).for_each(|n| record(&memory, n));
        let (n, known) = late.place(&memory, &said(700), None).unwrap();
        assert_eq!((late.members[n].session.todo().as_str(), known.messages), ("a-700", 2));
        assert_eq!(late.members.len(), MOST_MEMBERS);
    }

    #[test]
    fn a_few_conversations_are_held_whatever_their_size() {
        assert!(fit(8, usize::MAX) && !fit(9, MOST_MESSAGES + 1));
        assert!(fit(MOST_MEMBERS, MOST_MESSAGES) && !fit(MOST_MEMBERS + 1, 0));
    }
}
