//! Shows whether the database is complete: the number of records and a sum over all of them.
//!
//! After damage sled silently returns what is left. So every commit writes, in its own batch, how many records and
//! heads there are after it, and the sum of their hashes; each opening of the database reads all of them and
//! compares. After that, only whole commits at the end can be missing.

use crate::ordered;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The key of the record, outside all spaces and apart from heads and other records about the whole.
pub(super) const KEY: ordered::Bytes = [253, 0, 0, 0, 0, 0, 0, 0, 0];
/// Keys from this one on are not records, except for the heads.
const OTHERS: u8 = 253;
/// The count, the sum, and the hash of both.
const BYTES: usize = 8 + 16 + 8;

/// How many records and heads there are, and the sum of their hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Contents {
    count: u64,
    sum: u128,
}

impl Contents {
    /// Reads everything that a database holds.
    pub(super) fn of(database: &::sled::Db) -> Result<Self, ::sled::Error> {
        let mut contents = Self::default();
        for item in database.iter() {
            let (key, stored) = item?;
            contents.add(&key, &stored);
        }
        Ok(contents)
    }

    /// Returns how the contents differ from what the last commit left, if they do. A database of an earlier version
    /// does not record that.
    pub(super) fn missing(self, database: &::sled::Db) -> Result<Option<String>, ::sled::Error> {
        let Some(stored) = database.get(KEY)? else { return Ok(None) };
        let stated = <[u8; BYTES]>::try_from(&*stored).ok().and_then(|bytes| Self::open(&bytes));
        Ok(match stated {
            None => Some("its count of records is damaged".to_owned()),
            Some(stated) if stated == self => None,
            Some(Self { count, .. }) if count == self.count => {
                Some("some records differ from those that its last commit left".to_owned())
            }
            Some(Self { count, .. }) => {
                let found = self.count;
                Some(format!("its last commit left {count} records and heads, but it has {found}"))
            }
        })
    }

    /// Adds a record that is written.
    pub(super) fn add(&mut self, key: &[u8], stored: &[u8]) {
        if let Some(hash) = hash(key, stored) {
            self.count = self.count.wrapping_add(1);
            self.sum = self.sum.wrapping_add(hash);
        }
    }

    /// Removes a record that is replaced or deleted.
    pub(super) fn take(&mut self, key: &[u8], stored: &[u8]) {
        if let Some(hash) = hash(key, stored) {
            self.count = self.count.wrapping_sub(1);
            self.sum = self.sum.wrapping_sub(hash);
        }
    }

    /// Encodes it as it is stored.
    pub(super) fn seal(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&self.sum.to_le_bytes());
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    fn open(bytes: &[u8; BYTES]) -> Option<Self> {
        let (body, hash) = bytes.split_last_chunk::<8>()?;
        let (count, sum) = body.split_first_chunk::<8>()?;
        let (count, sum) = (u64::from_le_bytes(*count), u128::from_le_bytes(sum.try_into().ok()?));
        (xxh3_64(body).to_le_bytes() == *hash).then_some(Self { count, sum })
    }
}

fn hash(key: &[u8], stored: &[u8]) -> Option<u128> {
    let space = *key.first()?;
    let mut hash = Xxh3::new();
    hash.update(key);
    hash.update(stored);
    (space < OTHERS || space == crate::record::HEAD_NUMBER).then(|| hash.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_matter_and_all_else_does() {
        let of = |records: &[(&str, &str)]| {
            let mut contents = Contents::default();
            records
                .iter()
                .for_each(|(key, stored)| contents.add(key.as_bytes(), stored.as_bytes()));
            contents
        };
        let both = of(&[("a", "1"), ("b", "2")]);
        assert_eq!(both, of(&[("b", "2"), ("a", "1")]));
        for other in [&[("a", "1")][..], &[("a", "2"), ("b", "1")], &[("a", "1"), ("b", "3")]] {
            assert_ne!(both, of(other));
        }
        let mut without = both;
        without.take(b"b", b"2");
        assert_eq!(without, of(&[("a", "1")]));
        assert_eq!(of(&[("\u{fd}", "x")]).count, 1, "only the first byte of a key counts");
    }

    #[test]
    fn r4_a_flipped_bit_of_the_count_is_noticed() {
        let sealed: [u8; BYTES] = Contents { count: 3, sum: 5 }.seal().try_into().unwrap();
        assert_eq!(Contents::open(&sealed), Some(Contents { count: 3, sum: 5 }));
        for at in 0..BYTES * 8 {
            let mut bad = sealed;
            bad[at / 8] ^= 1 << (at % 8);
            assert_eq!(Contents::open(&bad), None, "bit {at}");
        }
    }
}
