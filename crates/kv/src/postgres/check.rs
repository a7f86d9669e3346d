//! Checks every row. The server checks its own pages, if it was set up with checksums.

use super::slot::Slots;
use super::{Postgres, head, walk};
use crate::{Error, Finding, Key, Kv as _, Space, record};

impl Postgres {
    pub(super) fn find_damage(&self) -> Result<Vec<Finding>, Error> {
        let mut findings: Vec<Finding> = self.lost()?.map(Finding::Lost).into_iter().collect();
        walk::records(
            self.slots,
            |step| self.pool.ask(step),
            |(place, stored)| {
                findings.extend(match key_of(self.slots, place) {
                    Some(key) => record::check(key, &stored)
                        .err()
                        .map(|detail| Finding::Record { key, detail }),
                    None => Some(out_of_place("record", &place)),
                });
                Ok(())
            },
        )?;
        walk::heads(
            self.slots,
            |step| self.pool.ask(step),
            |[of_slot, todo, value, checksum]| {
                let of_todo = u32::try_from(todo).ok();
                let of_todo = of_todo.filter(|todo| i64::from(self.slots.of(*todo)) == of_slot);
                findings.extend(match of_todo {
                    Some(todo) => head::open(todo, value, checksum)
                        .err()
                        .map(|detail| Finding::Head { todo, detail }),
                    None => Some(out_of_place("head", &[of_slot, todo])),
                });
                Ok(())
            },
        )?;
        findings.sort();
        findings.dedup();
        Ok(findings)
    }
}

/// Returns the key of a row, if it is where it belongs.
pub(super) fn key_of(slots: Slots, [of_slot, todo, space, n]: [i64; 4]) -> Option<Key> {
    let space = u8::try_from(space).ok().and_then(Space::from_number)?;
    let key = Key { space, todo: u32::try_from(todo).ok()?, n: u64::try_from(n).ok()? };
    let is_in_place = key.check().is_ok() && i64::from(slots.of(key.todo)) == of_slot;
    is_in_place.then_some(key)
}

fn out_of_place(what: &str, place: &[i64]) -> Finding {
    let place = place.iter().map(ToString::to_string).collect::<Vec<_>>().join("/");
    Finding::Engine {
        detail: format!("the row {place} of a {what} is where no {what} is looked for"),
    }
}
