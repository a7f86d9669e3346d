//! What is stored with a todo beside its records: a few words with its name and, separately because
//! it may be large, what surrounded the messages of an imported conversation.

use super::Conversations;
use crate::error::Failure;
use crate::{Error, ErrorKind};
use foldback_blockstore::Origin;
use foldback_core::{Timestamp, TodoId};
use foldback_kv::{Batch, Error as KvError, Expect, Registry, Todo, retry};
use foldback_transcript::{Conversation, Envelope};
use serde::{Deserialize, Serialize};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The information that is stored with a todo beside its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TodoInfo {
    /// The conversation's id as its source wrote it, if that is not a valid todo id.
    pub foreign_id: Option<String>,
    /// The program that wrote it and its working folder, if known.
    pub origin: Origin,
}

/// How many todos are examined at once.
const PAGE: usize = 1_000;

/// The info of a todo in the registry.
#[derive(Default, Serialize, Deserialize)]
struct Info {
    foreign_id: Option<String>,
    /// The envelope that is attached to the todo.
    #[serde(default)]
    attached: Option<Seal>,
    /// Missing in the info of earlier versions.
    #[serde(default)]
    origin: Option<Origin>,
}

/// A seal that shows whether the attached envelope is there and complete.
#[derive(PartialEq, Serialize, Deserialize)]
struct Seal {
    bytes: u64,
    hash: u64,
}

/// An info as earlier versions wrote it, with the envelope inside.
#[derive(Default, Deserialize)]
struct WithEnvelope {
    #[serde(default)]
    envelope: Option<Envelope>,
}

impl Seal {
    fn of(attached: &[u8]) -> Self {
        Self { bytes: attached.len() as u64, hash: xxh3_64(attached) }
    }
}

impl Conversations<'_> {
    /// Returns what is stored with a todo beside its records. Reads no envelope.
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn info(self, todo: &TodoId) -> Result<TodoInfo, Error> {
        let info: Info = read(todo, &self.memory.registry.info(&self.memory.find(todo)?)?)?;
        Ok(TodoInfo { foreign_id: info.foreign_id, origin: info.origin.unwrap_or_default() })
    }

    /// Returns the todos with numbers above `after`, up to `limit`, each with the [id](TodoInfo::foreign_id) of the
    /// conversation that it holds, if that is not its own. What is damaged has none, and a todo whose record is damaged is
    /// left out.
    ///
    /// # Errors
    /// When the store fails.
    pub fn foreign_ids_after(
        self,
        mut after: u32,
        limit: usize,
    ) -> Result<Vec<(Todo, Option<String>)>, Error> {
        let listed = loop {
            let list = |limit| self.memory.registry.list_with_info(after, limit);
            match list(limit).or_else(|_| list(1)) {
                Err(KvError::Corrupt { key, .. }) => {
                    after = u32::try_from(key.n).unwrap_or(u32::MAX);
                }
                listed => break listed?,
            }
        };
        let read = |(todo, bytes): (Todo, Vec<u8>)| {
            let info: Info = read(todo.id(), &bytes).unwrap_or_default();
            (todo, info.foreign_id)
        };
        Ok(listed.into_iter().map(read).collect())
    }

    /// Returns the most recently recorded todo among those with exactly this working folder.
    ///
    /// # Errors
    /// When the store fails.
    pub fn latest_in(self, folder: &Path) -> Result<Option<TodoId>, Error> {
        let is_meant = |noted: &str| {
            Path::new(noted) == folder
                || Path::new(noted).canonicalize().is_ok_and(|noted| noted == folder)
        };
        let mut latest = None;
        let mut after = 0;
        loop {
            let todos = self.memory.registry.list(after, PAGE)?;
            let Some(last) = todos.last() else { break };
            after = last.no();
            for todo in &todos {
                // A todo that cannot be read does not hide the others.
                let origin = origin_of(&self.memory.registry, todo).unwrap_or_default();
                if !origin.folder.is_some_and(|noted| is_meant(&noted)) {
                    continue;
                }
                let at = self.last_recorded_of(todo)?;
                if latest.as_ref().is_none_or(|(best, _)| at >= *best) {
                    latest = Some((at, todo.id().clone()));
                }
            }
        }
        Ok(latest.map(|(_, todo)| todo))
    }

    /// Returns when the last message of a todo was recorded; `None` if none can be read.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails.
    pub fn last_recorded(self, todo: &TodoId) -> Result<Option<Timestamp>, Error> {
        let todo = self.memory.find(todo)?;
        Ok(self.last_recorded_of(&todo)?.map(Timestamp))
    }

    fn last_recorded_of(self, todo: &Todo) -> Result<Option<i64>, Error> {
        let len = self.memory.blocks.head(todo)?.messages;
        let Some(last) = len.checked_sub(1) else { return Ok(None) };
        let stored = self.memory.blocks.messages(todo, last..len).unwrap_or_default();
        Ok(stored.first().map(|stored| stored.recorded_at))
    }

    /// Notes where a todo came from: the program that writes it, and its working folder.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails.
    pub fn set_origin(self, todo: &TodoId, origin: &Origin) -> Result<(), Error> {
        let registry = &self.memory.registry;
        let todo = self.memory.find(todo)?;
        retry(|| {
            let head = self.memory.kv.head(todo.no())?;
            let before = registry.info(&todo)?;
            let info: Info = read(todo.id(), &before)?;
            if info.origin.as_ref() == Some(origin) {
                return Ok(());
            }
            let attached = registry.attached(&todo)?;
            let info = write(&Info { origin: Some(origin.clone()), ..info })?;
            Ok::<_, Error>(registry.set(&todo, head, &info, &attached)?)
        })
    }

    /// Returns what surrounded the messages of the conversation that a todo was imported from;
    /// `None` if it was not imported.
    ///
    /// # Errors
    /// When there is no such todo, the store fails, or the envelope is damaged.
    pub(crate) fn envelope(self, todo: &TodoId) -> Result<Option<Envelope>, Error> {
        let registry = &self.memory.registry;
        let found = self.memory.find(todo)?;
        let mut info = registry.info(&found)?;
        loop {
            let Some(seal) = read::<Info>(todo, &info)?.attached else {
                return Ok(read::<WithEnvelope>(todo, &info)?.envelope);
            };
            let attached = registry.attached(&found)?;
            if Seal::of(&attached) == seal {
                return read(todo, &attached).map(Some);
            }
            // Another process may have written both between the two readings.
            let again = registry.info(&found)?;
            if again == info {
                let what = "the text around its messages is incomplete".to_owned();
                return Err(Failure::State { todo: todo.clone(), what }.into());
            }
            info = again;
        }
    }

    /// Returns what surrounded the messages of a conversation as it came, if that was sealed.
    pub(super) fn revealed_envelope(self, todo: &Todo) -> Result<Option<Envelope>, Error> {
        let bytes = self.memory.revealed_envelope(todo)?;
        bytes.map(|bytes| read(todo.id(), &bytes)).transpose()
    }

    /// Stores the id and envelope of the conversation imported into the todo, and what is sealed of them, in
    /// one transaction, if the todo's head is still `head`.
    pub(super) fn keep(
        self,
        todo: &Todo,
        head: u64,
        conversation: &Conversation,
    ) -> Result<(), Error> {
        let came = &conversation.envelope;
        let kept = match &self.memory.redaction {
            Some(_) => &came.with_texts(|text| self.memory.redacted(text)),
            None => came,
        };
        let envelope = write(kept)?;
        let info = write(&Info {
            foreign_id: conversation.id.clone().filter(|id| id != todo.id().as_str()),
            attached: Some(Seal::of(&envelope)),
            origin: Some(origin_in(came)),
        })?;
        let is_new = self.memory.registry.info(todo)? != info;
        let is_redacted = kept != came;
        let sealed = if is_new || (is_redacted && !self.is_sealed(todo, came)) {
            let came = is_redacted.then(|| write(came)).transpose()?;
            self.memory.seal_envelope(todo, came.as_deref())?
        } else {
            Batch::default()
        };
        if is_new {
            self.memory.registry.set_with(todo, head, &info, &envelope, sealed)?;
        } else if !sealed.is_empty() {
            let expect = Some(Expect { todo: todo.no(), head, next: head });
            self.memory.kv.commit(Batch { expect, ..sealed })?;
        }
        Ok(())
    }

    /// Returns whether this envelope is the sealed one, as far as the available key can show. What it does not
    /// open is left as it is.
    fn is_sealed(self, todo: &Todo, came: &Envelope) -> bool {
        match self.revealed_envelope(todo) {
            Ok(sealed) => sealed.as_ref() == Some(came),
            Err(error) => error.kind() != ErrorKind::Corrupt,
        }
    }
}

/// Returns where a todo came from: as noted or, if an earlier version imported it, as its envelope
/// says.
pub(crate) fn origin_of(registry: &Registry, todo: &Todo) -> Result<Origin, Error> {
    let bytes = registry.info(todo)?;
    let info: Info = read(todo.id(), &bytes)?;
    if let Some(origin) = info.origin {
        return Ok(origin);
    }
    let envelope = match info.attached {
        Some(_) => read(todo.id(), &registry.attached(todo)?).map(Some)?,
        None => read::<WithEnvelope>(todo.id(), &bytes)?.envelope,
    };
    Ok(envelope.as_ref().map(origin_in).unwrap_or_default())
}

/// Returns what an envelope says about the origin of its conversation.
fn origin_in(envelope: &Envelope) -> Origin {
    /// What logs of coding agents say about their sessions.
    #[derive(Deserialize)]
    struct Facts {
        cwd: Option<String>,
    }
    let facts = envelope.get("source");
    let facts = facts.and_then(|facts| serde_json::from_str::<Facts>(&facts).ok());
    Origin {
        source: Some(envelope.format().name().to_owned()),
        folder: facts.and_then(|facts| facts.cwd).filter(|cwd| !cwd.is_empty()),
    }
}

fn write(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    rmp_serde::to_vec_named(value)
        .map_err(|_| Failure::Internal("what is kept with a todo has no bytes").into())
}

fn read<T: Default + for<'a> Deserialize<'a>>(todo: &TodoId, bytes: &[u8]) -> Result<T, Error> {
    if bytes.is_empty() {
        return Ok(T::default());
    }
    rmp_serde::from_slice(bytes)
        .map_err(|error| Failure::State { todo: todo.clone(), what: error.to_string() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, Options};
    use foldback_kv::{Delete, Key, Space};
    use foldback_transcript::read_bytes;

    /// A conversation of this many messages, and a key beside them of this many bytes.
    fn conversation(messages: usize, beside: usize) -> Conversation {
        let text = (0..messages).map(|n| format!("{{\"role\":\"user\",\"content\":\"第{n}\"}}"));
        let (text, beside) = (text.collect::<Vec<_>>().join(","), "卷".repeat(beside / 3));
        let line = format!("{{\"id\":\"a b\",\"messages\":[{text}],\"records\":\"{beside}\"}}");
        read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap()
    }

    fn id() -> TodoId {
        TodoId::new("t").unwrap()
    }

    #[test]
    fn an_envelope_is_apart_from_the_info_and_follows_a_conversation_that_goes_on() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        memory.conversations().continue_import(&id(), &conversation(2, 3_000_000)).unwrap();
        let todo = memory.find(&id()).unwrap();
        let registry = &memory.shared.registry;
        assert!(registry.info(&todo).unwrap().len() < 200, "the info is small");
        assert_eq!(memory.conversations().export(&id()).unwrap(), conversation(2, 3_000_000));
        // The same again writes nothing; more messages, or more beside them, do.
        let changed = memory.shared.kv.changed().unwrap();
        memory.conversations().continue_import(&id(), &conversation(2, 3_000_000)).unwrap();
        assert_eq!(memory.shared.kv.changed().unwrap(), changed);
        for longer in [conversation(2, 3_500_000), conversation(5, 90)] {
            memory.conversations().continue_import(&id(), &longer).unwrap();
            assert_eq!(memory.conversations().export(&id()).unwrap(), longer);
        }
        // A refused import changes nothing.
        assert!(memory.conversations().continue_import(&id(), &conversation(4, 6)).is_err());
        assert_eq!(memory.conversations().export(&id()).unwrap(), conversation(5, 90));
        assert_eq!(memory.maintenance().verify().unwrap().findings, Vec::<String>::new());
        memory.maintenance().forget(&id()).unwrap();
        let left = memory.shared.kv.scan(Space::Todo, todo.no(), 0..Key::N_END, 9).unwrap();
        assert_eq!(left, []);
    }

    #[test]
    fn an_envelope_inside_the_info_is_read_and_moves_out() {
        #[derive(Serialize)]
        struct Earlier<'a> {
            foreign_id: &'a str,
            envelope: &'a Envelope,
        }
        let memory = Memory::in_memory(Options::default()).unwrap();
        let held = conversation(3, 60);
        let earlier = Earlier { foreign_id: "a b", envelope: &held.envelope };
        let info = write(&earlier).unwrap();
        let todo = memory.shared.registry.create(&id(), &info).unwrap();
        memory.session(&id()).unwrap().record_all(held.messages.clone()).unwrap();
        assert_eq!(memory.conversations().info(&id()).unwrap().foreign_id.as_deref(), Some("a b"));
        assert_eq!(memory.conversations().export(&id()).unwrap(), held);
        memory.conversations().continue_import(&id(), &conversation(4, 90)).unwrap();
        assert!(memory.shared.registry.info(&todo).unwrap().len() < 200);
        assert_eq!(memory.conversations().export(&id()).unwrap(), conversation(4, 90));
    }

    #[test]
    fn a_piece_that_is_gone_is_found() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        memory.conversations().continue_import(&id(), &conversation(2, 3_000_000)).unwrap();
        let todo = memory.find(&id()).unwrap();
        let delete = vec![Delete::one(Key { space: Space::Todo, todo: todo.no(), n: 1 })];
        memory.shared.kv.commit(Batch { delete, ..Batch::default() }).unwrap();
        let findings = memory.maintenance().verify().unwrap().findings;
        assert!(findings.len() == 1 && findings[0].contains("around its messages"), "{findings:?}");
        assert!(memory.conversations().export(&id()).is_err());
        assert_eq!(memory.conversations().info(&id()).unwrap().foreign_id.as_deref(), Some("a b"));
    }
}
