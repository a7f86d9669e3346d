//! The volumes, and the contents of each.

use super::Origin;
use crate::Error;
use crate::disk::{Damage, Folder, Indexed};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use xxhash_rust::xxh3::xxh3_64;

/// The beginning of a catalogue; its checksum follows, and then the catalogue as MessagePack. It changes with the
/// format of anything below.
const MAGIC: &[u8; 8] = b"fball-01";

const CATALOGUE: &str = "catalogue";

/// The list of volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Catalogue {
    /// The number of the next volume. No number is used twice.
    pub(super) next: u64,
    pub(super) volumes: Vec<Volume>,
    /// For each todo whose blocks are all in volumes, its head when that was so.
    pub(super) heads: FxHashMap<u32, u64>,
}

/// The contents of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Volume {
    pub(super) number: u64,
    /// Its blocks, in their order.
    pub(super) runs: Vec<Run>,
    /// The origins, to which the runs refer by position.
    pub(super) origins: Vec<Origin>,
}

/// Consecutive blocks of one todo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Run {
    /// The todo's number.
    pub(super) todo: u32,
    pub(super) first: u32,
    pub(super) last: u32,
    /// The message after the last block.
    pub(super) messages: u64,
    /// The position of the todo's origin.
    pub(super) origin: u32,
    /// How often the todo's vectors had been replaced.
    pub(super) generation: u32,
}

impl Run {
    pub(super) fn blocks(&self) -> u32 {
        (self.last + 1).saturating_sub(self.first)
    }
}

impl Volume {
    pub(super) fn blocks(&self) -> u32 {
        self.runs.iter().map(Run::blocks).sum()
    }

    /// Returns the todo of a block, and the number that it has there.
    pub(super) fn place(&self, block: u32) -> Option<(u32, u32)> {
        let mut before = 1;
        for run in &self.runs {
            if block < before + run.blocks() {
                return Some((run.todo, run.first + block.checked_sub(before)?));
            }
            before += run.blocks();
        }
        None
    }

    pub(super) fn holds(&self, is_wanted: impl Fn(u32) -> bool) -> bool {
        self.runs.iter().any(|run| is_wanted(run.todo))
    }
}

impl Catalogue {
    /// Reads the catalogue of the folder; it is empty if there is none.
    pub(super) fn read(folder: &Folder) -> Result<Self, Damage> {
        let bytes = match std::fs::read(path(folder)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(format!("the catalogue cannot be read: {error}")),
        };
        let other = || "the catalogue has another format".to_owned();
        let body = bytes.strip_prefix(MAGIC.as_slice()).ok_or_else(other)?;
        let (sum, body) = body.split_first_chunk::<8>().ok_or_else(other)?;
        if u64::from_le_bytes(*sum) != xxh3_64(body) {
            return Err("the checksum of the catalogue does not match".to_owned());
        }
        let opened = match folder.sealing() {
            None => Cow::Borrowed(body),
            Some(sealing) => {
                let opened = sealing.open(&CATALOGUE, body);
                Cow::Owned(opened.ok_or_else(|| "the catalogue cannot be decrypted".to_owned())?)
            }
        };
        rmp_serde::from_slice(&opened)
            .map_err(|error| format!("the catalogue cannot be read: {error}"))
    }

    /// Replaces the existing catalogue by this one, in one step.
    pub(super) fn write(&self, folder: &Folder) -> Result<(), Error> {
        let write = || {
            let mut body = rmp_serde::to_vec(self).map_err(std::io::Error::other)?;
            if let Some(sealing) = folder.sealing() {
                body = sealing.seal(&CATALOGUE, &body)?;
            }
            let new = path(folder).with_extension("new");
            let mut file = File::create(&new)?;
            file.write_all(MAGIC)?;
            file.write_all(&xxh3_64(&body).to_le_bytes())?;
            file.write_all(&body)?;
            file.sync_all()?;
            foldback_core::failpoint!("blockstore.catalogue.written");
            std::fs::rename(new, path(folder))?;
            foldback_core::failpoint!("blockstore.catalogue.renamed");
            File::open(folder.root())?.sync_all()
        };
        write().map_err(|error: std::io::Error| Error::Index {
            path: path(folder),
            doing: "written",
            detail: error.to_string(),
        })
    }

    /// Removes the volumes for which `goes` returns true; all their todos are examined again.
    pub(super) fn drop_where(&mut self, goes: impl Fn(&Volume) -> bool) -> Vec<u64> {
        let (gone, kept) = std::mem::take(&mut self.volumes).into_iter().partition(|v| goes(v));
        self.volumes = kept;
        let gone: Vec<Volume> = gone;
        for run in gone.iter().flat_map(|volume| &volume.runs) {
            self.heads.remove(&run.todo);
        }
        gone.iter().map(|volume| volume.number).collect()
    }

    /// Returns which blocks of which todos the volumes hold, leaving out the volumes in `without`.
    pub(super) fn covered(&self, without: &FxHashSet<u64>) -> Covered {
        let volumes = self.volumes.iter().filter(|volume| !without.contains(&volume.number));
        let mut by_todo: FxHashMap<u32, Vec<Run>> = FxHashMap::default();
        for run in volumes.flat_map(|volume| &volume.runs) {
            by_todo.entry(run.todo).or_default().push(*run);
        }
        by_todo.values_mut().for_each(|runs| runs.sort_unstable());
        Covered { by_todo }
    }
}

/// The blocks of each todo that are indexed.
#[derive(Default)]
pub(super) struct Covered {
    by_todo: FxHashMap<u32, Vec<Run>>,
}

impl Covered {
    /// Returns the blocks up to `last` that are not indexed.
    pub(super) fn missing(&self, todo: u32, last: u32) -> Vec<RangeInclusive<u32>> {
        let mut missing = Vec::new();
        let mut next = 1;
        for run in self.by_todo.get(&todo).into_iter().flatten() {
            if next < run.first && next <= last {
                missing.push(next..=last.min(run.first - 1));
            }
            next = next.max(run.last + 1);
        }
        if next <= last {
            missing.push(next..=last);
        }
        missing
    }

    /// Returns how many messages of a todo are in indexed blocks, if no blocks are left out.
    pub(super) fn messages(&self, todo: u32) -> u64 {
        let runs = self.by_todo.get(&todo).map(Vec::as_slice).unwrap_or_default();
        runs.last().map_or(0, |run| run.messages)
    }
}

/// Returns the file of the catalogue.
pub(super) fn path(folder: &Folder) -> PathBuf {
    folder.root().join(CATALOGUE)
}

/// Returns the folder of a volume.
pub(super) fn volume_folder(folder: &Folder, number: u64) -> Folder {
    let sealing = folder.sealing().map(|sealing| sealing.of(Indexed::Volume(number)));
    Folder::at(folder.root().join(number.to_string()), sealing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(todo: u32, first: u32, last: u32) -> Run {
        Run { todo, first, last, messages: u64::from(last) * 4, origin: 0, generation: 0 }
    }

    fn catalogue() -> Catalogue {
        let volume = |number, runs| Volume { number, runs, origins: vec![Origin::default()] };
        Catalogue {
            next: 3,
            volumes: vec![
                volume(1, vec![run(1, 1, 5), run(2, 1, 3)]),
                volume(2, vec![run(1, 6, 9), run(3, 1, 1)]),
            ],
            heads: [(1, 7), (2, 8), (3, 9)].into_iter().collect(),
        }
    }

    #[test]
    fn what_is_missing_is_what_no_volume_holds() {
        let catalogue = catalogue();
        let covered = catalogue.covered(&FxHashSet::default());
        assert_eq!(covered.missing(1, 9), []);
        assert_eq!(covered.missing(1, 12), [10..=12]);
        assert_eq!(covered.missing(4, 2), [1..=2]);
        assert_eq!((covered.messages(1), covered.messages(4)), (36, 0));
        let covered = catalogue.covered(&[1].into_iter().collect());
        assert_eq!(covered.missing(1, 12), [1..=5, 10..=12]);
        assert_eq!(covered.missing(1, 3), [1..=3]);
        let by_todo = [(1, vec![run(1, 2, 3), run(1, 6, 9)])].into_iter().collect();
        assert_eq!(Covered { by_todo }.missing(1, 3), [1..=1], "none that ends before it begins");
    }

    #[test]
    fn a_todo_of_a_dropped_volume_is_looked_at_again() {
        let mut catalogue = catalogue();
        assert_eq!(catalogue.drop_where(|volume| volume.holds(|todo| todo == 2)), [1]);
        assert_eq!(catalogue.volumes.len(), 1);
        assert_eq!(catalogue.heads, [(3, 9)].into_iter().collect());
    }

    #[test]
    fn no_flipped_byte_of_a_catalogue_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path().to_owned(), None);
        assert_eq!(Catalogue::read(&folder), Ok(Catalogue::default()));
        catalogue().write(&folder).unwrap();
        assert_eq!(Catalogue::read(&folder), Ok(catalogue()));
        let whole = std::fs::read(path(&folder)).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            std::fs::write(path(&folder), flipped).unwrap();
            assert!(Catalogue::read(&folder).is_err(), "byte {at}");
        }
    }
}
