//! Compares the acknowledged commits with those that an engine holds: one promise for every engine.
//!
//! An engine writes the [`Link`] of each commit as part of it, and calls this module twice: before the commit, which is
//! refused if earlier ones are gone, and after it, once it is durable. Writes into files that nobody will find again
//! are not acknowledged.

#[cfg(any(feature = "sqlite", feature = "redb"))]
use crate::Batch;
use crate::place::Place;
use crate::witness::{self, Link, Witness};
use crate::{Error, Lost};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};

/// A writer's knowledge of the commits before its own.
pub(crate) struct Acknowledged {
    dir: PathBuf,
    /// `None` if the witness's file cannot be opened: then nothing is witnessed.
    witness: Option<Witness>,
    /// The engine's files, which must still be those that others open.
    places: Mutex<Vec<Place>>,
}

/// The last commit that an engine holds, or why the stored one is not valid.
pub(crate) type Held = Result<Link, String>;

impl Acknowledged {
    /// Opens the witness. This happens before the engine's files are opened, so that a file that is replaced meanwhile
    /// is noticed at the first commit.
    pub(crate) fn open(dir: &Path, places: Vec<Place>) -> Self {
        Self { dir: dir.to_owned(), witness: Witness::open(dir).ok(), places: Mutex::new(places) }
    }

    /// Returns the commit after which the next one may be written; [`Error::Lost`] if the engine does not hold the last
    /// acknowledged one.
    pub(crate) fn last(&self, held: Held) -> Result<Link, Error> {
        // A witness that cannot be read says nothing.
        let last = self.witness.as_ref().and_then(|witness| witness.last().ok()?);
        // The next commit repairs a damaged number.
        let held = held.unwrap_or_else(|_| last.unwrap_or_default());
        refuse(&self.dir, last.and_then(|last| last.lost_by(held)))?;
        Ok(held)
    }

    /// Acknowledges a durable commit; [`Error::Gone`] if nobody will find it.
    pub(crate) fn add(&self, link: Link) -> Result<(), Error> {
        foldback_core::failpoint!("kv.commit.durable");
        self.find_places()?;
        // The commit is durable even if this fails; a witness that is behind says less.
        if let Some(witness) = &self.witness {
            let _ = witness.write(link);
        }
        foldback_core::failpoint!("kv.commit.witnessed");
        Ok(())
    }

    /// Returns [`Error::Gone`] if the engine's files are no longer those that others open.
    pub(crate) fn find_places(&self) -> Result<(), Error> {
        let are_kept = self.places.lock().iter_mut().all(Place::is_kept);
        if are_kept { Ok(()) } else { Err(Error::Gone { path: self.dir.clone() }) }
    }

    /// Accepts the files at the paths as the engine's: it has put new ones there.
    #[cfg(any(feature = "redb", feature = "sled"))]
    pub(crate) fn renew_places(&self) {
        self.places.lock().iter_mut().for_each(Place::renew);
    }
}

/// Returns the acknowledged commits that the engine does not hold.
pub(crate) fn find_loss(
    dir: &Path,
    held: impl FnOnce() -> Result<Held, Error>,
) -> Result<Option<Lost>, Error> {
    // The witness is read first, so that commits made meanwhile are in the store by then.
    let Some(acknowledged) = witness::read(dir)? else { return Ok(None) };
    // A damaged number is a finding of its own, and says nothing about losses.
    Ok(held()?.ok().and_then(|held| acknowledged.lost_by(held)))
}

/// Sets the witness to the commit that the store holds.
pub(crate) fn accept_loss(dir: &Path, held: Held) -> Result<(), Error> {
    Witness::open(dir)?.accept(held.unwrap_or_default())
}

/// Returns [`Error::Lost`] if anything is lost.
pub(crate) fn refuse(dir: &Path, lost: Option<Lost>) -> Result<(), Error> {
    lost.map_or(Ok(()), |lost| Err(Error::Lost { path: dir.to_owned(), lost }))
}

/// Commits batches together, in one transaction of an engine. If that fails without a change, it commits each by
/// itself: what prevents one from being written, such as a disk that is too full for all of them, need not prevent the
/// others. `commit` returns an answer for each batch of its transaction.
#[cfg(any(feature = "sqlite", feature = "redb"))]
pub(crate) fn settle(
    dir: &Path,
    batches: &[Batch],
    is_poisoned: impl Fn() -> bool,
    mut commit: impl FnMut(&[Batch]) -> Result<Answers, Error>,
) -> Answers {
    let error = match commit(batches) {
        Ok(answers) => return answers,
        Err(error) => error,
    };
    if batches.len() > 1 && !is_poisoned() {
        let alone = batches.iter().map(|batch| commit(std::slice::from_ref(batch)));
        return alone
            .flat_map(|answers| answers.unwrap_or_else(|error| vec![Err(error)]))
            .collect();
    }
    let for_others = (1..batches.len()).map(|_| Err(error.repeated(dir))).collect::<Answers>();
    std::iter::once(Err(error)).chain(for_others).collect()
}

/// The outcome of each batch of a transaction.
#[cfg(any(feature = "sqlite", feature = "redb"))]
pub(crate) type Answers = Vec<Result<(), Error>>;

#[cfg(all(test, any(feature = "sqlite", feature = "redb")))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io;

    fn full() -> Error {
        Error::Full { path: "store".into() }
    }

    fn said(answers: &Answers) -> Vec<&'static str> {
        let word = |answer: &Result<(), Error>| match answer {
            Ok(()) => "ok",
            Err(Error::Full { .. }) => "full",
            Err(Error::Io { .. }) => "io",
            Err(Error::Poisoned { .. }) => "poisoned",
            Err(_) => "other",
        };
        answers.iter().map(word).collect()
    }

    /// R3: when a transaction of several batches fails without a change, each batch is committed by itself, and gets
    /// its own answer.
    #[test]
    fn r3_what_fails_together_is_tried_alone() {
        let batches = vec![Batch::default(); 3];
        let calls = Cell::new(0);
        let answers = settle(
            Path::new("store"),
            &batches,
            || false,
            |batches| {
                calls.set(calls.get() + 1);
                // There is no room for both together, and none for the second alone.
                if batches.len() > 1 || calls.get() == 3 { Err(full()) } else { Ok(vec![Ok(())]) }
            },
        );
        assert_eq!((said(&answers), calls.get()), (vec!["ok", "full", "ok"], 4));
    }

    /// R3: when the outcome of a transaction is unknown, each batch gets the same error, and none is tried again.
    #[test]
    fn r3_what_may_be_durable_is_not_tried_again() {
        let (is_poisoned, calls) = (Cell::new(false), Cell::new(0));
        let broken = || Error::Io {
            doing: "write",
            path: "store".into(),
            source: io::Error::from_raw_os_error(5),
        };
        let commit = |_: &[Batch]| {
            is_poisoned.set(true);
            calls.set(calls.get() + 1);
            Err(broken())
        };
        let batches = vec![Batch::default(); 3];
        let answers = settle(Path::new("store"), &batches, || is_poisoned.get(), commit);
        assert_eq!((said(&answers), calls.get()), (vec!["io"; 3], 1));
        // If the store is poisoned half way, the remaining batches get the engine's answer.
        let calls = Cell::new(0);
        let answers = settle(
            Path::new("store"),
            &batches,
            || false,
            |batches| {
                calls.set(calls.get() + 1);
                match (batches.len(), calls.get()) {
                    (1, 2) => Ok(vec![Ok(())]),
                    (1, 3) => Err(broken()),
                    (1, _) => Err(Error::Poisoned { path: "store".into() }),
                    _ => Err(full()),
                }
            },
        );
        assert_eq!(said(&answers), ["ok", "io", "poisoned"]);
    }
}
