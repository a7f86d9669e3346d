//! Texts that a program keeps beside a todo's messages and finds again by name.

use crate::named_text::Slot;
use crate::notes::NOTES;
use crate::{Error, Memory};
use foldback_core::TodoId;
use foldback_kv::Space;
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

/// The name of a parked text: a digest of what it belongs to.
pub type ParkedName = [u8; 32];

/// How many texts that may not be stored are held in memory; beyond that, earlier ones are lost.
const MOST_UNSTORED: usize = 1_000;

impl Memory {
    /// Stores a text durably beside the messages of a todo, in place of what was parked under this name. It is deleted
    /// with the todo. A text in which something would be [redacted](crate::Redaction) is kept unchanged, but only as
    /// long as the memory is open: a parked text has to come back byte for byte.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails.
    pub fn park(&self, todo: &TodoId, name: &ParkedName, text: &str) -> Result<(), Error> {
        let key = (self.find(todo)?.no(), *name);
        // Held to the end: the texts of one name replace each other in one order.
        let mut unstored = self.unstored();
        if self.redacts(text) {
            if unstored.len() >= MOST_UNSTORED && !unstored.contains_key(&key) {
                unstored.clear();
            }
            unstored.insert(key, text.to_owned());
            // What was stored before must not come back once the memory is closed.
            return self.delete_text(todo, |no| self.parked_slot(no, name));
        }
        self.put_text(todo, (name, text), true, |no| self.parked_slot(no, name))?;
        unstored.remove(&key);
        Ok(())
    }

    /// Returns whether anything is parked beside a todo, or was until a text that may not be stored replaced it.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails.
    pub fn has_parked(&self, todo: &TodoId) -> Result<bool, Error> {
        let no = self.find(todo)?.no();
        let is_unstored = self.unstored().keys().any(|(todo, _)| *todo == no);
        let is_stored = !self.shared.kv.scan(Space::Parked, no, 0..NOTES.start, 1)?.is_empty();
        Ok(is_unstored || is_stored)
    }

    /// Returns what was parked beside a todo under each of these names.
    ///
    /// # Errors
    /// When there is no such todo, or a record is damaged.
    pub fn parked(
        &self,
        todo: &TodoId,
        names: &[ParkedName],
    ) -> Result<Vec<Option<String>>, Error> {
        let no = self.find(todo)?.no();
        let one = |name: &ParkedName| match self.unstored().get(&(no, *name)) {
            Some(text) => Ok(Some(text.clone())),
            None => Ok(self.parked_slot(no, name)?.text()),
        };
        names.iter().map(one).collect()
    }

    fn unstored(&self) -> MutexGuard<'_, HashMap<(u32, ParkedName), String>> {
        self.shared.unstored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the text of this name is, or would be, given the todo's number.
    pub(crate) fn parked_slot(&self, todo: u32, name: &[u8]) -> Result<Slot, Error> {
        // The name is a digest of what a client said: in an encrypted store, not even a part of it may be a record's
        // number.
        let cipher = self.shared.kv.cipher(todo)?;
        let digest = cipher.map(|cipher| cipher.digest(name));
        let bytes = digest.as_ref().map_or(name, |digest| digest.as_slice());
        let first = bytes.first_chunk().copied().unwrap_or_default();
        let (count, first) = (NOTES.start, u64::from(u32::from_le_bytes(first)));
        self.text_slot(todo, name, (0..count).map(|step| (first + step) % count))
    }
}

#[cfg(test)]
mod tests {
    use crate::{ErrorKind, Memory, Options, Redaction};
    use foldback_core::{Message, TodoId};

    /// GW10: a parked text is found by its name, even if names begin alike, and is deleted with its todo.
    #[test]
    fn gw10_what_is_parked_is_found_by_its_name() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let todo = TodoId::new("trip").unwrap();
        let (first, mut second) = ([0xff; 32], [0xff; 32]);
        second[31] = 7;
        assert_eq!(memory.park(&todo, &first, "a").unwrap_err().kind(), ErrorKind::NotFound);
        memory.session(&todo).unwrap().record(Message::user("hello")).unwrap();
        assert_eq!(memory.parked(&todo, &[first]).unwrap(), [None]);
        assert!(!memory.has_parked(&todo).unwrap());
        for (name, text) in [(first, "a"), (second, "b"), (first, "港")] {
            memory.park(&todo, &name, text).unwrap();
        }
        let found = memory.parked(&todo, &[second, [0; 32], first]).unwrap();
        assert_eq!(found, [Some("b".to_owned()), None, Some("港".to_owned())]);
        assert!(memory.has_parked(&todo).unwrap());
        memory.maintenance().forget(&todo).unwrap();
        memory.session(&todo).unwrap().record(Message::user("hello")).unwrap();
        assert_eq!(memory.parked(&todo, &[first]).unwrap(), [None]);
    }

    /// GW10, S8: the last text of a name is the one that comes back, whether either may be stored, and none that it
    /// replaced does after the memory was closed.
    #[test]
    fn gw10_s8_what_was_parked_last_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let options = Options::default().with_redaction(Redaction::default());
            Memory::open(dir.path(), options).unwrap()
        };
        let todo = TodoId::new("trip").unwrap();
        let (first, mut second, mut third) = ([0xff; 32], [0xff; 32], [0xff; 32]);
        (second[31], third[31]) = (7, 8);
        let secret = "密钥 AKIAZ7Q2MXK4N5P6R3TB";
        let memory = open();
        memory.session(&todo).unwrap().record(Message::user("hello")).unwrap();
        let park = |memory: &Memory, name, text| memory.park(&todo, name, text).unwrap();
        let parked = |memory: &Memory| {
            let found = memory.parked(&todo, &[first, second, third]).unwrap();
            found.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()
        };
        park(&memory, &first, "旧");
        park(&memory, &second, "b");
        park(&memory, &first, secret);
        assert_eq!(parked(&memory), [secret, "b", ""]);
        park(&memory, &first, "新");
        assert_eq!(parked(&memory), ["新", "b", ""]);
        park(&memory, &first, secret);
        drop(memory);
        let memory = open();
        assert_eq!(parked(&memory), ["", "b", ""]);
        // The place that is left is taken again.
        park(&memory, &third, "c");
        park(&memory, &first, "a");
        assert_eq!(parked(&memory), ["a", "b", "c"]);
        assert!(memory.maintenance().doctor().unwrap().is_clean());
    }
}
