//! Reads the intact part of a damaged conversation.

use super::Conversations;
use crate::error::Failure;
use crate::{Error, ErrorKind, texts};
use foldback_core::{Message, SeqNo, StoredMessage, TodoId};
use foldback_kv::{Error as KvError, Key, Space, Todo};
use foldback_transcript::Conversation;

/// The part of a conversation that could be read, and what could not.
#[derive(Debug)]
#[non_exhaustive]
pub struct Salvage {
    /// The conversation with every intact message, each exactly as it was recorded, in order.
    pub conversation: Conversation,
    /// The missing messages, ascending, and what is wrong with each.
    pub missing: Vec<(SeqNo, Error)>,
    /// What is wrong with the data beside the messages: how many there are, the conversation's own id, or what
    /// surrounded its messages. What cannot be read is left out.
    pub beside: Vec<Error>,
}

impl Salvage {
    /// Returns whether nothing is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.beside.is_empty()
    }
}

impl Conversations<'_> {
    /// Exports as [`export`](Self::export) does, with every intact message even if others are damaged. Reads one
    /// message at a time.
    ///
    /// # Errors
    /// When there is no such todo, or the store cannot be read for a reason other than damage.
    pub fn salvage(self, todo: &TodoId) -> Result<Salvage, Error> {
        let found = self.memory.find(todo)?;
        let mut beside = Vec::new();
        let len = match damage(self.len(&found))? {
            Ok(len) => len,
            Err(error) => {
                beside.push(error);
                self.last_message(&found)?
            }
        };
        let info = damage(self.info(todo))?;
        // If one is damaged, the other may be too; the first is reported.
        let around = damage(self.envelope(todo))?;
        let (id, envelope) = match (info, around) {
            (Ok(info), Ok(envelope)) => (info.foreign_id, envelope),
            (Ok(info), Err(error)) => {
                beside.push(error);
                (info.foreign_id, None)
            }
            (Err(error), around) => {
                beside.push(error);
                (None, around.ok().flatten())
            }
        };
        let (mut messages, mut missing) = (Vec::new(), Vec::new());
        for seq in (0..len).map(SeqNo) {
            match damage(self.recorded(&found, seq))? {
                Ok(message) => messages.push(message),
                Err(error) => missing.push((seq, error)),
            }
        }
        let id = id.unwrap_or_else(|| todo.to_string());
        let conversation =
            Conversation::from_parts(Some(id), messages, envelope.unwrap_or_default());
        Ok(Salvage { conversation, missing, beside })
    }

    /// Reads one message without the todo's head.
    fn recorded(self, todo: &Todo, seq: SeqNo) -> Result<Message, Error> {
        let key = Key { space: Space::Message, todo: todo.no(), n: seq.0 };
        let damaged =
            |what: String| Error::from(Failure::Damaged { todo: todo.id().clone(), seq, what });
        let bytes = self.memory.kv.get(key)?.ok_or_else(|| damaged("it is missing".to_owned()))?;
        let stored: StoredMessage = rmp_serde::from_slice(&bytes)
            .map_err(|error| damaged(format!("it cannot be read: {error}")))?;
        texts::fill(self.memory, todo, seq, &stored, 0)
    }

    /// Returns how many messages a todo holds, judging by the last of their records.
    fn last_message(self, todo: &Todo) -> Result<u64, Error> {
        match self.memory.kv.last(Space::Message, todo.no()) {
            Ok(last) => Ok(last.map_or(0, |(n, _)| n + 1)),
            Err(KvError::Corrupt { key, .. }) => Ok(key.n + 1),
            Err(error) => Err(error.into()),
        }
    }
}

/// Separates damage, which leaves everything else readable, from every other error.
fn damage<T>(read: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match read {
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::Corrupt | ErrorKind::NotFound | ErrorKind::Io
            ) =>
        {
            Err(error)
        }
        read => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, Options};
    use foldback_kv::{Batch, Delete};

    #[test]
    fn r4_messages_are_salvaged_where_their_number_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Memory::open(dir.path(), Options::default()).unwrap();
        let id = TodoId::new("notes").unwrap();
        let notes: Vec<_> = (0..9).map(|n| Message::user(&format!("第{n}条"))).collect();
        let memory = open();
        memory.session(&id).unwrap().record_all(notes.clone()).unwrap();
        let todo = memory.find(&id).unwrap();
        let head = memory.shared.kv.head(todo.no()).unwrap().to_le_bytes();
        let lost = Key { space: Space::Message, todo: todo.no(), n: 4 };
        let delete = vec![Delete::one(lost)];
        memory.shared.kv.commit(Batch { delete, ..Batch::default() }).unwrap();
        drop(memory);
        // Its record is a version, a checksum, and the number.
        let file = dir.path().join("store.sqlite");
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.windows(17).position(|record| record[0] == 1 && record[9..] == head);
        bytes[at.unwrap() + 3] ^= 4;
        std::fs::write(&file, bytes).unwrap();

        let memory = open();
        assert!(memory.conversations().export(&id).is_err());
        let salvage = memory.conversations().salvage(&id).unwrap();
        assert!(salvage.beside[0].to_string().contains("head"), "{:?}", salvage.beside);
        let missing: Vec<u64> = salvage.missing.iter().map(|(seq, _)| seq.0).collect();
        assert_eq!((missing, salvage.beside.len()), (vec![4], 1));
        let whole: Vec<_> = (0..9).filter(|n| *n != 4).map(|n| notes[n].clone()).collect();
        assert_eq!(salvage.conversation.messages, whole);
        let none = memory.conversations().salvage(&TodoId::new("none").unwrap());
        assert_eq!(none.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
