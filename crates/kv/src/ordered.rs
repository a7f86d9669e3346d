//! Keys as bytes in our order, for engines that hold one ordered map of bytes.
//!
//! A key is nine bytes: the space's number, the todo and `n`, the last two big-endian. Heads have 255
//! in place of a space, and the last commit has 254.

use std::ops::RangeInclusive;

use crate::acknowledged::Held;
use crate::record::{self, HEAD_NUMBER, LINK_NUMBER};
use crate::witness::Link;
use crate::{DAMAGED_HEAD, Error, Finding, Key, Space};

/// A key as the map holds it.
pub(crate) type Bytes = [u8; 9];

/// The key of the last commit.
pub(crate) const LINK: Bytes = [LINK_NUMBER, 0, 0, 0, 0, 0, 0, 0, 0];

/// Returns the bytes of a record's key, which was checked.
pub(crate) fn of(key: Key) -> Bytes {
    // `n` is below 2^32.
    bytes(key.space.number(), key.todo, u32::try_from(key.n).unwrap_or(u32::MAX))
}

/// Returns the key of a todo's head.
pub(crate) fn head(todo: u32) -> Bytes {
    bytes(HEAD_NUMBER, todo, 0)
}

/// Returns the range of a todo's records.
pub(crate) fn span(space: Space, todo: u32, span: &RangeInclusive<u32>) -> RangeInclusive<Bytes> {
    let number = space.number();
    bytes(number, todo, *span.start())..=bytes(number, todo, *span.end())
}

/// Returns the todo and the value of a head that a scan of heads found.
pub(crate) fn open_head(key: &[u8], stored: &[u8]) -> Option<(u32, u64)> {
    let (_, todo, _) = parts(key)?;
    Some((todo, record::open_head(todo, stored).unwrap_or(DAMAGED_HEAD)))
}

/// Returns a record that a scan of a todo found, verified.
pub(crate) fn open(
    space: Space,
    todo: u32,
    found: &[u8],
    stored: &[u8],
) -> Result<(u64, Vec<u8>), Error> {
    // A key of another shape is in no range of a todo.
    let n = u64::from(parts(found).map_or(0, |(_, _, n)| n));
    let key = Key { space, todo, n };
    let value = record::open(key, stored).map_err(|detail| Error::Corrupt { key, detail })?;
    Ok((n, value))
}

/// Returns the stored last commit, if there is one.
pub(crate) fn open_link(stored: Option<&[u8]>) -> Held {
    // A store from before commits had numbers has none.
    stored.map_or(Ok(Link::default()), Link::open)
}

/// Returns what is wrong with a record, a head or the last commit, if anything.
pub(crate) fn judge(found: &[u8], stored: &[u8]) -> Option<Finding> {
    let Some((number, todo, n)) = parts(found) else {
        return Some(Finding::Engine { detail: format!("{found:02x?} is not a key") });
    };
    if found == LINK {
        return Link::judge(Ok(stored));
    }
    if number == HEAD_NUMBER {
        let head = record::open_head(todo, stored);
        return head.err().map(|detail| Finding::Head { todo, detail });
    }
    let Some(space) = Space::from_number(number) else {
        return Some(Finding::Engine { detail: format!("{number} is not a space") });
    };
    let key = Key { space, todo, n: u64::from(n) };
    record::check(key, stored).err().map(|detail| Finding::Record { key, detail })
}

fn bytes(number: u8, todo: u32, n: u32) -> Bytes {
    let ([a, b, c, d], [e, f, g, h]) = (todo.to_be_bytes(), n.to_be_bytes());
    [number, a, b, c, d, e, f, g, h]
}

fn parts(bytes: &[u8]) -> Option<(u8, u32, u32)> {
    let &[number, a, b, c, d, e, f, g, h] = bytes else { return None };
    Some((number, u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}
