//! The commits that this folder knows were acknowledged.
//!
//! A server keeps what it acknowledged, unless it is set up not to: a standby that was behind takes over, or an older
//! backup is restored. So the file `WITNESS` of the folder remembers the last commit of each slot that was acknowledged
//! to a process that uses the folder; another machine remembers its own. If the database is behind, it takes no writes
//! until the loss is accepted.

use crate::error::writing;
use crate::witness::{self, Link, Witness};
use crate::{Error, Lost};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};

pub(super) struct Known {
    dir: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    /// `None` if nothing can be written in the folder; then nothing is remembered beyond this process.
    witness: Option<Witness>,
    slots: Vec<Link>,
    /// How often a loss was accepted in the folder.
    accepted: u64,
}

impl Known {
    /// Reads what the folder knows, and with `keeps` writes into it from now on.
    pub(super) fn open(dir: Option<&Path>, keeps: bool) -> Result<Self, Error> {
        let (slots, accepted) = dir.map_or(Ok((Vec::new(), 0)), witness::slots)?;
        let witness = dir.filter(|_| keeps).and_then(|dir| Witness::open(dir).ok());
        let state = Mutex::new(State { witness, slots, accepted });
        Ok(Self { dir: dir.map(Path::to_owned), state })
    }

    /// Returns the last acknowledged commit of a slot.
    pub(super) fn of(&self, slot: usize) -> Link {
        self.state.lock().slots.get(slot).copied().unwrap_or_default()
    }

    /// Remembers a commit that is about to be acknowledged.
    pub(super) fn note(&self, slot: usize, link: Link) {
        let mut state = self.state.lock();
        if state.slots.len() <= slot {
            state.slots.resize(slot + 1, Link::default());
        }
        let is_newer = state.slots.get(slot).is_none_or(|known| known.number < link.number);
        if is_newer {
            state.slots[slot] = link;
            // The commit is durable even if this fails; what is not written says less.
            if let Some(witness) = &state.witness {
                let _ = witness.write_at(slot as u64, link);
            }
        }
    }

    /// Returns what is lost in a database, if anything. `held` returns the last commit of each slot; it is asked after
    /// the folder, so that a commit made meanwhile is in its answer.
    pub(super) fn loss(
        &self,
        held: impl FnOnce() -> Result<Vec<(usize, Link)>, Error>,
    ) -> Result<Option<Lost>, Error> {
        // Other processes may have written into the folder.
        let of_folder = self.dir.as_deref().map(witness::slots).transpose()?;
        let (of_folder, own) = {
            let mut state = self.state.lock();
            let (of_folder, accepted) = of_folder.unwrap_or((Vec::new(), state.accepted));
            if accepted > state.accepted {
                // Another process has accepted a loss, which this one must forget, too.
                (state.slots, state.accepted) = (of_folder.clone(), accepted);
            }
            (of_folder, state.slots.clone())
        };
        let held = held()?;
        let (mut lost, mut acknowledged, mut there) = (false, 0, 0);
        for at in 0..of_folder.len().max(own.len()).max(super::slot::SLOTS as usize) {
            let of = |known: &[Link]| known.get(at).copied().unwrap_or_default();
            let known =
                if of(&of_folder).number > of(&own).number { of(&of_folder) } else { of(&own) };
            let found = held.iter().find(|(slot, _)| *slot == at);
            let found = found.map_or(Link::default(), |(_, link)| *link);
            let is_lost = known.lost_by(found).is_some();
            lost |= is_lost;
            acknowledged += if is_lost { known.number } else { found.number };
            there += found.number;
        }
        Ok(lost.then_some(Lost { acknowledged, held: there }))
    }

    /// Forgets all commits but those that the database holds.
    pub(super) fn accept(&self, held: &[(usize, Link)]) -> Result<(), Error> {
        let mut state = self.state.lock();
        state.slots.clear();
        let Some(witness) = &state.witness else { return Ok(()) };
        witness.accept(Link::default())?;
        for (slot, link) in held {
            witness.write_at(*slot as u64, *link)?;
        }
        // Others must find what this process forgot.
        let Some(dir) = &self.dir else { return Ok(()) };
        witness.count_acceptance(witness::slots(dir)?.1)?;
        let path = dir.join("WITNESS");
        let synced = std::fs::File::open(&path).and_then(|file| file.sync_all());
        synced.map_err(writing("sync", &path))?;
        (state.slots, state.accepted) = witness::slots(dir)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R4: a database that has fewer commits of a slot than the folder, or another one, has lost writes.
    #[test]
    fn r4_a_database_that_is_behind_its_folder_has_lost_writes() {
        let dir = tempfile::tempdir().unwrap();
        let known = Known::open(Some(dir.path()), true).unwrap();
        let held = |number, digest| {
            move || Ok(vec![(3_usize, Link::new(number, digest)), (9, Link::new(2, 0))])
        };
        assert_eq!(known.loss(held(0, 0)).unwrap(), None, "nothing was acknowledged here");
        known.note(3, Link::new(7, 70));
        known.note(3, Link::new(6, 60));
        let again = Known::open(Some(dir.path()), false).unwrap();
        for known in [&known, &again] {
            assert_eq!(known.of(3), Link::new(7, 70));
            assert_eq!(known.loss(held(7, 70)).unwrap(), None);
            assert_eq!(known.loss(held(8, 0)).unwrap(), None);
            assert_eq!(known.loss(held(5, 50)).unwrap(), Some(Lost { acknowledged: 9, held: 7 }));
            assert_eq!(known.loss(held(7, 71)).unwrap(), Some(Lost { acknowledged: 9, held: 9 }));
        }
        known.accept(&held(5, 50)().unwrap()).unwrap();
        assert_eq!(known.of(3), Link::new(5, 50));
        assert_eq!(known.loss(held(5, 50)).unwrap(), None);
        assert_eq!(Known::open(Some(dir.path()), false).unwrap().of(9), Link::new(2, 0));
    }
}
