//! A store's secret, which no text in it can know, so that recalled text cannot forge its marks.

use crate::Error;
use crate::error::Failure;
use foldback_kv::{Batch, Error as KvError, Expect, Key, Kv, Mode, Space, retry};
use std::ops::Range;

/// The marks of each todo are derived from this.
pub(crate) type Secret = [u8; 32];

/// Records of the whole store use the number that no todo has.
pub(crate) const SECRET: Key = Key { space: Space::Meta, todo: 0, n: 4 };

/// No todo has these numbers. The head of the greatest counts the secrets that were made, so that if two
/// processes open a store at once, only one makes it; if that head is damaged, the next one is used.
const MAKERS: Range<u32> = Key::TODO_END - 4..Key::TODO_END;

/// Returns the store's secret. A store without one, or with a damaged one, gets one when it is opened
/// for writing. If it is read-only, or none can be stored (the disk is full, every counter is damaged),
/// it has a random one as long as the process lives. Nothing that is recorded depends on it.
pub(crate) fn secret_of(kv: &dyn Kv, mode: Mode) -> Result<Secret, Error> {
    // If another process makes one meanwhile, that is the store's.
    retry(|| {
        // This is read before the secret: one that is made between the two moves it.
        let maker = maker(kv)?;
        let stored = match kv.get(SECRET) {
            Err(KvError::Corrupt { .. }) => None,
            stored => stored?.and_then(|bytes| Secret::try_from(bytes).ok()),
        };
        if let Some(secret) = stored {
            return Ok(secret);
        }
        let mut secret = Secret::default();
        getrandom::fill(&mut secret).map_err(Failure::Random)?;
        let Some((todo, head)) = maker.filter(|_| mode == Mode::ReadWrite) else {
            return Ok(secret);
        };
        let expect = Some(Expect { todo, head, next: head + 1 });
        let put = vec![(SECRET, secret.to_vec())];
        match kv.commit(Batch { expect, put, ..Batch::default() }) {
            // The contents of a full disk can still be read.
            Ok(()) | Err(KvError::Full { .. }) => Ok(secret),
            Err(error) => Err(error.into()),
        }
    })
}

/// Returns whether a store has stored this secret, so that the next process that opens it has the same.
pub(crate) fn is_kept(kv: &dyn Kv, secret: &Secret) -> bool {
    kv.get(SECRET).is_ok_and(|kept| kept.as_deref() == Some(secret))
}

/// Rewrites a record of the store itself unchanged. Whether that is accepted shows whether any write would be.
pub(crate) fn write_again(kv: &dyn Kv) -> Result<(), Error> {
    let put = kv.get(SECRET)?.map(|bytes| (SECRET, bytes)).into_iter().collect();
    Ok(kv.commit(Batch { put, ..Batch::default() })?)
}

/// Returns the number whose head counts the secrets, and that head; `None` if all are damaged.
fn maker(kv: &dyn Kv) -> Result<Option<(u32, u64)>, KvError> {
    let heads = MAKERS.rev().map(|todo| match kv.head(todo) {
        Err(KvError::CorruptHead { .. }) => Ok(None),
        head => Ok(Some((todo, head?))),
    });
    heads.filter_map(Result::transpose).next().transpose()
}

#[cfg(test)]
mod tests;
