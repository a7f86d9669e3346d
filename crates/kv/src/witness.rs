//! A witness of the last commits, outside the engine.
//!
//! An engine whose log has lost its end answers from what is left, as if the missing commits had never been made. So
//! every commit has a number, and a digest that is chained over all commits. Both are kept twice: in the transaction of
//! the commit itself and, once that is durable, in the file `WITNESS` of the store's folder. A witness that is ahead of
//! the engine shows that acknowledged commits are gone.
//!
//! The file is not synced, so it costs microseconds. After a power cut it may be behind or torn; then it says less, but
//! nothing wrong. It is 64 slots of 24 bytes, and a commit goes into the slot of its number modulo 64, so two processes
//! that write their numbers out of order do not overwrite each other. After them, the folder of a database on a server
//! has one more slot, whose number counts how often a loss was accepted.
//!
//! | bytes of a slot | what |
//! |---|---|
//! | 8 | the commit's number, little endian, from 1; 0 in an unused slot |
//! | 8 | its digest: xxh3-64 over the previous digest and the batch |
//! | 8 | xxh3-64 over the first 16 bytes |

use crate::error::{reading, writing};
use crate::{Batch, Error, Finding, Lost, folder, record};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const FILE: &str = "WITNESS";
const SLOTS: u64 = 64;
const SLOT_BYTES: usize = 24;
const LINK_BYTES: usize = 16;
const FILE_BYTES: usize = SLOTS as usize * SLOT_BYTES;

/// The witness file, open for writing.
pub(crate) struct Witness {
    file: File,
    path: PathBuf,
}

impl Witness {
    /// Opens the file in the store's folder, and creates it durably if there is none: what a power cut leaves of the
    /// first commit is then known not to be acknowledged. All of its space is allocated at once, so that a disk that
    /// fills up later does not matter; on one that is already full, there is no witness.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(writing("open", &path))?;
        let length = file.seek(SeekFrom::End(0)).map_err(writing("measure", &path))?;
        let missing = FILE_BYTES.saturating_sub(usize::try_from(length).unwrap_or(FILE_BYTES));
        if missing > 0 && file.write_all(&vec![0; missing]).is_ok() {
            file.sync_all().map_err(writing("sync", &path))?;
            folder::sync(dir)?;
        }
        Ok(Self { file, path })
    }

    /// Returns the last commit that the file knows of, or `None`.
    pub(crate) fn last(&self) -> Result<Option<Link>, Error> {
        let mut file = &self.file;
        let read = file.rewind().and_then(|()| newest(file));
        read.map_err(reading("read", &self.path))
    }

    /// Records a durable commit.
    pub(crate) fn write(&self, link: Link) -> Result<(), Error> {
        self.write_at(link.number % SLOTS, link)
    }

    /// Records a durable commit in one of the 64 slots.
    pub(crate) fn write_at(&self, at: u64, link: Link) -> Result<(), Error> {
        self.put(at % SLOTS, link)
    }

    /// Counts that a loss was accepted, so that other processes forget what this one has forgotten.
    #[cfg(feature = "postgres")]
    pub(crate) fn count_acceptance(&self, before: u64) -> Result<(), Error> {
        self.put(SLOTS, Link { number: before + 1, digest: 0 })
    }

    fn put(&self, at: u64, link: Link) -> Result<(), Error> {
        let mut slot = [0; SLOT_BYTES];
        slot[..LINK_BYTES].copy_from_slice(&link.bytes());
        slot[LINK_BYTES..].copy_from_slice(&xxh3_64(&link.bytes()).to_le_bytes());
        let mut file = &self.file;
        let written =
            file.seek(SeekFrom::Start(at * SLOT_BYTES as u64)).and_then(|_| file.write_all(&slot));
        written.map_err(writing("write", &self.path))
    }

    /// Forgets every commit but this one, durably.
    pub(crate) fn accept(&self, link: Link) -> Result<(), Error> {
        let mut file = &self.file;
        let emptied = file.rewind();
        let emptied = emptied.and_then(|()| file.write_all(&[0; FILE_BYTES]));
        emptied.map_err(writing("write", &self.path))?;
        self.write(link)?;
        self.file.sync_all().map_err(writing("sync", &self.path))
    }
}

/// Returns the last commit that the witness in a folder knows of; `None` if there is no witness, or it knows of none.
pub(crate) fn read(dir: &Path) -> Result<Option<Link>, Error> {
    let path = dir.join(FILE);
    let found = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|file| newest(&file)),
    };
    found.map_err(reading("read", &path))
}

/// Returns the commit in each slot of the witness in a folder, none in a slot that is unused or damaged, and how often a
/// loss was accepted in it.
#[cfg(feature = "postgres")]
pub(crate) fn slots(dir: &Path) -> Result<(Vec<Link>, u64), Error> {
    let path = dir.join(FILE);
    let read = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        opened => opened.and_then(|file| each(&file, SLOTS + 1)),
    };
    let mut slots: Vec<_> =
        read.map_err(reading("read", &path))?.into_iter().map(Option::unwrap_or_default).collect();
    let accepted = slots.drain(slots.len().min(SLOTS as usize)..).next();
    Ok((slots, accepted.unwrap_or_default().number))
}

/// Returns whether a folder has a witness, which may know of no commit yet.
#[cfg(feature = "sqlite")]
pub(crate) fn is_there(dir: &Path) -> bool {
    std::fs::metadata(dir.join(FILE)).is_ok_and(|file| file.len() >= FILE_BYTES as u64)
}

fn newest(file: &File) -> io::Result<Option<Link>> {
    Ok(each(file, SLOTS)?.into_iter().flatten().max_by_key(|link| link.number))
}

/// Returns the commit in each of the first slots that is in use and sound.
fn each(file: &File, count: u64) -> io::Result<Vec<Option<Link>>> {
    let mut slots = Vec::new();
    // Bounded, because a file of this name may be anything.
    file.take(count * SLOT_BYTES as u64).read_to_end(&mut slots)?;
    let link = |slot: &[u8]| {
        let (link, sum) = slot.split_at(LINK_BYTES);
        let link = (xxh3_64(link).to_le_bytes() == sum).then(|| Link::of(link)).flatten();
        link.filter(|link| link.number > 0)
    };
    Ok(slots.chunks_exact(SLOT_BYTES).map(link).collect())
}

/// One commit in the chain of all commits of a store. The default precedes the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Link {
    /// Counted from 1, over all todos.
    pub(crate) number: u64,
    digest: u64,
}

impl Link {
    /// Returns the link of a commit that is not chained to others by its batch.
    #[cfg(feature = "postgres")]
    pub(crate) fn new(number: u64, digest: u64) -> Self {
        Self { number, digest }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn digest(self) -> u64 {
        self.digest
    }

    /// Returns the link for a commit of this batch after this one.
    pub(crate) fn next(self, batch: &Batch) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&self.bytes());
        if let Some(expect) = batch.expect {
            hash.update(&expect.todo.to_le_bytes());
            hash.update(&expect.next.to_le_bytes());
        }
        for delete in &batch.delete {
            hash.update(&[delete.space.number()]);
            hash.update(&delete.todo.to_le_bytes());
            hash.update(&delete.range.start.to_le_bytes());
            hash.update(&delete.range.end.to_le_bytes());
        }
        for (key, value) in &batch.put {
            hash.update(&[key.space.number()]);
            hash.update(&key.todo.to_le_bytes());
            hash.update(&key.n.to_le_bytes());
            hash.update(value);
        }
        Self { number: self.number + 1, digest: hash.digest() }
    }

    /// Returns what is lost in a store whose last commit is `held`, if this one was acknowledged before.
    pub(crate) fn lost_by(self, held: Self) -> Option<Lost> {
        let is_there = self.number < held.number || self == held;
        (!is_there).then_some(Lost { acknowledged: self.number, held: held.number })
    }

    /// Encodes the link as the engine stores it.
    pub(crate) fn seal(self) -> Vec<u8> {
        record::seal_link(&self.bytes())
    }

    /// Decodes the link that an engine stored, or says why it is not valid.
    pub(crate) fn open(stored: &[u8]) -> Result<Self, String> {
        let value = record::open_link(stored)?;
        Self::of(value).ok_or_else(|| {
            format!("the last commit has {LINK_BYTES} bytes, but this one has {}", value.len())
        })
    }

    /// Returns what is wrong with the link that an engine stored, if anything.
    pub(crate) fn judge(stored: Result<&[u8], String>) -> Option<Finding> {
        let wrong = stored.and_then(Self::open).err()?;
        Some(Finding::Engine {
            detail: format!("the number of the last commit is damaged: {wrong}"),
        })
    }

    fn bytes(self) -> [u8; LINK_BYTES] {
        let mut bytes = [0; LINK_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..].copy_from_slice(&self.digest.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (number, digest) = bytes.split_first_chunk::<8>()?;
        let digest = u64::from_le_bytes(digest.try_into().ok()?);
        Some(Self { number: u64::from_le_bytes(*number), digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Space};

    fn batch(value: &str) -> Batch {
        let key = Key { space: Space::Message, todo: 1, n: 0 };
        Batch { put: vec![(key, value.into())], ..Batch::default() }
    }

    #[test]
    fn the_newest_sound_slot_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
        let witness = Witness::open(dir.path()).unwrap();
        assert_eq!(witness.last().unwrap(), None);
        let mut links = vec![Link::default()];
        for n in 0..200 {
            links.push(links[n].next(&batch(&n.to_string())));
        }
        // Two neighbours out of order: the greater number counts.
        for number in [199, 200, 198] {
            witness.write(links[number]).unwrap();
        }
        assert_eq!(read(dir.path()).unwrap(), Some(links[200]));

        let path = dir.path().join(FILE);
        let sound = std::fs::read(&path).unwrap();
        let at = (200 % SLOTS as usize) * SLOT_BYTES;
        for byte in at..at + SLOT_BYTES {
            let mut bad = sound.clone();
            bad[byte] ^= 4;
            std::fs::write(&path, bad).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Some(links[199]), "byte {byte}");
        }
        for length in 0..sound.len() {
            std::fs::write(&path, &sound[..length]).unwrap();
            assert!(read(dir.path()).unwrap().is_none_or(|link| links.contains(&link)));
        }
        std::fs::write(&path, sound).unwrap();
        Witness::open(dir.path()).unwrap().accept(links[3]).unwrap();
        assert_eq!(read(dir.path()).unwrap(), Some(links[3]));
    }

    #[test]
    fn a_link_depends_on_all_before_it() {
        let first = Link::default().next(&batch("a"));
        let other = Link::default().next(&batch("b"));
        assert_ne!(first.next(&batch("c")), other.next(&batch("c")));
        assert_eq!(Link::open(&first.seal()), Ok(first));
        assert_eq!(first.lost_by(first), None);
        assert_eq!(first.lost_by(other.next(&batch("c"))), None);
        assert_eq!(first.lost_by(other), Some(Lost { acknowledged: 1, held: 1 }));
        assert_eq!(first.lost_by(Link::default()), Some(Lost { acknowledged: 1, held: 0 }));
    }
}
