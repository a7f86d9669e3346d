//! Replaces secrets by marks before a message is processed.
//!
//! Recognised secrets (see `foldback-redaction`) are replaced before anything is stored, indexed, embedded or counted.
//! With an [owner's key](RedactionKey), what was removed is kept beside the message, sealed.

mod numbers;
mod sealed;

pub(crate) use numbers::Numbers;
pub use sealed::RedactionKey;

use crate::error::Failure;
use crate::live::Live;
use crate::memory::Shared;
use crate::record::{Draft, Incoming};
use crate::{Error, ErrorKind, Memory, texts};
use foldback_core::{Message, SeqNo, TodoId, TodoItem, TodoList};
use foldback_kv::{Batch, Delete, Error as KvError, Expect, Key, Space, Todo, retry};
use foldback_redaction::{Finding, find, highest_number, mark, plain, replaced, without_numbers};
use foldback_transcript::comparable;
use numbers::Digester;
use sealed::{Removed, open, seal};
use std::borrow::Cow;
use std::sync::Arc;

/// The numbers of a todo's secrets, and what is sealed of the text around its messages, stored beside its todo list. What is
/// sealed of a message follows these, by the message's number.
const NUMBERS: u64 = 2;
const ENVELOPE: u64 = 3;
const FIRST_MESSAGE: u64 = 16;

/// The setting that secrets are replaced by marks before anything is stored; see
/// [`Options::redaction`](crate::Options::redaction).
///
/// ```
/// use foldback::core::{Message, TodoId};
/// use foldback::{Memory, Options, Redaction, RedactionKey};
///
/// let key: RedactionKey = "7f3c9a1e5b8d2046e1c7a9f05d3b6812907e4f2ac8d15b36e09f7a4c2d8b1e65".parse()?;
/// let options = Options::default().with_redaction(Redaction::default().with_key(key));
/// let memory = Memory::in_memory(options)?;
/// let todo = TodoId::new("deploy")?;
/// let said = Message::user("Use postgres://app:t4Zq9LmXw2@db/main.");
/// memory.session(&todo)?.record(said.clone())?;
///
/// let kept = memory.messages(&todo, 0..1)?;
/// assert_eq!(kept[0].text(), "Use postgres://app:[redacted url-password 1]@db/main.");
/// assert_eq!(memory.conversations().export_revealed(&todo)?.messages, [said]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    key: Option<RedactionKey>,
}

impl Redaction {
    /// Sets the key with which removed text is sealed; without one, it is gone permanently.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Option<RedactionKey>>) -> Self {
        self.key = key.into();
        self
    }
}

impl Memory {
    /// Returns whether this memory [redacts](crate::Options::redaction).
    #[must_use]
    pub fn is_redacting(&self) -> bool {
        self.shared.redaction.is_some()
    }

    /// Returns whether this memory redacts and would replace something in a text.
    #[must_use]
    pub fn redacts(&self, text: &str) -> bool {
        self.shared.redaction.is_some() && !find(text).is_empty()
    }

    /// Returns the text as this memory would store it, with unnumbered marks: for what a program keeps beside it.
    #[must_use]
    pub fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.shared.redacted(text)
    }
}

impl Shared {
    /// See [`Memory::redacted`].
    pub(crate) fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.redaction.is_some() { plain(text) } else { Cow::Borrowed(text) }
    }

    /// Returns a message and what is to be replaced in it.
    pub(crate) fn incoming(&self, message: Message) -> Incoming {
        let secrets = self.redaction.as_ref().map(|_| find(message.json())).unwrap_or_default();
        Incoming { message: Arc::new(message), secrets: secrets.into(), vectors: None }
    }

    /// Returns a message in the form in which it is compared with a stored one. What is replaced in one of them is
    /// replaced in both.
    pub(crate) fn compared<'m>(&self, message: &'m Message) -> Cow<'m, str> {
        match self.redaction {
            Some(_) => {
                let plain = plain(message.json());
                Cow::Owned(comparable(&without_numbers(&plain)).into_owned())
            }
            None => comparable(message.json()),
        }
    }

    /// Returns the numbers of a todo's secrets. If their record is damaged, no new ones can be assigned.
    pub(crate) fn numbers_of(&self, todo: &Todo) -> Result<Numbers, Error> {
        if self.redaction.is_none() {
            return Ok(Numbers::default());
        }
        match self.read_numbers(todo) {
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(Numbers::damaged()),
            numbers => numbers,
        }
    }

    /// Reads the record of the numbers of a todo's secrets.
    ///
    /// # Errors
    /// When it is damaged, or the store fails.
    pub(crate) fn read_numbers(&self, todo: &Todo) -> Result<Numbers, Error> {
        let Some(bytes) = self.kv.get(key(todo, NUMBERS))? else { return Ok(Numbers::default()) };
        Numbers::of_bytes(&bytes).ok_or_else(|| Failure::Numbers(todo.id().clone()).into())
    }

    /// Rebuilds the record of the numbers if it is damaged, and returns whether it did. The numbers in the marks of
    /// the messages are not assigned again; which secret had which of them is no longer known.
    pub(crate) fn repair_numbers(&self, todo: &Todo) -> Result<bool, Error> {
        match self.read_numbers(todo) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            read => return read.map(|_| false),
        }
        retry(|| {
            let head = self.kv.head(todo.no())?;
            let mut highest = 0;
            for seq in (0..self.blocks.head(todo)?.messages).map(SeqNo) {
                match texts::exact_message(self, todo, seq) {
                    Ok(message) => {
                        highest = highest.max(highest_number(message.json(), Numbers::MOST));
                    }
                    Err(error) if error.kind() == ErrorKind::Corrupt => {}
                    Err(error) => return Err(error),
                }
            }
            let expect = Some(Expect { todo: todo.no(), head, next: head });
            let put = vec![(key(todo, NUMBERS), Numbers::taken(highest).to_bytes()?)];
            Ok::<_, Error>(self.kv.commit(Batch { expect, put, ..Batch::default() })?)
        })?;
        Ok(true)
    }

    /// Returns the list with secrets replaced in its texts.
    pub(crate) fn redacted_list(&self, list: TodoList) -> Result<TodoList, Error> {
        if self.redaction.is_none() {
            return Ok(list);
        }
        let item = |item: &TodoItem| TodoItem {
            title: plain(&item.title).into_owned(),
            result: item.result.as_deref().map(|result| plain(result).into_owned()),
            ..item.clone()
        };
        Ok(TodoList::new(list.items().iter().map(item).collect())?)
    }

    fn digester(&self, todo: &Todo) -> Digester {
        Digester::new(self.owners_key(), &self.secret(), todo.id())
    }

    fn owners_key(&self) -> Option<&RedactionKey> {
        self.redaction.as_ref().and_then(|redaction| redaction.key.as_ref())
    }

    /// Returns a message with marks in place of its secrets. With a key, what was removed is added to the draft,
    /// sealed.
    pub(crate) fn redact(
        &self,
        todo: &Todo,
        seq: SeqNo,
        incoming: &Incoming,
        live: &mut Live,
        draft: Option<&mut Draft>,
    ) -> Result<Incoming, Error> {
        let (numbers, digester) = (Arc::make_mut(&mut live.numbers), self.digester(todo));
        if numbers.is_damaged() {
            // It may have been rebuilt.
            *numbers = self.read_numbers(todo)?;
        }
        let json = incoming.message.json();
        let (mut removed, mut gained) = (Vec::with_capacity(incoming.secrets.len()), 0_i64);
        let text = replaced(json, &incoming.secrets, |one: &Finding| {
            let mark = mark(one.kind, numbers.of(one, &digester));
            let text = json.get(one.range.clone()).unwrap_or_default();
            let at = (one.range.start as i64 + gained) as u64;
            gained += mark.len() as i64 - text.len() as i64;
            removed.push(Removed { at, mark: mark.len() as u64, text: text.to_owned() });
            mark
        });
        let message = Arc::new(Message::from_json(&text)?);
        if let (Some(key), Some(draft)) = (self.owners_key(), draft) {
            self.check_key(key, todo)?;
            let bytes = seal(key, todo.id(), FIRST_MESSAGE + seq.0, &removed)?;
            draft.extra.push((self::key(todo, FIRST_MESSAGE + seq.0), bytes));
        }
        Ok(Incoming { message, secrets: Arc::from([]), vectors: incoming.vectors.clone() })
    }

    /// Seals what surrounded a todo's messages, in place of what was sealed before. `None`, or no key, leaves
    /// nothing sealed.
    pub(crate) fn seal_envelope(&self, todo: &Todo, came: Option<&[u8]>) -> Result<Batch, Error> {
        let (key, owners) = (key(todo, ENVELOPE), self.owners_key());
        let mut batch = Batch::default();
        match came.zip(owners) {
            Some((came, owners)) => {
                self.check_key(owners, todo)?;
                let text = data_encoding::BASE64.encode(came);
                let removed = [Removed { at: 0, mark: 0, text }];
                batch.put.push((key, seal(owners, todo.id(), ENVELOPE, &removed)?));
            }
            // Most stores seal nothing, and need no commit to say so.
            None if matches!(self.kv.get(key), Ok(None)) => {}
            None => batch.delete.push(Delete::one(key)),
        }
        Ok(batch)
    }

    /// Returns what was sealed of the text around a todo's messages.
    pub(crate) fn revealed_envelope(&self, todo: &Todo) -> Result<Option<Vec<u8>>, Error> {
        let removed = self.removed(todo, ENVELOPE)?;
        let text = removed.first().map(|removed| removed.text.as_bytes());
        text.map(|text| data_encoding::BASE64.decode(text))
            .transpose()
            .map_err(|_| Failure::Internal("a sealed envelope has no bytes").into())
    }

    /// Returns a message as it was before anything in it was replaced; `None` if nothing of it is sealed.
    ///
    /// # Errors
    /// When there is no key, or a different one.
    pub(crate) fn revealed(
        &self,
        todo: &Todo,
        seq: SeqNo,
        message: &Message,
    ) -> Result<Option<Message>, Error> {
        let removed = self.removed(todo, FIRST_MESSAGE + seq.0)?;
        if removed.is_empty() {
            return Ok(None);
        }
        let (json, mut out, mut at) = (message.json(), String::new(), 0);
        let place = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        for one in &removed {
            out.push_str(json.get(at..place(one.at)).unwrap_or_default());
            out.push_str(&one.text);
            at = place(one.at.saturating_add(one.mark));
        }
        out.push_str(json.get(at..).unwrap_or_default());
        Ok(Some(Message::from_json(&out)?))
    }

    /// Refuses a key that does not open what was sealed first in a todo: no single key would open the todo after that.
    fn check_key(&self, owners: &RedactionKey, todo: &Todo) -> Result<(), Error> {
        let first = match self.kv.scan(Space::Plan, todo.no(), FIRST_MESSAGE..Key::N_END, 1) {
            // Damage does not tell one key from another.
            Err(KvError::Corrupt { .. }) => return Ok(()),
            first => first?,
        };
        match first.first().map(|(n, bytes)| open(owners, todo.id(), *n, bytes)) {
            Some(Err(_)) => Err(Failure::OtherRedactionKey(todo.id().clone()).into()),
            _ => Ok(()),
        }
    }

    fn removed(&self, todo: &Todo, n: u64) -> Result<Vec<Removed>, Error> {
        let Some(owners) = self.owners_key() else { return Err(Failure::NoRedactionKey.into()) };
        match self.kv.get(key(todo, n))? {
            Some(bytes) => open(owners, todo.id(), n, &bytes),
            None => Ok(Vec::new()),
        }
    }
}

impl Live {
    /// Returns the record of the numbers of a todo's secrets, if they changed.
    pub(crate) fn numbers_since(
        &self,
        before: &Self,
        todo: &Todo,
    ) -> Result<Option<(Key, Vec<u8>)>, Error> {
        if self.numbers.len() == before.numbers.len() {
            return Ok(None);
        }
        Ok(Some((key(todo, NUMBERS), self.numbers.to_bytes()?)))
    }
}

fn key(todo: &Todo, n: u64) -> Key {
    Key { space: Space::Plan, todo: todo.no(), n }
}

/// Names what a record of removed text was removed from.
fn place_of(n: u64) -> String {
    match n.checked_sub(FIRST_MESSAGE) {
        Some(seq) => format!("message {seq}"),
        None => "the data around the messages".to_owned(),
    }
}

/// Returns what the data of a seal are bound to.
fn bound_to(todo: &TodoId, n: u64) -> Vec<u8> {
    let mut bound = b"foldback removed secrets 1\0".to_vec();
    bound.extend_from_slice(todo.as_str().as_bytes());
    bound.push(0);
    bound.extend_from_slice(&n.to_le_bytes());
    bound
}

#[cfg(test)]
mod tests;
