//! The trait that every engine implements.

use std::ops::Range;
use std::path::Path;

use crate::{Batch, Cipher, Error, FORGOTTEN_HEAD, Finding, Key, Lost, Space};

/// Stands for a head that is damaged. No batch sets a head to it.
pub const DAMAGED_HEAD: u64 = u64::MAX;

/// A transactional store of records, shared by any number of threads.
///
/// The trait is object safe and takes no closures, so a store is held as `Arc<dyn Kv>`. No method
/// leaves a transaction open when it returns.
///
/// Ranges are half open and in ascending order of `n`. A bound above [`Key::N_END`] means
/// [`Key::N_END`]; an empty or backward range holds nothing and is not an error.
pub trait Kv: Send + Sync {
    /// Makes all of the batch durable, or none of it.
    ///
    /// Deletions come first, then the puts in their order, so one batch can replace a range; of
    /// two puts of one key the later one stays. An empty batch is a no-op. Batches that threads commit at once may be
    /// made durable together; each is taken or refused by itself.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when the todo's head is not the expected one; nothing was written.
    /// [`Error::KeyOutOfRange`] and [`Error::ValueTooLarge`] before anything is written.
    /// [`Error::Busy`] when other writers held the store for half a minute. [`Error::Full`] when
    /// the disk is full; nothing was written. After an IO error, whether the batch is durable is
    /// unknown until the store is opened again, and until then every write answers
    /// [`Error::Poisoned`]. [`Error::Lost`] when commits of before are gone, and [`Error::Gone`] when the store is no
    /// longer where it was opened.
    fn commit(&self, batch: Batch) -> Result<(), Error>;

    /// As [`commit`](Self::commit), for a batch that makes room: it deletes more than it puts. Where the disk
    /// is too full to do that at once, it may be done in steps, and cut short only some of it is gone; do it
    /// again then. An engine without such steps commits.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    fn erase(&self, batch: Batch) -> Result<(), Error> {
        self.commit(batch)
    }

    /// The todo's head as the last batch that named it left it; for a todo that has none, and for what a batch
    /// expects of it, [`missing_head`](crate::missing_head): 0, unless it was forgotten.
    ///
    /// # Errors
    ///
    /// [`Error::CorruptHead`] when its checksum does not hold.
    fn head(&self, todo: u32) -> Result<u64, Error>;

    /// The heads of the todos in a range that have one, ascending. The place of one that is damaged is
    /// taken by [`DAMAGED_HEAD`], so that its todo is there all the same. The engines of this crate read
    /// them in one go, however many there are.
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

    /// The value of a key, verified.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the record's checksum does not hold.
    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error>;

    /// At most `limit` records of a todo with `n` in `range`, ascending, each verified.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] naming the first bad record of what would have been returned. The rest
    /// stays readable: scan up to the key, then from the one after it.
    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error>;

    /// The record with the greatest `n` of a todo, verified.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when that record's checksum does not hold.
    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error>;

    /// A number that is another one whenever any process, this one included, has committed.
    ///
    /// Only equality means something, and only between two answers of the same open store. It
    /// may move when nothing was committed, and costs a few microseconds. Ask it before reading:
    /// what is read afterwards is at least as new.
    fn changed(&self) -> Result<u64, Error>;

    /// The acknowledged commits that are gone, where anything outside of the engine remembers them. Of engines of other
    /// crates nothing is known.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    fn lost(&self) -> Result<Option<Lost>, Error> {
        Ok(None)
    }

    /// Takes what is there for all that there is: [`lost`](Self::lost) commits are no longer reported, and writes are taken
    /// again.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    fn accept_loss(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns unused space to the file system. Bytes that were deleted or overwritten before the
    /// call are in none of the store's files afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] when another connection kept old pages in use, so that the promise could
    /// not be kept; nothing is lost, call it again.
    fn compact(&self) -> Result<(), Error>;

    /// Writes a consistent copy into `dir`, which is created, or must be empty.
    ///
    /// The copy is made by the engine's own means while other threads and processes go on
    /// reading, and with SQLite and redb writing. It is durable when the call returns and opens as a
    /// store. A copy that was cut short does not open.
    fn backup(&self, dir: &Path) -> Result<(), Error>;

    /// Checks the engine's structures and the checksum of every record and head.
    ///
    /// Damage is a [`Finding`], not an error: the call goes on past it as far as it can. An empty
    /// answer means that everything that is there is sound, and that no commit is [`lost`](Self::lost).
    fn check(&self) -> Result<Vec<Finding>, Error>;

    /// What seals the files that are kept beside the records of a todo, and hides what they are named by; of what is not one
    /// todo's, that of todo 0. `None` where the store is not encrypted, as none is that another crate's engine keeps.
    ///
    /// # Errors
    ///
    /// When the store cannot be read, or the todo was forgotten, with its key.
    fn cipher(&self, todo: u32) -> Result<Option<Cipher>, Error> {
        let _ = todo;
        Ok(None)
    }
}
