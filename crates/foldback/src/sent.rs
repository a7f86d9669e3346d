//! The exact messages that a client sent, beside what was recorded of them.

use crate::error::Failure;
use crate::{Error, Memory, SentTree, Session};
use foldback_core::{Message, Recorded, SeqNo, TodoId};
use foldback_kv::{Key, Space};
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::ops::Range;
use std::sync::Arc;

/// The compression level: fast.
const LEVEL: i32 = 1;

/// More bytes than any message of a client has.
const MOST: u64 = 256 << 20;

/// How many are read at once.
const PER_READ: usize = 512;

/// A message as a client sent it. Clients rewind, edit and fork: each message names the one before it, so that
/// a client's messages form a tree, of which each branch is a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of the previous message; `None` at the beginning of a conversation.
    pub parent: Option<u32>,
    /// The messages that were recorded from it.
    pub recorded: Range<u64>,
    /// The recorder's own mark for it.
    pub tag: Vec<u8>,
    /// The message as it was sent, byte for byte; with marks if something in it is [redacted](crate::Redaction).
    pub json: String,
}

/// A message of a client that is to be recorded.
#[derive(Clone, Debug)]
pub struct NewSent {
    /// As in [`Sent`]; a message of the same batch has the next free number.
    pub parent: Option<u32>,
    /// As in [`Sent`].
    pub tag: Vec<u8>,
    /// As in [`Sent`].
    pub json: String,
    /// Its content as messages of ours: at least one.
    pub messages: Vec<Message>,
}

/// A message that a client sends again in a form other than the recorded one: a model's answer is known before
/// the client writes it down in its own way.
#[derive(Clone, Debug)]
pub struct SentAgain {
    /// The number of the message.
    pub n: u32,
    /// Its new form. What was recorded from it stays.
    pub sent: Sent,
}

/// A record of the space. The text is compressed with zstd.
#[derive(Serialize, Deserialize)]
struct Record {
    parent: Option<u32>,
    first: u64,
    count: u64,
    #[serde(with = "serde_bytes")]
    tag: Vec<u8>,
    #[serde(with = "serde_bytes")]
    json: Vec<u8>,
}

impl Record {
    /// Returns the bytes of a record.
    fn of(
        parent: Option<u32>,
        recorded: Range<u64>,
        tag: &[u8],
        json: &str,
    ) -> Result<Vec<u8>, Error> {
        let json = zstd::encode_all(json.as_bytes(), LEVEL).map_err(unwritten)?;
        let (first, count) = (recorded.start, recorded.end.saturating_sub(recorded.start));
        let record = Self { parent, first, count, tag: tag.to_vec(), json };
        rmp_serde::to_vec(&record).map_err(unwritten)
    }
}

impl Session {
    /// Records as [`record_all_at`](Session::record_all_at) does, each with the client's message that it came from, in
    /// one transaction. The first message of the client gets the number `n`; those of `again` are replaced.
    ///
    /// # Errors
    /// As [`record_all_at`](Session::record_all_at), and if one holds no message.
    pub fn record_sent(
        &mut self,
        seq: SeqNo,
        n: u32,
        sent: &[NewSent],
        again: &[SentAgain],
    ) -> Result<Vec<Recorded>, Error> {
        let todo = self.todo.no();
        let (mut extra, mut messages, mut first) = (Vec::new(), Vec::new(), seq.0);
        let memory = Arc::clone(&self.memory);
        for SentAgain { n, sent } in again {
            let json = memory.redacted(&sent.json);
            let record = Record::of(sent.parent, sent.recorded.clone(), &sent.tag, &json)?;
            extra.push((Key { space: Space::Sent, todo, n: u64::from(*n) }, record));
        }
        for (n, one) in (u64::from(n)..).zip(sent) {
            let count = one.messages.len() as u64;
            if count == 0 {
                return Err(Failure::Internal("a client's message was recorded as none").into());
            }
            let json = memory.redacted(&one.json);
            let record = Record::of(one.parent, first..first + count, &one.tag, &json)?;
            extra.push((Key { space: Space::Sent, todo, n }, record));
            messages.extend(one.messages.iter().cloned());
            first += count;
        }
        self.record_all_with(seq, messages, &extra)
    }
}

impl Memory {
    /// Returns what a client sent in a todo, from the number `from` on: at most `limit` messages, in the order
    /// in which they came.
    ///
    /// # Errors
    /// When there is no such todo, or a record is damaged.
    pub fn sent(&self, todo: &TodoId, from: u32, limit: usize) -> Result<Vec<Sent>, Error> {
        let no = self.find(todo)?.no();
        let (mut sent, mut from) = (Vec::new(), u64::from(from));
        while sent.len() < limit {
            let step = PER_READ.min(limit - sent.len());
            let records = self.shared.kv.scan(Space::Sent, no, from..Key::N_END, step)?;
            let Some((last, _)) = records.last() else { break };
            from = last + 1;
            for (n, bytes) in &records {
                sent.push(read(Key { space: Space::Sent, todo: no, n: *n }, bytes)?);
            }
        }
        Ok(sent)
    }

    /// Returns what a client sent in a todo as a tree. It is read in pieces, and holds no text.
    ///
    /// # Errors
    /// When there is no such todo, or a record is damaged.
    pub fn sent_tree(&self, todo: &TodoId) -> Result<SentTree, Error> {
        let mut tree = SentTree::default();
        loop {
            let sent = self.sent(todo, tree.next(), PER_READ)?;
            for one in &sent {
                tree.push_sent(one);
            }
            if sent.len() < PER_READ {
                return Ok(tree);
            }
        }
    }
}

fn read(key: Key, bytes: &[u8]) -> Result<Sent, Error> {
    let corrupt = |detail: &str| -> Error {
        foldback_kv::Error::Corrupt { key, detail: detail.to_owned() }.into()
    };
    let record: Record =
        rmp_serde::from_slice(bytes).map_err(|error| corrupt(&error.to_string()))?;
    let mut json = String::new();
    let unpacked = zstd::Decoder::new(&record.json[..]).map(|text| text.take(MOST));
    let read = unpacked.and_then(|mut text| text.read_to_string(&mut json));
    read.map_err(|error| corrupt(&error.to_string()))?;
    let recorded = record.first..record.first + record.count;
    Ok(Sent { parent: record.parent, recorded, tag: record.tag, json })
}

fn unwritten(_: impl std::error::Error) -> Error {
    Failure::Internal("a client's message cannot be packed").into()
}
