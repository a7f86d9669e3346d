//! The vocabulary: which bytes are a word piece.

use std::sync::LazyLock;

use crate::table::ROWS;

/// The vocabulary of BERT base uncased: pieces that begin a word, and pieces that continue one.
///
/// A hash table with open addressing over the text in the program; building it takes about a
/// millisecond, once.
pub(crate) struct Vocabulary {
    /// The position of each piece in the text, without the `##`.
    spans: Vec<Span>,
    /// `id + 1`, or 0 in an empty slot.
    slots: Vec<u16>,
    longest: usize,
}

/// Whether a piece begins a word or continues one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Begin,
    Inside,
}

#[derive(Clone, Copy)]
struct Span {
    start: u32,
    length: u8,
    inside: bool,
}

/// The id of `[UNK]`, for a word that the vocabulary cannot spell.
pub(crate) const UNKNOWN: u16 = 100;

/// The longest piece that is looked up, in bytes; the vocabulary's longest has 18.
const LONGEST: usize = 24;

static TEXT: &[u8] = include_bytes!("../assets/vocab.txt");

impl Vocabulary {
    pub(crate) fn get() -> &'static Self {
        static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::new);
        &VOCABULARY
    }

    /// Returns the longest piece with which `rest` starts, and its length in bytes.
    pub(crate) fn longest_prefix(&self, rest: &[u8], place: Place) -> Option<(u16, usize)> {
        // The hash of each prefix is derived from the one before, so a word that must be tried at
        // every length is still read once.
        let mut hashes = [0u64; LONGEST + 1];
        let mut hash = seed(place);
        let longest = rest.len().min(self.longest);
        for (slot, &byte) in hashes.iter_mut().skip(1).zip(rest.iter().take(longest)) {
            hash = step(hash, byte);
            *slot = hash;
        }
        (1..=longest).rev().find_map(|length| {
            let id = self.find(*hashes.get(length)?, rest.get(..length)?, place)?;
            Some((id, length))
        })
    }

    fn find(&self, hash: u64, piece: &[u8], place: Place) -> Option<u16> {
        let mut at = slot(hash);
        loop {
            let id = self.slots.get(at)?.checked_sub(1)?;
            let span = self.spans.get(usize::from(id))?;
            if span.inside == (place == Place::Inside) && span.of(TEXT) == Some(piece) {
                return Some(id);
            }
            at = (at + 1) % SLOTS;
        }
    }

    fn new() -> Self {
        let mut spans = Vec::with_capacity(ROWS);
        let mut slots = vec![0u16; SLOTS];
        let mut longest = 0;
        let mut start = 0usize;
        for (id, line) in (1u16..).zip(TEXT.split(|&byte| byte == b'\n')) {
            let inside = line.len() > 2 && line.starts_with(b"##");
            let skip = if inside { 2 } else { 0 };
            let piece = line.get(skip..).unwrap_or_default();
            // `[CLS]` and `[unused7]` are not text: their brackets are pieces of their own.
            let marker = piece.len() > 2 && piece.starts_with(b"[") && piece.ends_with(b"]");
            spans.push(Span {
                start: (start + skip) as u32,
                length: u8::try_from(piece.len()).unwrap_or(0),
                inside,
            });
            start += line.len() + 1;
            if piece.is_empty() || marker || piece.len() > LONGEST {
                continue;
            }
            longest = longest.max(piece.len());
            let place = if inside { Place::Inside } else { Place::Begin };
            let mut at = slot(piece.iter().fold(seed(place), |hash, &byte| step(hash, byte)));
            while slots.get(at).is_some_and(|&taken| taken != 0) {
                at = (at + 1) % SLOTS;
            }
            if let Some(free) = slots.get_mut(at) {
                *free = id;
            }
        }
        Self { spans, slots, longest }
    }
}

impl Span {
    fn of(self, text: &[u8]) -> Option<&[u8]> {
        let start = self.start as usize;
        text.get(start..start + usize::from(self.length))
    }
}

/// More than twice the pieces, so that chains stay short.
const SLOTS: usize = 1 << 16;

fn seed(place: Place) -> u64 {
    match place {
        Place::Begin => 0,
        Place::Inside => 0x5851_f42d_4c95_7f2d,
    }
}

/// One byte more: multiply, which carries to the high bits, from which the slot is taken. The
/// factor is the fraction of the golden ratio in 64 bits, made odd.
fn step(hash: u64, byte: u8) -> u64 {
    (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn slot(hash: u64) -> usize {
    (hash >> 48) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_found_under_its_id_and_markers_are_not() {
        let vocabulary = Vocabulary::get();
        let mut markers = 0;
        for (id, line) in (0u16..).zip(std::str::from_utf8(TEXT).unwrap().lines()) {
            let (piece, place) = match line.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => (rest, Place::Inside),
                _ => (line, Place::Begin),
            };
            let found = vocabulary.longest_prefix(piece.as_bytes(), place);
            if piece.len() > 2 && piece.starts_with('[') && piece.ends_with(']') {
                markers += 1;
                assert_eq!(found.map(|f| f.1), Some(1), "{line}");
            } else {
                assert_eq!(found, Some((id, piece.len())), "{line}");
            }
        }
        assert_eq!((markers, vocabulary.spans.len()), (999, ROWS + 1));
        assert!(vocabulary.longest < LONGEST);
    }

    #[test]
    fn the_longest_piece_wins_and_a_place_is_kept_apart() {
        let find = |text: &str, place| Vocabulary::get().longest_prefix(text.as_bytes(), place);
        assert_eq!(find("playing", Place::Begin).map(|f| f.1), Some(7));
        assert_ne!(find("ing", Place::Begin), find("ing", Place::Inside));
        assert_eq!(find("\u{1f600}", Place::Begin), None);
        assert_eq!(find("", Place::Begin), None);
    }
}
