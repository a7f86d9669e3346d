//! One word on its way to its pieces.

use crate::vocabulary::{Place, UNKNOWN, Vocabulary};

/// A word that is being read, in a buffer that is reused for the next.
pub(crate) struct Word {
    bytes: [u8; Self::CAPACITY],
    length: usize,
    chars: usize,
}

impl Word {
    /// A longer word is unknown as a whole, as in BERT.
    const MAX_CHARS: usize = 100;
    const CAPACITY: usize = Self::MAX_CHARS * 4;

    pub(crate) fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0, chars: 0 }
    }

    pub(crate) fn push_ascii(&mut self, byte: u8) {
        if let Some(free) = self.bytes.get_mut(self.length) {
            *free = byte;
            self.length += 1;
        }
        self.chars += 1;
    }

    pub(crate) fn push(&mut self, c: char) {
        let mut utf8 = [0; 4];
        let utf8 = c.encode_utf8(&mut utf8).as_bytes();
        if let Some(free) = self.bytes.get_mut(self.length..self.length + utf8.len()) {
            free.copy_from_slice(utf8);
            self.length += utf8.len();
        }
        self.chars += 1;
    }

    /// Passes the ids of the word's pieces to `sink`, longest match first, and starts the next
    /// word. A word with a part that is not a piece is one [`UNKNOWN`].
    pub(crate) fn finish(&mut self, vocabulary: &Vocabulary, sink: &mut impl FnMut(u16)) {
        if self.chars == 0 {
            return;
        }
        let mut pieces = [0u16; Self::MAX_CHARS];
        match self.spell(vocabulary, &mut pieces) {
            Some(count) => pieces.iter().take(count).for_each(|&id| sink(id)),
            None => sink(UNKNOWN),
        }
        self.length = 0;
        self.chars = 0;
    }

    fn spell(&self, vocabulary: &Vocabulary, pieces: &mut [u16; Self::MAX_CHARS]) -> Option<usize> {
        if self.chars > Self::MAX_CHARS {
            return None;
        }
        let mut rest = self.bytes.get(..self.length)?;
        let mut place = Place::Begin;
        let mut count = 0;
        while !rest.is_empty() {
            let (id, length) = vocabulary.longest_prefix(rest, place)?;
            *pieces.get_mut(count)? = id;
            count += 1;
            rest = rest.get(length..)?;
            place = Place::Inside;
        }
        Some(count)
    }
}
