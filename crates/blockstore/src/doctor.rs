//! An exhaustive check of one todo.

mod index;

use self::index::examine_index;
use crate::Error;
use crate::block_text::light_json;
use crate::cache::Cache;
use crate::disk::{Graph, IndexWriter, Lock};
use crate::index_copy::is_damaged;
use crate::records::Records;
use crate::vectors;
use foldback_core::{Block, Message, StoredMessage};
use foldback_kv::{Key, Space, Todo};
use std::collections::BTreeMap;
use std::fmt;

/// The number of records examined in one step.
const STEP: u64 = 1_024;

/// A defect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// What is wrong, as a sentence.
    pub detail: String,
    /// Whether it has been repaired.
    pub repaired: bool,
}

/// The subject of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// The count of the todo's messages.
    Head,
    /// A message is missing or damaged, or is beyond the head.
    Message,
    /// A block is missing or damaged, or blocks do not partition the messages before the open tail.
    Block,
    /// The vectors of a message are damaged, or belong to no message.
    Vector,
    /// The session's state is missing or damaged.
    Session,
    /// An index is damaged. Searches skip it.
    IndexDamaged,
    /// An index differs from the truth, though it is intact.
    IndexDiffers,
    /// An index holds blocks that the truth does not: acknowledged writes are lost, or the store was replaced by
    /// another copy of itself.
    IndexAhead,
}

impl FindingKind {
    /// Returns whether the finding is about derived data, which can be rebuilt.
    #[must_use]
    pub fn is_derived(self) -> bool {
        matches!(self, Self::IndexDamaged | Self::IndexDiffers | Self::IndexAhead)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        if self.repaired { f.write_str(" (repaired)") } else { Ok(()) }
    }
}

/// Returns the findings about one todo.
pub(crate) fn examine(
    records: &Records,
    cache: &Cache,
    todo: &Todo,
    repair: bool,
) -> Result<Vec<Finding>, Error> {
    let mut findings = Findings(Vec::new());
    examine_truth(records, todo, &mut findings)?;
    let damaged = examine_index(records, cache, todo, &mut findings)?;
    if is_damaged(records, todo, repair)? {
        let detail = "the copy of the index for other machines is damaged".to_owned();
        findings.0.push(Finding { kind: FindingKind::IndexDamaged, detail, repaired: repair });
    }
    if let Some(damaged) = damaged.filter(|_| repair) {
        let Some(folder) = cache.folder(todo) else { return Ok(findings.0) };
        match damaged {
            Derived::Index => {
                let Some(lock) = Lock::take(&folder)? else { return Ok(findings.0) };
                let writer = IndexWriter::new(&lock, &folder, records, todo);
                writer.clear()?;
                let last = records.last_block_n(todo)?;
                if cache.is_worth_an_index(todo, last)? {
                    writer.append(None, last, &|| false)?;
                }
            }
            Derived::Graph => {
                let Some(_lock) = Lock::take_graph(&folder)? else { return Ok(findings.0) };
                Graph::remove(&folder).map_err(|error| Error::Index {
                    path: folder.root().to_owned(),
                    doing: "cleared of its graph",
                    detail: error.to_string(),
                })?;
            }
        }
        cache.drop_slot(todo);
        for finding in findings.0.iter_mut().filter(|finding| finding.kind.is_derived()) {
            finding.repaired = true;
        }
    }
    Ok(findings.0)
}

/// The derived data that is damaged. A graph alone is rebuilt by upkeep, since that takes long and searches do
/// without it.
enum Derived {
    Index,
    Graph,
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, kind: FindingKind, detail: impl Into<String>) {
        self.0.push(Finding { kind, detail: detail.into(), repaired: false });
    }
}

/// What is written during the examination is left for the next one: it first determines how far everything goes, the
/// blocks before the messages that they consist of, and looks no further.
fn examine_truth(records: &Records, todo: &Todo, findings: &mut Findings) -> Result<(), Error> {
    let last = records.last_block_n(todo)?;
    let head = match records.head(todo) {
        Ok(head) => head.messages,
        Err(error) => {
            findings.add(FindingKind::Head, error.to_string());
            return Ok(());
        }
    };
    let mut from = 0;
    while from < head {
        let to = head.min(from + STEP);
        let found: BTreeMap<u64, Vec<u8>> =
            records.scan_around(todo, Space::Message, from..to)?.into_iter().collect();
        for seq in from..to {
            if let Err(what) = examine_message(found.get(&seq)) {
                findings.add(FindingKind::Message, format!("message {seq} {what}"));
            }
        }
        from = to;
    }
    if let Some((seq, _)) = records.scan_around_one(todo, Space::Message, head)?
        && !is_within_head(records, todo, seq)
    {
        findings.add(
            FindingKind::Message,
            format!("message {seq} exists, but the todo holds {head} messages"),
        );
    }
    examine_blocks(records, todo, last, head, findings)?;
    examine_vectors(records, todo, head, findings)?;
    match records.session(todo) {
        Ok(None) if head > 0 => {
            findings.add(FindingKind::Session, "the state of the session is missing");
        }
        Err(error) => findings.add(FindingKind::Session, error.to_string()),
        Ok(_) => {}
    }
    Ok(())
}

/// Returns whether the todo holds a message of this number by now.
fn is_within_head(records: &Records, todo: &Todo, seq: u64) -> bool {
    records.head(todo).is_ok_and(|head| seq < head.messages)
}

fn examine_message(record: Option<&Vec<u8>>) -> Result<(), String> {
    let record = record.ok_or("is missing or damaged")?;
    let stored: StoredMessage =
        rmp_serde::from_slice(record).map_err(|error| format!("cannot be read: {error}"))?;
    // Holes are filled with nothing here; the result is still a message.
    Message::from_json(&light_json(&stored))
        .map(drop)
        .map_err(|error| format!("is not a message: {error}"))
}

fn examine_blocks(
    records: &Records,
    todo: &Todo,
    last: u32,
    head: u64,
    findings: &mut Findings,
) -> Result<(), Error> {
    let last = u64::from(last);
    let mut next = Some(0);
    let mut from = 1;
    while from <= last {
        let to = (last + 1).min(from + STEP);
        let found: BTreeMap<u64, Vec<u8>> =
            records.scan_around(todo, Space::Block, from..to)?.into_iter().collect();
        for n in from..to {
            let Some(record) = found.get(&n) else {
                findings.add(FindingKind::Block, format!("block {n} is missing or damaged"));
                next = None;
                continue;
            };
            let block: Block = match rmp_serde::from_slice(record) {
                Ok(block) => block,
                Err(error) => {
                    findings.add(FindingKind::Block, format!("block {n} cannot be read: {error}"));
                    next = None;
                    continue;
                }
            };
            let id = &block.header.block_id;
            if u64::from(id.n()) != n
                || id.todo() != todo.id()
                || block.header.todo_id != *todo.id()
            {
                findings
                    .add(FindingKind::Block, format!("the record of block {n} belongs to {id}"));
            }
            let (first, end) = (block.range.first().0, block.range.last().0 + 1);
            if next.is_some_and(|next| next != first) {
                let next = next.unwrap_or(0);
                findings.add(
                    FindingKind::Block,
                    format!("block {id} begins at message {first}, but {next} was expected"),
                );
            }
            if end > head {
                findings.add(
                    FindingKind::Block,
                    format!("block {id} ends after the last message, {head}"),
                );
            }
            next = Some(end);
        }
        from = to;
    }
    Ok(())
}

fn examine_vectors(
    records: &Records,
    todo: &Todo,
    head: u64,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut from = 0;
    while from < Key::N_END {
        let mut after = Key::N_END;
        match records.scan(todo, Space::Vector, from..Key::N_END, STEP as usize) {
            Ok(found) => {
                if let Some((seq, _)) = found.last().filter(|_| found.len() as u64 == STEP) {
                    after = seq + 1;
                }
                for (seq, record) in &found {
                    if *seq >= head && !is_within_head(records, todo, *seq) {
                        findings.add(
                            FindingKind::Vector,
                            format!("there are vectors of message {seq}, which does not exist"),
                        );
                    }
                    if let Err(what) = vectors::decode(record) {
                        let what = format!("the vectors of message {seq} cannot be read: {what}");
                        findings.add(FindingKind::Vector, what);
                    }
                }
            }
            Err(Error::Corrupt { key, detail, .. }) if key.n >= from => {
                let seq = key.n;
                findings.add(
                    FindingKind::Vector,
                    format!("the vectors of message {seq} are damaged: {detail}"),
                );
                // The part before it is examined once more, up to it.
                for (seq, record) in records.scan_around(todo, Space::Vector, from..seq)? {
                    if let Err(what) = vectors::decode(&record) {
                        let what = format!("the vectors of message {seq} cannot be read: {what}");
                        findings.add(FindingKind::Vector, what);
                    }
                }
                after = seq + 1;
            }
            Err(error) => return Err(error),
        }
        from = after;
    }
    Ok(())
}
