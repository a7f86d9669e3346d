//! The check of one todo's index.

use super::{Derived, FindingKind, Findings};
use crate::Error;
use crate::block_doc::BlockDoc;
use crate::cache::{Cache, stamp};
use crate::disk::{DiskIndex, Fit, Folder, Graph, NewCodes};
use crate::records::{Records, pages};
use foldback_kv::Todo;
use rustc_hash::FxHashSet;
use std::thread;
use std::time::Duration;

/// How often an index that seems to lack something is examined again, if others were at work on it meanwhile.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Compares the index with the truth, and its graph with its checksums. A difference seen while vectors are replaced or
/// the index is rebuilt is not a finding, and is examined again.
pub(super) fn examine_index(
    records: &Records,
    cache: &Cache,
    todo: &Todo,
    findings: &mut Findings,
) -> Result<Option<Derived>, Error> {
    let Some(folder) = cache.folder(todo) else { return Ok(None) };
    let state = || Ok::<_, Error>((records.vector_state(todo)?, stamp(&folder)));
    for tries in 1.. {
        let before = state()?;
        let Some((kind, what, derived)) = compare_index(records, &folder, todo)? else { break };
        if tries == TRIES || before == state()? {
            findings.add(kind, what);
            return Ok(Some(derived));
        }
        thread::sleep(PAUSE);
    }
    Ok(None)
}

/// What is wrong with an index, and which part of it is to be rebuilt.
fn compare_index(
    records: &Records,
    folder: &Folder,
    todo: &Todo,
) -> Result<Option<(FindingKind, String, Derived)>, Error> {
    if records.vector_state(todo)?.indexes_stale {
        // Its vectors are being replaced; then it is rebuilt.
        return Ok(None);
    }
    let index = match DiskIndex::open(folder, todo.no(), None) {
        Ok(None) => return Ok(None),
        Ok(Some(index)) => index,
        Err(damage) => {
            let what = format!("the index is damaged: {damage}");
            return Ok(Some((FindingKind::IndexDamaged, what, Derived::Index)));
        }
    };
    let what = match index.fit(records, todo)? {
        Fit::Fits => {
            if let Some(what) = difference(records, todo, &index)? {
                return Ok(Some((FindingKind::IndexDiffers, what, Derived::Index)));
            }
            let Err(damage) = Graph::verify(folder, &index.codes) else { return Ok(None) };
            let what = format!("the graph over the vectors of the index is damaged: {damage}");
            return Ok(Some((FindingKind::IndexDamaged, what, Derived::Graph)));
        }
        // It is not searched, and upkeep makes it again.
        Fit::Outdated => return Ok(None),
        Fit::Ahead { index, truth } => format!(
            "the index holds {index} blocks and the store {truth}: acknowledged blocks are lost"
        ),
        Fit::Foreign { block } => {
            format!("block {block} of the index is not that of the store: the store was replaced")
        }
    };
    Ok(Some((FindingKind::IndexAhead, what, Derived::Index)))
}

/// Returns the first difference between an index and the truth.
fn difference(records: &Records, todo: &Todo, index: &DiskIndex) -> Result<Option<String>, Error> {
    let mut from = 1;
    let mut codes = NewCodes::default();
    let mut known: FxHashSet<u64> = FxHashSet::default();
    while from <= index.blocks() {
        let to = index.blocks().min(from.saturating_add(4_095));
        let mut terms = match index.terms_of(from..=to) {
            Ok(terms) => terms,
            Err(damage) => return Ok(Some(format!("the index cannot be read: {damage}"))),
        };
        let passages = index.passages();
        let mut place = passages.partition_point(|meta| meta.block < from);
        let end = passages.partition_point(|meta| meta.block <= to);
        let mut passage_terms = match index.passage_terms_of(place as u32..end as u32) {
            Ok(terms) => terms,
            Err(damage) => return Ok(Some(format!("the index cannot be read: {damage}"))),
        };
        let mut wrong = None;
        for page in pages(from..=to) {
            let mut new = Vec::new();
            for doc in records.block_docs(todo, page)? {
                codes.push(&doc);
                let payloads = doc.payloads.iter().filter(|payload| known.insert(payload.n));
                new.extend(payloads.map(|payload| (doc.n, *payload)));
                let carried = doc.carried();
                let BlockDoc { n, meta, terms: truth, .. } = doc;
                let indexed = terms.remove(&n).unwrap_or_default();
                let same = indexed.len() == truth.len()
                    && indexed.into_iter().eq(truth)
                    && index.carried.payloads_of(n) == carried;
                if wrong.is_none() && !(same && index.meta(n) == Some(meta)) {
                    let what = format!("data of block {n} that differ from the store");
                    wrong = Some(format!("the index holds {what}"));
                }
            }
            records.passage_docs(todo, &new, |doc| {
                let (n, payload) = (doc.meta.block, doc.meta.payload);
                let indexed = passage_terms.remove(&(place as u32)).unwrap_or_default();
                let is_same =
                    passages.get(place) == Some(&doc.meta) && indexed.into_iter().eq(doc.terms);
                place += 1;
                if wrong.is_none() && !is_same {
                    let what = format!("data of payload {payload} of block {n}");
                    wrong = Some(format!("the index holds {what} that differ from the store"));
                }
                true
            })?;
        }
        if wrong.is_none() && place != end {
            wrong = Some("the index holds passages of payloads that the store does not".to_owned());
        }
        if wrong.is_some() {
            return Ok(wrong);
        }
        let Some(next) = to.checked_add(1) else { break };
        from = next;
    }
    if !codes.are(&index.codes) {
        return Ok(Some("the vectors of the index differ from those of the store".to_owned()));
    }
    Ok(None)
}
