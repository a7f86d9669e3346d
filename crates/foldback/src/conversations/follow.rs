//! Follows a conversation that another program continues, and records what is new.

use super::{Conversations, PER_READ, batches};
use crate::error::Failure;
use crate::{Error, Session, texts};
use foldback_core::{Message, Recorded, Role, SeqNo, TodoId};
use foldback_kv::{Todo, retry};
use foldback_transcript::Conversation;
use std::borrow::Cow;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_128;

/// The part of a followed conversation that a todo holds.
#[derive(Clone, Debug)]
pub struct Followed {
    todo: TodoId,
    /// How many messages it holds.
    len: u64,
    /// The messages that it holds and the conversation does not have, or not yet.
    beyond: Held,
}

impl Followed {
    /// Returns the todo.
    #[must_use]
    pub fn todo(&self) -> &TodoId {
        &self.todo
    }
}

/// Messages by their content, each with its number of occurrences. Line numbers are ignored.
#[derive(Clone, Debug, Default)]
struct Held(HashMap<u128, usize>);

impl Held {
    fn add(&mut self, said: &str) {
        *self.0.entry(key(said)).or_default() += 1;
    }

    /// Removes one message with the same content, if there is one.
    fn take(&mut self, said: &str) -> bool {
        let count = self.0.get_mut(&key(said)).filter(|count| **count > 0);
        count.map(|count| *count -= 1).is_some()
    }
}

fn key(said: &str) -> u128 {
    xxh3_128(said.as_bytes())
}

impl Conversations<'_> {
    /// Records those of the first `settled` messages of a conversation that its todo does not hold yet, and closes
    /// no block. If the conversation went back to an earlier point, or was rewritten after the same beginning,
    /// what is new is recorded after everything that the todo holds: each message once. Messages that the todo
    /// `but` holds are skipped. Later messages are recorded by [`follow_on`](Self::follow_on).
    ///
    /// `None` means that the todo holds another conversation: the two begin differently, or have only their
    /// instructions in common.
    ///
    /// # Errors
    /// When the store fails. What was made durable before a failure stays.
    pub fn follow(
        self,
        todo: &TodoId,
        conversation: &Conversation,
        settled: usize,
        but: Option<&TodoId>,
    ) -> Result<Option<(Followed, Vec<Recorded>)>, Error> {
        let mut passed = Held::default();
        if let Some(other) =
            but.map(|other| self.memory.registry.find(other)).transpose()?.flatten()
        {
            self.each_held(&other, |said| passed.add(said))?;
        }
        let all = conversation.messages.iter().take(settled);
        let all = all.map(|message| (self.memory.compared(message), message));
        let all: Vec<_> = all.filter(|(said, _)| !passed.take(said)).collect();
        if all.is_empty() {
            let followed = Followed { todo: todo.clone(), len: 0, beyond: Held::default() };
            return Ok(Some((followed, Vec::new())));
        }
        let is_new = self.memory.registry.find(todo)?.is_none();
        loop {
            // If another writer changes the todo meanwhile, its contents are checked again.
            match retry(|| self.follow_once(todo, conversation, &all)) {
                Err(error) if matches!(error.failure(), Failure::MovedOn { .. }) => {}
                followed => return followed.map_err(|error| self.undone(todo, is_new, error)),
            }
        }
    }

    /// Records further messages of a conversation, except those that its todo already holds.
    ///
    /// # Errors
    /// When another writer has written to the todo ([`Conflict`](crate::ErrorKind::Conflict)): the whole conversation
    /// must be [followed](Self::follow) again. And when the store fails.
    pub fn follow_on(
        self,
        followed: &mut Followed,
        messages: &[Message],
    ) -> Result<Vec<Recorded>, Error> {
        let mut is_known = |message: &Message| followed.beyond.take(&self.memory.compared(message));
        let new = messages.iter().filter(|message| !is_known(message));
        let new: Vec<Message> = new.cloned().collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let todo = self.memory.registry.create(&followed.todo, b"")?;
        let mut session = Session::resume(self.memory.clone(), todo)?;
        let recorded = record_from(&mut session, followed.len, &new)?;
        followed.len = session.len();
        Ok(recorded)
    }

    fn follow_once(
        self,
        todo: &TodoId,
        conversation: &Conversation,
        all: &[(Cow<'_, str>, &Message)],
    ) -> Result<Option<(Followed, Vec<Recorded>)>, Error> {
        let todo = self.memory.registry.create(todo, b"")?;
        let head = self.memory.kv.head(todo.no())?;
        let (mut held, mut same, mut len) = (Held::default(), 0, 0);
        self.each_held(&todo, |said| {
            match all.get(same).filter(|(next, _)| same as u64 == len && next == said) {
                Some(_) => same += 1,
                None => held.add(said),
            }
            len += 1;
        })?;
        let (before, behind) = all.split_at(same);
        let speaks = |(_, message): &(Cow<'_, str>, &Message)| {
            !matches!(message.role(), Role::System | Role::Developer)
        };
        if same as u64 != len && !behind.is_empty() && !before.iter().any(speaks) {
            return Ok(None);
        }
        let new = behind.iter().filter(|(said, _)| !held.take(said));
        let new: Vec<Message> = new.map(|(_, message)| Message::clone(message)).collect();
        self.keep(&todo, head, conversation)?;
        let id = todo.id().clone();
        let mut session = Session::resume(self.memory.clone(), todo)?;
        let recorded = record_from(&mut session, len, &new)?;
        let followed = Followed { todo: id, len: session.len(), beyond: held };
        Ok(Some((followed, recorded)))
    }

    /// Passes on the content of all messages of a todo, in order.
    fn each_held(self, todo: &Todo, mut take: impl FnMut(&str)) -> Result<(), Error> {
        let len = self.len(todo)?;
        let mut from = 0;
        while from < len {
            let to = len.min(from + PER_READ);
            let held = texts::exact_messages(self.memory, todo, from..to)?;
            held.iter().for_each(|message| take(&self.memory.compared(message)));
            from = to;
        }
        Ok(())
    }
}

/// Records messages from a number on, in transactions of bounded size.
fn record_from(
    session: &mut Session,
    mut seq: u64,
    messages: &[Message],
) -> Result<Vec<Recorded>, Error> {
    let mut recorded = Vec::with_capacity(messages.len());
    for batch in batches(messages) {
        recorded.extend(session.record_all_at(SeqNo(seq), batch.to_vec())?);
        seq += batch.len() as u64;
    }
    Ok(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Memory, Options};
    use foldback_transcript::read_bytes;

    /// A conversation of a user's messages, one for each letter; a capital is an instruction.
    fn conversation(texts: &str) -> Conversation {
        let role = |c: char| if c.is_uppercase() { "system" } else { "user" };
        let messages: Vec<_> = texts
            .chars()
            .map(|c| format!("{{\"role\":\"{}\",\"content\":\"{c}\"}}", role(c)))
            .collect();
        let line = format!("{{\"id\":\"x\",\"messages\":[{}]}}", messages.join(","));
        read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap()
    }

    /// Checks what a todo holds after following these conversations, one after the other.
    #[track_caller]
    fn check(followed: &[&str], expected: &str) {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let (todo, all) = (TodoId::new("t").unwrap(), memory.conversations());
        for texts in followed {
            let count = texts.chars().count();
            let done = all.follow(&todo, &conversation(texts), count, None).unwrap();
            // The same once more is nothing new.
            let again = all.follow(&todo, &conversation(texts), count, None).unwrap();
            assert_eq!(done.is_some(), again.is_some(), "{texts}");
            assert!(again.is_none_or(|(_, recorded)| recorded.is_empty()), "{texts}");
        }
        let held = all.export(&todo).unwrap().messages;
        assert_eq!(held.iter().map(Message::text).collect::<String>(), expected, "{followed:?}");
    }

    #[test]
    fn rc6_each_message_is_recorded_once() {
        check(&["ab", "abcd"], "abcd");
        // Shorter, and again what it was.
        check(&["abcd", "ab", "abcde"], "abcde");
        // It went back, went on, and came to its first words again.
        check(&["abcd", "abx", "abxy", "abcdz"], "abcdxyz");
        // What is said twice is there twice.
        check(&["aa", "aaba", "aaa"], "aaba");
    }

    #[test]
    fn rc6_another_conversation_is_not_mixed_in() {
        check(&["abc", "xbc"], "abc");
        // The same instructions make no conversation the same.
        check(&["Sab", "Sxb"], "Sab");
        check(&["Sab", "Sa", "S"], "Sab");
        check(&["S", "Sa"], "Sa");
    }

    #[test]
    fn rc6_what_is_settled_is_recorded_and_what_the_trunk_holds_is_not() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let (trunk, branch) = (TodoId::new("t").unwrap(), TodoId::new("b").unwrap());
        let all = memory.conversations();
        let (_, recorded) = all.follow(&trunk, &conversation("abcd"), 3, None).unwrap().unwrap();
        assert_eq!(recorded.len(), 3);
        let (_, none) = all.follow(&branch, &conversation("bc"), 2, Some(&trunk)).unwrap().unwrap();
        assert_eq!((none.len(), all.info(&branch).is_err()), (0, true));
        let (_, some) =
            all.follow(&branch, &conversation("bcx"), 3, Some(&trunk)).unwrap().unwrap();
        assert_eq!(some.len(), 1);
    }

    #[test]
    fn rc6_what_comes_behind_is_compared_with_what_the_todo_holds() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let (todo, all) = (TodoId::new("t").unwrap(), memory.conversations());
        let follow = |texts: &str| all.follow(&todo, &conversation(texts), texts.len(), None);
        let (mut late, _) = follow("abcd").unwrap().unwrap();
        let (mut followed, _) = follow("ab").unwrap().unwrap();
        let further = |followed: &mut Followed, texts: &str| {
            all.follow_on(followed, &conversation(texts).messages).map(|recorded| recorded.len())
        };
        assert_eq!(further(&mut followed, "cx").unwrap(), 1);
        assert_eq!(further(&mut followed, "dcy").unwrap(), 2);
        let held = all.export(&todo).unwrap().messages;
        assert_eq!(held.iter().map(Message::text).collect::<String>(), "abcdxcy");
        // Another writer came first.
        assert_eq!(further(&mut late, "e").unwrap_err().kind(), ErrorKind::Conflict);
    }
}
