//! The trait that every engine implements.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{Batch, Cipher, Error, FORGOTTEN_HEAD, Finding, Key, Lost, Space};

/// The value that represents a damaged head. No batch sets a head to it.
pub const DAMAGED_HEAD: u64 = u64::MAX;

/// A transactional store of records, shared by any number of threads.
///
/// The trait is object safe and takes no closures, so a store is held as `Arc<dyn Kv>`. No method
/// leaves a transaction open when it returns.
///
/// Ranges are half open and in ascending order of `n`. A bound above [`Key::N_END`] means
/// [`Key::N_END`]; an empty or backward range holds nothing and is not an error.
pub trait Kv: Send + Sync {
    /// Commits all of the batch durably, or none of it.
    ///
    /// Deletions come first, then the puts in their order, so one batch can replace a range; of two puts of one key
    /// the later one stays. An empty batch is a no-op. Batches that threads commit concurrently may be made durable
    /// together; each is accepted or refused individually.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when the todo's head is not the expected one; nothing was written.
    /// [`Error::KeyOutOfRange`] and [`Error::ValueTooLarge`] before anything is written. [`Error::Busy`] when other
    /// writers held the store for half a minute. [`Error::Full`] when the disk is full; nothing was written. After an
    /// I/O error, it is unknown whether the batch is durable until the store is opened again; until then every write
    /// returns [`Error::Poisoned`]. On a server, [`Error::Unreachable`] when nothing was written, and
    /// [`Error::Unknown`] when that is not known; the store goes on by itself. [`Error::Unfit`] when the server's address
    /// leads to another store now. [`Error::Lost`] when earlier commits are gone, and [`Error::Gone`] when the store is no
    /// longer where it was opened.
    fn commit(&self, batch: Batch) -> Result<(), Error>;

    /// Like [`commit`](Self::commit), for a batch that frees space: it deletes more than it puts. If the disk
    /// is too full to do that at once, it may be done in steps; if it is interrupted, only some of the
    /// records are gone, and it must be repeated. An engine without such steps commits the batch.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    fn erase(&self, batch: Batch) -> Result<(), Error> {
        self.commit(batch)
    }

    /// Like [`commit`](Self::commit), if a record still has the value that the batch was built on.
    ///
    /// An engine whose writers share a folder may commit the batch as it is: they take turns there, and nothing changes
    /// meanwhile. An engine whose writers are on several machines compares the record in the same transaction.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit); [`Error::Changed`] when the record has another value, and nothing was written.
    fn commit_if(&self, batch: Batch, held: Option<(Key, Vec<u8>)>) -> Result<(), Error> {
        let _ = held;
        self.commit(batch)
    }

    /// Like [`erase`](Self::erase), on the condition of [`commit_if`](Self::commit_if).
    ///
    /// # Errors
    ///
    /// As [`commit_if`](Self::commit_if).
    fn erase_if(&self, batch: Batch, held: Option<(Key, Vec<u8>)>) -> Result<(), Error> {
        let _ = held;
        self.erase(batch)
    }

    /// Returns the todo's head as the last batch that named it left it. For a todo that has none, and when a
    /// batch expects its head, [`missing_head`](crate::missing_head()) applies: 0, unless it was forgotten.
    ///
    /// # Errors
    ///
    /// [`Error::CorruptHead`] when its checksum does not hold.
    fn head(&self, todo: u32) -> Result<u64, Error>;

    /// Returns the heads of the todos in a range that have one, ascending. A damaged head is returned as
    /// [`DAMAGED_HEAD`], so that its todo is still listed. The engines of this crate read all of them at
    /// once, however many there are.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        let mut found = Vec::new();
        for todo in todos.start..todos.end.min(Key::TODO_END) {
            match self.head(todo) {
                Ok(0 | FORGOTTEN_HEAD) => {}
                Err(Error::CorruptHead { .. }) => found.push((todo, DAMAGED_HEAD)),
                Ok(head) => found.push((todo, head)),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Returns the value of a key, verified.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the record's checksum does not hold.
    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error>;

    /// Returns the values of several records of a todo, in the order of `numbers`, each verified. On a server this is one
    /// round trip.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], which names one of the records that are damaged. The others stay readable one by one.
    fn get_each(
        &self,
        space: Space,
        todo: u32,
        numbers: &[u64],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        numbers.iter().map(|n| self.get(Key { space, todo, n: *n })).collect()
    }

    /// Returns at most `limit` records of a todo with `n` in `range`, ascending, each verified.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], which names the first bad record of those that would have been returned.
    /// The others stay readable: scan up to that key, then from the one after it.
    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error>;

    /// Returns the [head](Self::head) of a todo and, read after it, the records of several ranges: of each as
    /// [`scan`](Self::scan) does, in the order of `ranges`. On a server this is one round trip.
    ///
    /// # Errors
    ///
    /// As `head` and `scan`, for the first damage found. The rest can still be read separately.
    fn scan_each(
        &self,
        todo: u32,
        ranges: &[(Space, Range<u64>)],
        limit: usize,
    ) -> Result<Scans, Error> {
        let head = self.head(todo)?;
        let scan =
            |(space, range): &(Space, Range<u64>)| self.scan(*space, todo, range.clone(), limit);
        Ok(Scans { head, found: ranges.iter().map(scan).collect::<Result<_, _>>()? })
    }

    /// Returns the record with the greatest `n` of a todo, verified.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when that record's checksum does not hold.
    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error>;

    /// Returns a number that changes whenever any process, this one included, commits.
    ///
    /// Only equality is meaningful, and only between two answers of the same open store. The number
    /// may change although nothing was committed. A call costs a few microseconds, and on a server a round trip. Call
    /// it before reading: what is read afterwards is at least as new.
    fn changed(&self) -> Result<u64, Error>;

    /// Like [`changed`](Self::changed), for a caller that reads one todo only: the number changes with every commit that
    /// expects a head of the todo, and may stay as it is with others.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    fn changed_in(&self, todo: u32) -> Result<u64, Error> {
        let _ = todo;
        self.changed()
    }

    /// Waits until [`changed`](Self::changed) differs from what it was, or until `most` is over. Returns whether it
    /// differs. An engine on a server receives a notice from it; by default the number is read twenty times a second.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    fn wait_for_change(&self, seen: u64, most: Duration) -> Result<bool, Error> {
        let until = Instant::now() + most;
        loop {
            if self.changed()? != seen {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    /// Returns the acknowledged commits that are gone, if anything outside the engine remembers them. By default, for
    /// engines of other crates, nothing is known.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    fn lost(&self) -> Result<Option<Lost>, Error> {
        Ok(None)
    }

    /// Accepts the present contents as complete: [`lost`](Self::lost) commits are no longer reported, and writes are
    /// accepted again.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    fn accept_loss(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns unused space to the file system. Afterwards, none of the store's files holds bytes
    /// that were deleted or overwritten before the call. (On a server, that is for the server to do: see
    /// [`Engine::Postgres`](crate::Engine::Postgres).)
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] when another connection kept old pages in use, so that this could not be
    /// guaranteed; nothing is lost, and the call can be repeated.
    fn compact(&self) -> Result<(), Error>;

    /// Writes a consistent copy into `dir`, which is created, or must be empty.
    ///
    /// The engine makes the copy by its own means, while other threads and processes continue to
    /// read and, with SQLite and redb, to write. When the call returns, the copy is durable and
    /// opens as a store. An incomplete copy does not open.
    fn backup(&self, dir: &Path) -> Result<(), Error>;

    /// Checks the engine's structures and the checksum of every record and head.
    ///
    /// Damage is a [`Finding`], not an error: the check continues past it as far as it can. An empty
    /// answer means that everything in the store is sound, and that no commit is [`lost`](Self::lost).
    fn check(&self) -> Result<Vec<Finding>, Error>;

    /// Returns whether what is derived from the records belongs in the store, too, where the other machines that use it
    /// find it. An engine in a folder keeps it in files beside the records, and so does a store that is only read.
    fn shares_derived(&self) -> bool {
        false
    }

    /// Returns whether each read asks a server, so that several are better asked for [at once](Self::get_each).
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns the cipher that seals the files kept beside the records of a todo, and that hides the names of those
    /// files; for files of no single todo, that of todo 0. `None` if the store is not encrypted; stores of other
    /// crates' engines never are.
    ///
    /// # Errors
    ///
    /// When the store cannot be read, or the todo was forgotten together with its key.
    fn cipher(&self, todo: u32) -> Result<Option<Cipher>, Error> {
        let _ = todo;
        Ok(None)
    }
}

/// What [`Kv::scan_each`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scans {
    /// The head of the todo.
    pub head: u64,
    /// The records of each range.
    pub found: Vec<Vec<(u64, Vec<u8>)>>,
}
