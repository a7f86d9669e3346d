//! The changes of batches within one redb transaction.

use crate::acknowledged::{Acknowledged, Answers, Held};
use crate::witness::Link;
use crate::{Batch, DAMAGED_HEAD, Delete, Error, Expect, Key, missing_head, ordered, record};
use ::redb::{ReadableTable, Table};

/// The link of the last batch that was written, if there is any, and the outcome of each batch.
pub(super) type Written = (Option<Link>, Answers);

/// Makes the changes of the batches that find the heads that they expect, if nothing is lost.
pub(super) fn change(
    records: &mut Table<'_, &'static ordered::Bytes, &'static [u8]>,
    acknowledged: &Acknowledged,
    batches: &[Batch],
) -> Result<Result<Written, Error>, ::redb::Error> {
    let held = match acknowledged.last(last_commit(records)?) {
        Ok(held) => held,
        Err(lost) => return Ok(Err(lost)),
    };
    let mut link = held;
    let mut answers = Vec::with_capacity(batches.len());
    for batch in batches {
        let answer = change_one(records, batch)?;
        if answer.is_ok() {
            link = link.next(batch);
        }
        answers.push(answer);
    }
    if link == held {
        return Ok(Ok((None, answers)));
    }
    records.insert(&ordered::LINK, &*link.seal())?;
    foldback_core::failpoint!("kv.commit.applied");
    Ok(Ok((Some(link), answers)))
}

/// Makes the changes of a batch, if the head is the expected one.
fn change_one(
    records: &mut Table<'_, &'static ordered::Bytes, &'static [u8]>,
    batch: &Batch,
) -> Result<Result<(), Error>, ::redb::Error> {
    if let Some(expect) = batch.expect {
        let Expect { todo, head: expected, .. } = expect;
        match head_in(records, todo)? {
            Ok(found) if found == expected => {}
            Ok(found) => return Ok(Err(Error::Conflict { todo, expected, found })),
            Err(error) => return Ok(Err(error)),
        }
        match expect.stored() {
            None => drop(records.remove(&ordered::head(todo))?),
            Some(next) => {
                records.insert(&ordered::head(todo), &*record::seal_head(todo, next))?;
            }
        }
    }
    for Delete { space, todo, range } in &batch.delete {
        // The batch was checked.
        if let Ok(Some(span)) = Key::span(*space, *todo, range) {
            let range = ordered::span(*space, *todo, &span);
            records.retain_in::<&ordered::Bytes, _>(range.start()..=range.end(), |_, _| false)?;
        }
    }
    for (key, value) in &batch.put {
        records.insert(&ordered::of(*key), &*record::seal(*key, value))?;
    }
    Ok(Ok(()))
}

pub(super) fn last_commit(
    records: &impl ReadableTable<&'static ordered::Bytes, &'static [u8]>,
) -> Result<Held, ::redb::Error> {
    let stored = records.get(&ordered::LINK)?;
    Ok(ordered::open_link(stored.as_ref().map(|stored| stored.value())))
}

pub(super) fn head_in(
    records: &impl ReadableTable<&'static ordered::Bytes, &'static [u8]>,
    todo: u32,
) -> Result<Result<u64, Error>, ::redb::Error> {
    let stored = |todo| {
        let stored = records.get(&ordered::head(todo))?;
        let head = stored.map(|stored| record::open_head(todo, stored.value()));
        Ok::<_, ::redb::Error>(head)
    };
    if let Some(head) = stored(todo)? {
        return Ok(head.map_err(|detail| Error::CorruptHead { todo, detail }));
    }
    let head = |todo| Ok(stored(todo)?.map_or(0, |head| head.unwrap_or(DAMAGED_HEAD)));
    missing_head(todo, head, |key| Ok(records.get(&ordered::of(key))?.is_some())).map(Ok)
}
