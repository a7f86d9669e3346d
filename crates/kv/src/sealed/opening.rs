//! Opens an encrypted store, creates one, and changes its key.

use super::keys::{Keys, Kind, wrapped_again};
use super::turn::Turn;
use super::{STORE, STORE_KEY, SUM, Sealed};
use crate::{Batch, Error, Expect, Key, Kv, Mode, Space, retry};
use foldback_cipher::EncryptionKey;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Seals everything that is written to `kv` from now on, with keys that `key` opens: see
/// [`open_with`](crate::open_with). `dir` is the folder shared by the processes that have the store open.
///
/// # Errors
/// [`Error::WrongKey`] if another key opens it; [`Error::NotEncrypted`] if it already holds anything that is not
/// sealed.
pub fn seal(
    kv: Arc<dyn Kv>,
    dir: Option<&Path>,
    mode: Mode,
    key: &EncryptionKey,
) -> Result<Arc<dyn Kv>, Error> {
    seal_as(kv, dir, mode, key, None)
}

/// Like [`seal`]; `says` is whether the format file of the folder, if there is one, says that the store is encrypted.
pub(crate) fn seal_as(
    kv: Arc<dyn Kv>,
    dir: Option<&Path>,
    mode: Mode,
    key: &EncryptionKey,
    says: Option<bool>,
) -> Result<Arc<dyn Kv>, Error> {
    let path = || dir.map(Path::to_owned).unwrap_or_default();
    let (turn, is_marked) = (Turn::new(dir), says.is_some());
    let mut record = kv.get(STORE_KEY)?;
    let mut made = None;
    if record.is_none() && mode == Mode::ReadWrite && is_new(kv.as_ref())? {
        // One process creates the key, and the others find it.
        let _turn = turn.take()?;
        record = kv.get(STORE_KEY)?;
        if record.is_none() {
            // The folder is marked first, so that nobody takes the store for one that is not encrypted.
            if is_marked {
                mark(dir)?;
            }
            made = Some(make(kv.as_ref(), key, path)?);
        }
    } else if record.is_none() {
        // Another process may have created it meanwhile.
        record = kv.get(STORE_KEY)?;
    }
    let keys = match (made, record) {
        (Some(keys), _) => keys,
        (None, Some(record)) => read(&record, key, path)?,
        (None, None) if says == Some(true) && !is_new(kv.as_ref())? => {
            let detail = "the record of its key is missing".to_owned();
            return Err(Error::Damaged { path: path(), detail });
        }
        (None, None) => return Err(Error::NotEncrypted { path: path() }),
    };
    if mode == Mode::ReadWrite && says == Some(false) {
        let _turn = turn.take()?;
        mark(dir)?;
    }
    Ok(Arc::new(Sealed { inner: kv, keys, mode, turn, is_marked }))
}

/// Seals the keys of a store with a new key of the caller. Data that is sealed with them stays as it is.
/// [`compact`](Kv::compact) the store afterwards, so that no file holds anything that the old key opens.
///
/// # Errors
/// [`Error::WrongKey`], [`Error::NotEncrypted`], and [`Error::Conflict`] when another process changes it at the same
/// time.
pub fn change_key(
    kv: &dyn Kv,
    dir: &Path,
    key: &EncryptionKey,
    new: &EncryptionKey,
) -> Result<(), Error> {
    let path = || dir.to_owned();
    // If two processes change it at once, the second one's old key no longer opens anything.
    let head = kv.head(STORE)?;
    let record = kv.get(STORE_KEY)?.ok_or_else(|| Error::NotEncrypted { path: path() })?;
    let record =
        wrapped_again(&record, key, new).ok_or_else(|| Error::WrongKey { path: path() })?;
    let expect = Some(Expect { todo: STORE, head, next: head + 1 });
    kv.commit(Batch { expect, put: vec![(STORE_KEY, record?)], ..Batch::default() })
}

/// Returns whether the records of a store are sealed, whatever its folder says.
pub(crate) fn is_sealed(kv: &dyn Kv) -> bool {
    matches!(kv.get(STORE_KEY), Ok(Some(_)) | Err(Error::Corrupt { .. }))
}

/// Creates the key of a new store, or uses that of another process that came first.
fn make(kv: &dyn Kv, key: &EncryptionKey, path: impl Fn() -> PathBuf) -> Result<Keys, Error> {
    retry(|| {
        let head = kv.head(STORE)?;
        if let Some(record) = kv.get(STORE_KEY)? {
            return read(&record, key, &path);
        }
        let (keys, record) = Keys::make(key)?;
        let sum = keys.seal(&keys.own, Kind::Sum, SUM, &[0; 32])?;
        let expect = Some(Expect { todo: STORE, head, next: head + 1 });
        let put = vec![(STORE_KEY, record), (SUM, sum)];
        kv.commit(Batch { expect, put, ..Batch::default() })?;
        Ok(keys)
    })
}

fn read(record: &[u8], key: &EncryptionKey, path: impl Fn() -> PathBuf) -> Result<Keys, Error> {
    Keys::read(record, key).ok_or_else(|| Error::WrongKey { path: path() })
}

/// Returns whether nothing was ever written.
fn is_new(kv: &dyn Kv) -> Result<bool, Error> {
    Ok(kv.head(0)? == 0
        && kv.last(Space::Meta, 0)?.is_none()
        && kv.heads(0..Key::TODO_END)?.is_empty())
}

fn mark(dir: Option<&Path>) -> Result<(), Error> {
    match dir {
        #[cfg(any(feature = "sqlite", feature = "redb", feature = "sled", feature = "postgres"))]
        Some(dir) => crate::folder::mark_encrypted(dir),
        _ => Ok(()),
    }
}
