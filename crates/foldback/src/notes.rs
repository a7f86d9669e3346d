//! Short texts that a program keeps beside a todo's messages, each once.

use crate::named_text::Slot;
use crate::{Error, Memory};
use foldback_core::TodoId;
use foldback_kv::Key;
use std::ops::Range;

/// The name of a note: a digest of its text.
pub type NoteName = [u8; 8];

/// Notes are the last records of the space of parked texts.
pub(crate) const NOTES: Range<u64> = Key::N_END - 16_384..Key::N_END;

/// How many places are tried for a note. Where all are taken, it is not kept.
const TRIES: u64 = 32;

impl Memory {
    /// A longer note, in bytes, is not kept.
    pub const LONGEST_NOTE: usize = 16 << 10;

    /// Stores a text durably beside the messages of a todo, unless there is a note of this name already. It is deleted
    /// with the todo. Returns whether it is there: a text that is too long, or in which something would be
    /// [redacted](crate::Redaction), is not kept, and a todo has at most 16,384 notes, or fewer where names collide.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails.
    pub fn note(&self, todo: &TodoId, name: &NoteName, text: &str) -> Result<bool, Error> {
        if text.len() > Self::LONGEST_NOTE || self.redacts(text) {
            return Ok(false);
        }
        self.put_text(todo, (name, text), false, |no| self.note_slot(no, name))
    }

    /// Returns the notes of these names.
    ///
    /// # Errors
    /// When there is no such todo, or a record is damaged.
    pub fn notes(&self, todo: &TodoId, names: &[NoteName]) -> Result<Vec<Option<String>>, Error> {
        let no = self.find(todo)?.no();
        names.iter().map(|name| Ok(self.note_slot(no, name)?.text())).collect()
    }

    /// Returns where the note of this name is, or would be, given the todo's number.
    pub(crate) fn note_slot(&self, todo: u32, name: &[u8]) -> Result<Slot, Error> {
        // In an encrypted store, no part of a digest may be a record's number.
        let cipher = self.shared.kv.cipher(todo)?;
        let digest = cipher.map(|cipher| cipher.digest(name));
        let bytes = digest.as_ref().map_or(name, |digest| digest.as_slice());
        let first = bytes.first_chunk().copied().unwrap_or_default();
        let (count, first) = (NOTES.end - NOTES.start, u64::from(u16::from_le_bytes(first)));
        self.text_slot(todo, name, (0..TRIES).map(|step| NOTES.start + (first + step) % count))
    }
}

#[cfg(test)]
mod tests {
    use super::TRIES;
    use crate::{Memory, Options};
    use foldback_core::{Message, TodoId};

    /// GW20: a note is there once, is no parked text, and is deleted with its todo.
    #[test]
    fn gw20_notes_are_kept_up_to_a_bound_and_are_no_parked_texts() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let todo = TodoId::new("trip").unwrap();
        let hello = || memory.session(&todo).unwrap().record(Message::user("hello")).unwrap();
        hello();
        // Names that begin alike.
        let name = |n: u64| (n << 16).to_le_bytes();
        for n in 0..TRIES {
            assert!(memory.note(&todo, &name(n), &format!("港 {n}")).unwrap(), "{n}");
        }
        assert!(memory.note(&todo, &name(1), "another text").unwrap(), "it is there already");
        assert!(!memory.note(&todo, &name(TRIES), "one too many").unwrap());
        assert!(!memory.has_parked(&todo).unwrap());
        let found = memory.notes(&todo, &[name(1), name(TRIES), name(TRIES - 1)]).unwrap();
        assert_eq!(found, [Some("港 1".to_owned()), None, Some("港 31".to_owned())]);
        // A name of a parked text that would be in the place of a note is elsewhere.
        memory.park(&todo, &[0xff; 32], "a").unwrap();
        assert_eq!(memory.parked(&todo, &[[0xff; 32]]).unwrap(), [Some("a".to_owned())]);
        assert!(memory.has_parked(&todo).unwrap());
        memory.maintenance().forget(&todo).unwrap();
        hello();
        assert_eq!(memory.notes(&todo, &[name(1)]).unwrap(), [None]);
        assert!(!memory.note(&todo, &name(1), &"x".repeat(Memory::LONGEST_NOTE + 1)).unwrap());
    }
}
