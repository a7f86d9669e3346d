//! The marks around recorded text.

use crate::quote::escaped;
use foldback_core::{TodoId, Trust};
use std::fmt;

/// The element around recorded text, before its nonce.
pub(crate) const MARK: &str = "recalled";

/// The number of letters of the nonce.
const LETTERS: usize = 4;

/// The marks around recorded text of one todo: `<recalled-kdmt …>` and `</recalled-kdmt>`.
///
/// The four letters are the todo's nonce: a keyed hash of its id, so that they are the same in every
/// process that knows the secret, and nobody who wrote a text before can know them. There are
/// 457,000 of them; a fifth letter would cost one more token for each pair of marks.
///
/// In recalled text, everything that looks like a mark is escaped, so that an author who guesses the
/// nonce, or has seen it, cannot forge one there. What is in view as it was recorded (the results of
/// tools among the latest messages, what the user says) is not escaped: there only the nonce
/// distinguishes a mark that was made here from one that was written into a page.
///
/// ```
/// use foldback_core::TodoId;
/// use foldback_disclosure::Marks;
///
/// let (trip, report) = (TodoId::new("trip")?, TodoId::new("report")?);
/// assert_eq!(Marks::new(&[7; 32], &trip), Marks::new(&[7; 32], &trip));
/// assert_ne!(Marks::new(&[7; 32], &trip), Marks::new(&[7; 32], &report));
/// assert_ne!(Marks::new(&[7; 32], &trip), Marks::new(&[8; 32], &trip));
/// # Ok::<(), foldback_core::IdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Marks([u8; LETTERS]);

impl Marks {
    /// Returns the marks of a todo, derived from the secret of its store.
    #[must_use]
    pub fn new(secret: &[u8; 32], todo: &TodoId) -> Self {
        let hash = blake3::keyed_hash(secret, todo.as_str().as_bytes());
        let [a, b, c, d, ..] = *hash.as_bytes();
        let mut number = u32::from_le_bytes([a, b, c, d]);
        // Only letters: an o200k token holds two of them, and fewer of mixed letters and digits.
        let mut letters = [b'a'; LETTERS];
        for letter in &mut letters {
            *letter += (number % 26) as u8;
            number /= 26;
        }
        Self(letters)
    }

    /// Returns the mark before recorded text. Everything in it has a form that cannot end it.
    pub(crate) fn open(self, origin: &Origin<'_>) -> String {
        format!("<{self}{origin}>")
    }

    /// Returns the mark after it.
    pub(crate) fn close(self) -> String {
        format!("</{self}>")
    }

    /// Returns a word with the nonce, as `same-kdmt`: a name for what the view says in the middle of recorded text.
    pub(crate) fn name(self, word: &str) -> String {
        format!("{word}{}", self.to_string().trim_start_matches(MARK))
    }

    /// Returns recorded text in marks, as one text.
    pub(crate) fn quoted(self, origin: &Origin<'_>, text: &str) -> String {
        format!("{}\n{}\n{}", self.open(origin), escaped(text), self.close())
    }
}

/// The element's name, as `recalled-kdmt`.
impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}-")?;
        self.0.iter().try_for_each(|letter| write!(f, "{}", *letter as char))
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Marks({self})")
    }
}

/// The origin of recorded text, as its opening mark states it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin<'a> {
    pub(crate) block: Option<&'a str>,
    pub(crate) time: Option<&'a str>,
    pub(crate) payload: Option<&'a str>,
    pub(crate) kind: Option<&'a str>,
    /// The origin of its words, if they are from one message.
    pub(crate) from: Option<&'a str>,
    pub(crate) trust: Trust,
    pub(crate) note: Option<&'static str>,
}

/// Writes them as attributes, each after a space.
impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attributes = [
            ("block", self.block),
            ("time", self.time),
            ("ref", self.payload),
            ("kind", self.kind),
            ("from", self.from),
            ("trust", Some(self.trust.as_str())),
            ("note", self.note),
        ];
        let known = attributes.into_iter().filter_map(|(key, value)| Some((key, value?)));
        known.into_iter().try_for_each(|(key, value)| write!(f, " {key}=\"{value}\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S5: the nonce is four letters, each equally likely, and of 1,000 todos hardly two have the same:
    /// chance gives one such pair.
    #[test]
    fn s5_nonces_are_letters_and_differ() {
        let of = |n: u32| Marks::new(&[7; 32], &TodoId::new(&format!("todo-{n}")).unwrap());
        let mut seen: Vec<[u8; LETTERS]> = (0..1_000).map(|n| of(n).0).collect();
        let counts = seen.iter().flatten().fold([0_u32; 26], |mut counts, letter| {
            counts[usize::from(letter - b'a')] += 1;
            counts
        });
        assert!(counts.iter().all(|count| (90..=220).contains(count)), "{counts:?}");
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() >= 995, "{}", seen.len());
        assert_eq!(of(1).to_string().len(), "recalled-kdmt".len());
        assert_eq!(of(1).close(), format!("</{}>", of(1)));
    }
}
