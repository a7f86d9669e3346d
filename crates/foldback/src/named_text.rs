//! Texts beside a todo's messages, each a record of its own that holds its name.
//!
//! A name's digest gives the record's number. Where another name has that one, the next is taken. A record that is
//! deleted leaves one without a name, so that those behind it are still found; its place may be taken again.

use crate::error::Failure;
use crate::{Error, Memory};
use foldback_core::TodoId;
use foldback_kv::{Batch, Expect, Key, Space, retry};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(with = "serde_bytes")]
    name: Vec<u8>,
    #[serde(with = "serde_bytes")]
    text: Vec<u8>,
}

/// Where a named text is, or would be.
pub(crate) enum Slot {
    /// It is here.
    Taken(Key, String),
    /// It would be here.
    Free(Key),
    /// Other names have all places.
    Full,
}

impl Memory {
    /// Returns where the text of a name is among these places, which are tried in order.
    pub(crate) fn text_slot(
        &self,
        todo: u32,
        name: &[u8],
        places: impl Iterator<Item = u64>,
    ) -> Result<Slot, Error> {
        let mut left = None;
        for n in places {
            let key = Key { space: Space::Parked, todo, n };
            let Some(bytes) = self.shared.kv.get(key)? else {
                return Ok(Slot::Free(left.unwrap_or(key)));
            };
            let record = read(key, &bytes)?;
            if record.name == name {
                let text = String::from_utf8(record.text);
                return Ok(Slot::Taken(key, text.map_err(|error| corrupt(key, &error))?));
            }
            if record.name.is_empty() {
                left.get_or_insert(key);
            }
        }
        Ok(left.map_or(Slot::Full, Slot::Free))
    }

    /// Deletes the text in the slot that `slot` finds, given the todo's number, if there is one.
    pub(crate) fn delete_text(
        &self,
        todo: &TodoId,
        slot: impl Fn(u32) -> Result<Slot, Error>,
    ) -> Result<(), Error> {
        let empty = packed(&[], "")?;
        retry(|| {
            let no = self.find(todo)?.no();
            let head = self.shared.kv.head(no)?;
            if let Slot::Taken(key, _) = slot(no)? {
                let expect = Some(Expect { todo: no, head, next: head });
                let put = vec![(key, empty.clone())];
                self.shared.kv.commit(Batch { expect, put, ..Batch::default() })?;
            }
            Ok(())
        })
    }

    /// Stores a text in the slot that `slot` finds, given the todo's number. A text that is there already is replaced
    /// only if `replaces`. Returns whether there is one now; otherwise other names have all places.
    pub(crate) fn put_text(
        &self,
        todo: &TodoId,
        (name, text): (&[u8], &str),
        replaces: bool,
        slot: impl Fn(u32) -> Result<Slot, Error>,
    ) -> Result<bool, Error> {
        let record = packed(name, text)?;
        retry(|| {
            let no = self.find(todo)?.no();
            // If the todo is forgotten meanwhile, nothing is written.
            let head = self.shared.kv.head(no)?;
            let key = match slot(no)? {
                Slot::Full => return Ok(false),
                Slot::Taken(..) if !replaces => return Ok(true),
                Slot::Taken(key, _) | Slot::Free(key) => key,
            };
            let expect = Some(Expect { todo: no, head, next: head });
            let put = vec![(key, record.clone())];
            self.shared.kv.commit(Batch { expect, put, ..Batch::default() })?;
            Ok(true)
        })
    }
}

/// Returns the name in a record; one that was deleted has none.
pub(crate) fn name_of(key: Key, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(read(key, bytes)?.name)
}

fn read(key: Key, bytes: &[u8]) -> Result<Record, Error> {
    rmp_serde::from_slice(bytes).map_err(|error| corrupt(key, &error))
}

fn corrupt(key: Key, error: &dyn std::fmt::Display) -> Error {
    foldback_kv::Error::Corrupt { key, detail: error.to_string() }.into()
}

fn packed(name: &[u8], text: &str) -> Result<Vec<u8>, Error> {
    let record = Record { name: name.to_vec(), text: text.as_bytes().to_vec() };
    let packed = rmp_serde::to_vec(&record);
    packed.map_err(|_| Failure::Internal("a text cannot be packed").into())
}

impl Slot {
    /// Returns the text, if it is there.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Taken(_, text) => Some(text),
            Self::Free(_) | Self::Full => None,
        }
    }
}
