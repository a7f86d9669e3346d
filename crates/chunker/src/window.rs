//! The recent messages, as far as the topic score uses them.

use crate::cues::Cues;
use crate::terms::{TERMS_PER_MESSAGE, Term, Terms};
use foldback_core::Role;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The last twelve messages with their terms, and how many of about the last forty hold each term.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Window {
    said: VecDeque<Said>,
    known: Known,
}

/// How many messages are kept: novelty looks back over eight, and a decision waits for three.
pub(crate) const KEPT: usize = 12;

/// One message as the topic score sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Said {
    #[serde(with = "packed_terms")]
    pub(crate) terms: Terms,
    #[serde(with = "packed_cues")]
    pub(crate) cues: Cues,
    pub(crate) speaker: Speaker,
    /// Whether the topic may change before this message.
    pub(crate) may_begin: bool,
}

/// The speaker, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Speaker {
    Instruction,
    User,
    Assistant,
    /// The assistant, calling tools.
    Caller,
    Tool,
}

impl Speaker {
    pub(crate) fn of(role: &Role, calls: bool) -> Self {
        match role {
            Role::System | Role::Developer => Self::Instruction,
            Role::Assistant if calls => Self::Caller,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
            Role::User | Role::Other(_) => Self::User,
        }
    }
}

impl Window {
    /// Takes the next message.
    pub(crate) fn push(&mut self, said: Said) {
        self.known.push(&said.terms);
        if self.said.len() >= KEPT {
            self.said.pop_front();
        }
        self.said.push_back(said);
    }

    /// Returns the messages, oldest first; the last one is the newest.
    pub(crate) fn said(&self) -> &VecDeque<Said> {
        &self.said
    }

    /// Returns the weight of a term in this conversation: ln(1 + n / df).
    pub(crate) fn rarity(&self, term: Term) -> f32 {
        let df = self.known.count(term).max(1);
        (1.0 + f32::from(self.known.messages()) / f32::from(df)).ln()
    }
}

/// The number of messages in which each term occurs: two generations of up to twenty messages, of which the older is
/// dropped as a whole, so that a step costs the same however long the conversation is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Known {
    older: u8,
    newer: u8,
    #[serde(with = "packed_counts")]
    entries: Vec<Count>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Count {
    term: Term,
    older: u8,
    newer: u8,
}

const GENERATION: u8 = 20;

/// The most terms that are counted before a generation ends early. It bounds the state.
const KNOWN_LIMIT: usize = 640;

impl Known {
    fn push(&mut self, terms: &Terms) {
        if self.newer >= GENERATION || self.entries.len() > KNOWN_LIMIT {
            self.older = std::mem::take(&mut self.newer);
            self.entries.retain_mut(|count| {
                count.older = std::mem::take(&mut count.newer);
                count.older > 0
            });
            if self.entries.len() > KNOWN_LIMIT {
                self.entries.retain(|count| count.older > 1);
                self.entries.truncate(KNOWN_LIMIT);
            }
        }
        self.newer = self.newer.saturating_add(1);
        let mut merged = Vec::with_capacity(self.entries.len() + TERMS_PER_MESSAGE);
        let mut rest = self.entries.iter().copied().peekable();
        for (term, _) in terms.iter() {
            while let Some(count) = rest.next_if(|count| count.term < term) {
                merged.push(count);
            }
            match rest.next_if(|count| count.term == term) {
                Some(count) => merged.push(Count { newer: count.newer + 1, ..count }),
                None => merged.push(Count { term, older: 0, newer: 1 }),
            }
        }
        merged.extend(rest);
        self.entries = merged;
    }

    fn messages(&self) -> u8 {
        self.older.saturating_add(self.newer)
    }

    fn count(&self, term: Term) -> u8 {
        self.entries
            .binary_search_by_key(&term, |count| count.term)
            .ok()
            .and_then(|at| self.entries.get(at))
            .map_or(0, |count| count.older + count.newer)
    }
}

mod packed_terms {
    use super::Terms;
    use serde::{Deserializer, Serializer, de::Error};
    use serde_bytes::{ByteBuf, Deserialize, Serialize};

    pub(super) fn serialize<S: Serializer>(terms: &Terms, s: S) -> Result<S::Ok, S::Error> {
        Serialize::serialize(&ByteBuf::from(terms.to_bytes()), s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Terms, D::Error> {
        let bytes: ByteBuf = Deserialize::deserialize(d)?;
        Terms::from_bytes(&bytes).ok_or_else(|| D::Error::custom("these are not packed terms"))
    }
}

mod packed_cues {
    use super::Cues;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(cues: &Cues, s: S) -> Result<S::Ok, S::Error> {
        cues.0.serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Cues, D::Error> {
        u32::deserialize(d).map(Cues)
    }
}

/// Three bytes of the term, then its two counts.
mod packed_counts {
    use super::{Count, GENERATION, KNOWN_LIMIT, TERMS_PER_MESSAGE};
    use serde::{Deserializer, Serializer, de::Error};
    use serde_bytes::{ByteBuf, Deserialize, Serialize};

    pub(super) fn serialize<S: Serializer>(counts: &[Count], s: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(counts.len() * 5);
        for count in counts {
            let [_, a, b, c] = count.term.to_be_bytes();
            bytes.extend([a, b, c, count.older, count.newer]);
        }
        Serialize::serialize(&ByteBuf::from(bytes), s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Count>, D::Error> {
        let bytes: ByteBuf = Deserialize::deserialize(d)?;
        let (chunks, rest) = bytes.as_chunks::<5>();
        let counts: Vec<Count> = chunks
            .iter()
            .map(|&[a, b, c, older, newer]| Count {
                term: u32::from_be_bytes([0, a, b, c]),
                older,
                newer,
            })
            .collect();
        let sound = rest.is_empty()
            && counts.len() <= KNOWN_LIMIT + TERMS_PER_MESSAGE
            && counts.windows(2).all(|pair| matches!(pair, [a, b] if a.term < b.term))
            && counts.iter().all(|count| count.older.max(count.newer) <= GENERATION);
        if sound { Ok(counts) } else { Err(D::Error::custom("these are not packed counts")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        let terms = Terms::of([text]);
        Said { terms, cues: Cues::of(text), speaker: Speaker::User, may_begin: true }
    }

    #[test]
    fn a_term_that_stands_everywhere_tells_less() {
        let mut window = Window::default();
        for i in 0..60 {
            window.push(said(if i % 10 == 0 { "hotel taxi" } else { "hotel" }));
        }
        let rarity = |word: &str| window.rarity(crate::terms::hash(word));
        assert!(rarity("hotel") < rarity("taxi") && rarity("taxi") < rarity("zebra"));
        assert!(window.known.messages() <= 2 * GENERATION);
    }

    #[test]
    fn bl7_the_window_is_bounded_and_restores_exactly() {
        let mut window = Window::default();
        for i in 0..200 {
            let text: String = (0..90).map(|j| format!("{} ", word(i * 90 + j))).collect();
            window.push(said(&text));
            assert!(window.said.len() <= KEPT);
            let bytes = rmp_serde::to_vec(&window).unwrap();
            assert!(bytes.len() < 8_000, "{}", bytes.len());
            assert_eq!(rmp_serde::from_slice::<Window>(&bytes).unwrap(), window);
        }
    }

    /// A bit above the words of content takes space only if it is set, and an unknown bit stays.
    #[test]
    fn cues_are_stored_as_a_number_that_is_as_long_as_it_must_be() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Stored(#[serde(with = "packed_cues")] Cues);
        for (bits, bytes) in [
            (0, vec![0x00]),
            (0x81, vec![0xcc, 0x81]),
            (0xffff, vec![0xcd, 0xff, 0xff]),
            (0x8000_0001, vec![0xce, 0x80, 0, 0, 1]),
        ] {
            let stored = Stored(Cues(bits));
            assert_eq!(rmp_serde::to_vec(&stored).unwrap(), bytes);
            assert_eq!(rmp_serde::from_slice::<Stored>(&bytes).unwrap(), stored);
        }
        assert_eq!(Cues(0xffff_ffff).content_words(), 63);
    }

    fn word(mut n: usize) -> String {
        let mut word = String::from("q");
        while n > 0 {
            word.push(char::from(b'a' + (n % 20) as u8));
            n /= 20;
        }
        word
    }
}
