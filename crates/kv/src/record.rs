//! The bytes of a record: a version, a checksum, the value.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version, 1 |
//! | 8 | xxh3-64, little endian, over version, space, todo, n (the last two little endian, 4 and 8 bytes), value |
//! | rest | value |
//!
//! The checksum covers the key, so that a record that the engine returns under the wrong key counts
//! as damaged, like one whose bytes changed.

use xxhash_rust::xxh3::Xxh3;

use crate::Key;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 9;
/// Heads are kept apart from the spaces; their checksum uses this number in place of a space.
pub(crate) const HEAD_NUMBER: u8 = 255;
/// The same for the last commit.
pub(crate) const LINK_NUMBER: u8 = 254;

/// Encodes a value as it is stored under a key.
pub(crate) fn seal(key: Key, value: &[u8]) -> Vec<u8> {
    seal_as(key.space.number(), key.todo, key.n, value)
}

/// Decodes the value of a stored record, or says why it is not a valid record.
pub(crate) fn open(key: Key, record: &[u8]) -> Result<Vec<u8>, String> {
    verify(key.space.number(), key.todo, key.n, record).map(<[u8]>::to_vec)
}

/// Checks whether a stored record is sound, without copying it.
pub(crate) fn check(key: Key, record: &[u8]) -> Result<(), String> {
    verify(key.space.number(), key.todo, key.n, record).map(|_| ())
}

/// Encodes a todo's head as it is stored.
pub(crate) fn seal_head(todo: u32, head: u64) -> Vec<u8> {
    seal_as(HEAD_NUMBER, todo, 0, &head.to_le_bytes())
}

/// Decodes a stored head, or says why it is not valid.
pub(crate) fn open_head(todo: u32, record: &[u8]) -> Result<u64, String> {
    let value = verify(HEAD_NUMBER, todo, 0, record)?;
    let bytes = <[u8; 8]>::try_from(value)
        .map_err(|_| format!("a head has 8 bytes, but this one has {}", value.len()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Encodes the last commit as it is stored.
pub(crate) fn seal_link(link: &[u8]) -> Vec<u8> {
    seal_as(LINK_NUMBER, 0, 0, link)
}

/// Decodes a stored last commit, or says why it is not valid.
pub(crate) fn open_link(record: &[u8]) -> Result<&[u8], String> {
    verify(LINK_NUMBER, 0, 0, record)
}

fn seal_as(number: u8, todo: u32, n: u64, value: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEADER_BYTES + value.len());
    record.push(VERSION);
    record.extend_from_slice(&checksum(number, todo, n, value).to_le_bytes());
    record.extend_from_slice(value);
    record
}

fn verify(number: u8, todo: u32, n: u64, record: &[u8]) -> Result<&[u8], String> {
    let Some((&[version, ref stored @ ..], value)) = record.split_first_chunk::<HEADER_BYTES>()
    else {
        return Err(format!("it has {} bytes, but a header has {HEADER_BYTES}", record.len()));
    };
    if version != VERSION {
        return Err(format!("it has record version {version}, but this program reads {VERSION}"));
    }
    let found = checksum(number, todo, n, value);
    if u64::from_le_bytes(*stored) != found {
        return Err("its checksum does not match its key and value".to_owned());
    }
    Ok(value)
}

fn checksum(number: u8, todo: u32, n: u64, value: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&[VERSION, number]);
    hash.update(&todo.to_le_bytes());
    hash.update(&n.to_le_bytes());
    hash.update(value);
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Space;

    const KEY: Key = Key { space: Space::Message, todo: 7, n: 42 };

    #[test]
    fn r4_every_flipped_bit_is_noticed() {
        let value = "你好, fold".as_bytes();
        let record = seal(KEY, value);
        assert_eq!(open(KEY, &record).unwrap(), value);
        for byte in 0..record.len() {
            for bit in 0..8 {
                let mut bad = record.clone();
                bad[byte] ^= 1 << bit;
                assert!(open(KEY, &bad).is_err(), "byte {byte}, bit {bit}");
            }
        }
        for cut in 0..record.len() {
            assert!(open(KEY, &record[..cut]).is_err(), "cut to {cut}");
        }
    }

    #[test]
    fn a_record_under_another_key_is_bad() {
        let record = seal(KEY, b"value");
        for other in
            [Key { n: 43, ..KEY }, Key { todo: 8, ..KEY }, Key { space: Space::Block, ..KEY }]
        {
            assert!(check(other, &record).is_err());
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        // Computed once; a change of these bytes is a change of the format version.
        let expected = [1, 243, 198, 143, 15, 112, 130, 111, 227, b'h', b'i'];
        assert_eq!(seal(KEY, b"hi"), expected);
        assert_eq!(seal_head(1, 5).len(), 17);
        assert_eq!(open_head(1, &seal_head(1, 5)), Ok(5));
        assert!(open_head(2, &seal_head(1, 5)).is_err());
    }
}
