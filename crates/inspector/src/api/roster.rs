//! All sessions, the newest first. The store is read again when it has changed, and then only what changed in it.

use foldback::core::{Timestamp, TodoId};
use foldback::{Error, Memory, Standing};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// All sessions at one moment.
pub(super) struct Roster {
    /// The store's counter of changes before it was read.
    changed: u64,
    /// The one with the latest message first. One that cannot be read is last.
    all: Vec<Listed>,
    places: HashMap<TodoId, usize>,
}

/// A session, and when its last message was said.
pub(super) struct Listed {
    standing: Standing,
    last: Option<Timestamp>,
}

/// The roster as it was read last.
#[derive(Default)]
pub(super) struct Rosters(Mutex<Option<Arc<Roster>>>);

impl Rosters {
    /// The sessions as of now. While nothing is written to the store, it is the same roster.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) fn now(&self, memory: &Memory) -> Result<Arc<Roster>, Error> {
        // The store may be away for a while: nobody waits for another's answer.
        let changed = memory.changed()?;
        let kept = self.0.lock().clone();
        if let Some(roster) = kept.as_ref().filter(|roster| roster.changed == changed) {
            return Ok(Arc::clone(roster));
        }
        let roster = Arc::new(Roster::read(memory, changed, kept.as_deref())?);
        *self.0.lock() = Some(Arc::clone(&roster));
        Ok(roster)
    }
}

impl Roster {
    fn read(memory: &Memory, changed: u64, before: Option<&Self>) -> Result<Self, Error> {
        let known = before.map(|before| before.all.iter().map(|one| one.standing.todo.clone()));
        let standings = memory.standings(known.into_iter().flatten().collect())?.into_iter();
        let mut all: Vec<Listed> = standings
            .map(|standing| {
                let id = standing.todo.id();
                let known = before
                    .and_then(|before| before.get(id))
                    .map(|known| (&known.standing, known.last));
                let last = match (known, standing.head) {
                    // A time that could not be read is looked for again.
                    (Some((known, last @ Some(_))), Some(_)) if *known == standing => last,
                    (_, Some(head)) => last(memory, id, head.messages),
                    (_, None) => None,
                };
                Listed { last, standing }
            })
            .collect();
        all.sort_by_key(|one| Reverse((one.last, one.standing.todo.no())));
        let places = all.iter().enumerate().map(|(at, one)| (one.id().clone(), at)).collect();
        Ok(Self { changed, all, places })
    }

    pub(super) fn newest_first(&self) -> &[Listed] {
        &self.all
    }

    /// The place of a session in the list.
    pub(super) fn place(&self, id: &TodoId) -> Option<usize> {
        self.places.get(id).copied()
    }

    pub(super) fn get(&self, id: &TodoId) -> Option<&Listed> {
        self.all.get(self.place(id)?)
    }
}

impl Listed {
    pub(super) fn id(&self) -> &TodoId {
        self.standing.todo.id()
    }

    /// Whether it is the same session with as many messages, and not another of the same name.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.standing.todo == other.standing.todo && self.messages() == other.messages()
    }

    /// How many messages it has; 0 if that cannot be read.
    pub(super) fn messages(&self) -> u64 {
        self.standing.head.map_or(0, |head| head.messages)
    }
}

/// When the last of these messages was said or, if it has no time of its own, recorded: an import does not make an old
/// session new.
pub(super) fn last(memory: &Memory, todo: &TodoId, len: u64) -> Option<Timestamp> {
    let said = len.checked_sub(1).and_then(|from| memory.messages(todo, from..len).ok());
    let said = said.and_then(|last| last.first()?.timestamp());
    said.or_else(|| memory.conversations().last_recorded(todo).ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback::Options;
    use foldback::core::Message;

    #[test]
    fn in8_the_list_is_read_again_when_the_store_has_changed() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let say = |id: &str, day: u32| {
            let at = Timestamp::parse(&format!("2026-01-{day:02}T10:00:00Z")).unwrap();
            let mut session = memory.session(&TodoId::new(id).unwrap()).unwrap();
            session.record(Message::user("Which berth? 哪个泊位？").at(at)).unwrap();
        };
        let rosters = Rosters::default();
        let ids = || {
            let roster = rosters.now(&memory).unwrap();
            let all = roster.newest_first().iter();
            all.map(|one| (one.id().to_string(), one.messages())).collect::<Vec<_>>()
        };
        let listed = |all: &[(&str, u64)]| {
            all.iter().map(|(id, messages)| ((*id).to_owned(), *messages)).collect::<Vec<_>>()
        };
        say("first", 1);
        say("second", 2);
        assert_eq!(ids(), listed(&[("second", 1), ("first", 1)]));
        let before = rosters.now(&memory).unwrap();
        assert!(Arc::ptr_eq(&before, &rosters.now(&memory).unwrap()), "nothing was written");
        say("first", 3);
        assert_eq!(ids(), listed(&[("first", 2), ("second", 1)]));
        memory.maintenance().forget(&TodoId::new("first").unwrap()).unwrap();
        assert_eq!(ids(), listed(&[("second", 1)]));
        // Another session of the same name is not taken for the one before it.
        say("first", 1);
        assert_eq!(ids(), listed(&[("second", 1), ("first", 1)]));
        assert_eq!(rosters.now(&memory).unwrap().place(&TodoId::new("first").unwrap()), Some(1));
    }
}
