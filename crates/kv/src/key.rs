//! The address of a record.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use crate::Error;

/// The address of a record.
///
/// The fields are plain data; the store checks the limits and returns [`Error::KeyOutOfRange`]. The
/// limits come from SQLite's fastest kind of table, whose key is one signed 64-bit integer:
/// `todo << 32 | n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The kind of record.
    pub space: Space,
    /// The todo's number in this store, below [`Key::TODO_END`].
    pub todo: u32,
    /// The number inside the todo, below [`Key::N_END`].
    pub n: u64,
}

impl Key {
    /// The first todo number that does not fit.
    pub const TODO_END: u32 = 1 << 31;
    /// The first `n` that does not fit.
    pub const N_END: u64 = 1 << 32;
    /// In [`Space::Index`] the records from this number on are chunks, with their checksums in a record before it.
    pub const INDEX_CHUNKS: u64 = 16;

    /// Refuses a key that no engine can hold. An engine calls it before it reads or writes.
    ///
    /// # Errors
    ///
    /// [`Error::KeyOutOfRange`].
    pub fn check(self) -> Result<Self, Error> {
        if self.todo < Self::TODO_END && self.n < Self::N_END {
            Ok(self)
        } else {
            Err(Error::KeyOutOfRange { space: self.space, todo: self.todo, n: self.n })
        }
    }

    /// Returns a range of one todo's numbers with both ends inclusive, so that no bound can
    /// overflow. `None` when nothing can be in it.
    ///
    /// # Errors
    ///
    /// [`Error::KeyOutOfRange`] when the todo is out of range.
    pub fn span(
        space: Space,
        todo: u32,
        range: &Range<u64>,
    ) -> Result<Option<RangeInclusive<u32>>, Error> {
        Self { space, todo, n: 0 }.check()?;
        if range.start >= range.end {
            return Ok(None);
        }
        let first = u32::try_from(range.start).ok();
        let last = u32::try_from(range.end - 1).unwrap_or(u32::MAX);
        Ok(first.map(|first| first..=last))
    }
}

impl fmt::Display for Key {
    /// Formats the key for people: `message 7/42`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.space, self.todo, self.n)
    }
}

/// A kind of record, from a closed set.
///
/// The number identifies the SQLite table, and is the first byte of a key in redb and sled. It is never
/// reused: a retired space keeps its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "what a space holds is for the crate above to say")]
pub enum Space {
    Meta = 0,
    Name = 1,
    Todo = 2,
    Message = 3,
    Block = 4,
    Vector = 5,
    Payload = 6,
    PayloadBytes = 7,
    PayloadHash = 8,
    Session = 9,
    Index = 10,
    File = 11,
    Grant = 12,
    Plan = 13,
    Sent = 14,
    Parked = 15,
}

impl Space {
    /// Every space, ascending by number.
    pub const ALL: [Self; 16] = [
        Self::Meta,
        Self::Name,
        Self::Todo,
        Self::Message,
        Self::Block,
        Self::Vector,
        Self::Payload,
        Self::PayloadBytes,
        Self::PayloadHash,
        Self::Session,
        Self::Index,
        Self::File,
        Self::Grant,
        Self::Plan,
        Self::Sent,
        Self::Parked,
    ];

    /// Returns the space's number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the space with this number, or `None` if the number is not in use (any more).
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|space| space.number() == number)
    }

    /// Returns the space's name, in kebab case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Name => "name",
            Self::Todo => "todo",
            Self::Message => "message",
            Self::Block => "block",
            Self::Vector => "vector",
            Self::Payload => "payload",
            Self::PayloadBytes => "payload-bytes",
            Self::PayloadHash => "payload-hash",
            Self::Session => "session",
            Self::Index => "index",
            Self::File => "file",
            Self::Grant => "grant",
            Self::Plan => "plan",
            Self::Sent => "sent",
            Self::Parked => "parked",
        }
    }

    /// Returns the first format version whose stores have the space.
    pub const fn since(self) -> u64 {
        match self {
            Self::Sent | Self::Parked => 3,
            Self::Grant | Self::Plan => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_keep_their_numbers() {
        let numbers: Vec<u8> = Space::ALL.into_iter().map(Space::number).collect();
        assert_eq!(numbers, (0..16).collect::<Vec<u8>>());
        assert_eq!(Space::from_number(5), Some(Space::Vector));
        assert_eq!(Space::from_number(16), None);
    }

    #[test]
    fn a_span_never_overflows() {
        #[track_caller]
        fn check(range: Range<u64>, expected: Option<RangeInclusive<u32>>) {
            assert_eq!(Key::span(Space::Block, 1, &range).unwrap(), expected);
        }
        check(0..0, None);
        #[expect(clippy::reversed_empty_ranges, reason = "a backward range is the case")]
        check(5..2, None);
        check(3..4, Some(3..=3));
        check(0..u64::MAX, Some(0..=u32::MAX));
        check(Key::N_END - 1..Key::N_END, Some(u32::MAX..=u32::MAX));
        check(Key::N_END..u64::MAX, None);
    }
}
