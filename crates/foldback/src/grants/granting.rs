//! Grants on their way into a transaction.

use super::Grant;
use super::record::{Record, Slot, held, slots};
use crate::Error;
use crate::error::Failure;
use crate::memory::Shared;
use foldback_core::Reference;
use foldback_kv::{Key, Todo};
use std::collections::{BTreeMap, BTreeSet};

/// Grants that one transaction will record.
#[derive(Default)]
pub(crate) struct Granting {
    records: BTreeMap<Key, Record>,
    pub(crate) grants: Vec<Grant>,
    /// The todo that gives and the one that receives.
    pub(crate) todos: BTreeSet<Todo>,
}

impl Granting {
    /// Adds a grant, unless it already exists; with a block, also its payloads.
    pub(crate) fn add(
        &mut self,
        memory: &Shared,
        from: &Todo,
        to: &Todo,
        reference: &Reference,
    ) -> Result<(), Error> {
        let is_new = self.change(memory, from, to, reference, |record| {
            !std::mem::replace(&mut record.direct, true)
        })?;
        self.grants.extend(is_new);
        self.todos.extend([from.clone(), to.clone()]);
        let Reference::Block(id) = reference else { return Ok(()) };
        for payload in memory.payloads_in(from, id.n())? {
            self.change(memory, from, to, &payload, |record| {
                let is_new = !record.blocks.contains(&id.n());
                record.blocks.extend(is_new.then_some(id.n()));
                is_new
            })?;
        }
        Ok(())
    }

    /// Changes the record of a reference with both todos, creating it if there is none; returns the
    /// grant if `change` reports a change.
    fn change(
        &mut self,
        memory: &Shared,
        from: &Todo,
        to: &Todo,
        reference: &Reference,
        change: impl Fn(&mut Record) -> bool,
    ) -> Result<Option<Grant>, Error> {
        let mut granted = None;
        for holder in [from, to] {
            let wanted = Record {
                from: from.no(),
                to: to.no(),
                to_id: to.id().clone(),
                reference: reference.clone(),
                at: (memory.clock)().0,
                direct: false,
                blocks: Vec::new(),
            };
            let (slot, mut record) = self.slot(memory, holder, wanted)?;
            if change(&mut record) {
                granted = Some(record.grant());
                self.records.insert(slot, record);
            }
        }
        Ok(granted)
    }

    /// Returns where `holder` stores the record, or may store it, and the record as it is now.
    fn slot(&self, memory: &Shared, holder: &Todo, wanted: Record) -> Result<(Key, Record), Error> {
        let mut free = None;
        for key in slots(memory, holder.no(), &wanted)? {
            let held = match self.records.get(&key) {
                Some(record) => Slot::Held(record.clone()),
                None => held(memory, key)?,
            };
            match held {
                Slot::Held(record) if record.is_same(&wanted) => return Ok((key, record)),
                Slot::Free => free = free.or(Some(key)),
                Slot::Held(_) | Slot::Damaged => {}
            }
        }
        let free = free.ok_or(Failure::Internal("there is no number left for a grant"))?;
        Ok((free, wanted))
    }

    /// Returns what is to be written.
    pub(crate) fn puts(&self) -> Result<Vec<(Key, Vec<u8>)>, Error> {
        self.records.iter().map(|(key, record)| Ok((*key, record.to_bytes()?))).collect()
    }
}
