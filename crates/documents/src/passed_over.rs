//! The files of a folder that are no documents, and what is told of them.

use crate::Indexed;
use foldback::core::one_line;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

/// Files of a folder that are no documents, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Why.
    pub why: SkipReason,
    /// How many there are.
    pub files: usize,
    /// The first of them, up to 20, by their paths from the folder on.
    pub first: Vec<String>,
}

/// Why a file is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// It is a link.
    Link,
    /// It is neither a plain file nor a folder.
    Special,
    /// Its name has not the ending of a document.
    Ending,
    /// There are more documents than may be.
    Behind {
        /// How many may be.
        documents: usize,
    },
    /// Its name is no Unicode text.
    Name,
    /// It is larger than a document may be.
    Large {
        /// How large one may be, in bytes.
        most: u64,
    },
    /// It holds bytes that no text has.
    Binary,
    /// It is no UTF-8.
    NoUtf8,
    /// It is a PDF or HTML that cannot be understood.
    Damaged,
    /// It is a PDF that is locked by a password.
    Locked,
    /// It is a PDF or HTML without a word of text: a scan, say.
    NoText,
    /// It is a PDF that takes too long to understand.
    Slow,
    /// The system does not let it be read.
    Unreadable(ErrorKind),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("a link"),
            Self::Special => f.write_str("no plain file"),
            Self::Ending => f.write_str("not the ending of a text"),
            Self::Behind { documents } => write!(f, "behind the first {documents} documents"),
            Self::Name => f.write_str("a name that is no Unicode text"),
            Self::Large { most } => write!(f, "more than {most} bytes"),
            Self::Binary => f.write_str("bytes that no text has"),
            Self::NoUtf8 => f.write_str("no UTF-8"),
            Self::Damaged => f.write_str("cannot be understood"),
            Self::Locked => f.write_str("locked by a password"),
            Self::NoText => f.write_str("without text, as scans are"),
            Self::Slow => f.write_str("takes too long to understand"),
            Self::Unreadable(kind) => write!(f, "cannot be read: {kind}"),
        }
    }
}

/// Of files that are skipped for one reason, so many paths are kept.
const KEPT: usize = 20;

impl Skipped {
    /// Adds a file to those that are skipped.
    pub(crate) fn count(skipped: &mut BTreeMap<SkipReason, Self>, path: String, why: SkipReason) {
        let same = skipped.entry(why).or_insert(Self { why, files: 0, first: Vec::new() });
        same.files += 1;
        if same.first.len() < KEPT {
            same.first.push(path);
        }
    }

    /// In the order in which they are told.
    pub(crate) fn rarest_first(skipped: BTreeMap<SkipReason, Self>) -> Arc<[Self]> {
        let mut skipped: Vec<Self> = skipped.into_values().collect();
        skipped.sort_by(|a, b| (a.files, &a.first).cmp(&(b.files, &b.first)));
        skipped.into()
    }
}

/// Of files that were passed over for one reason, so many are named.
const NAMES: usize = 3;

/// So many reasons are told.
const REASONS: usize = 4;

/// How much is told of a name, in characters.
const WORDS: usize = 80;

impl Indexed {
    /// The files that were passed over, on one line: names by the reason, the rarest reason first; `None`
    /// where there are none.
    ///
    /// ```
    /// use foldback_documents::{Indexed, SkipReason, Skipped};
    ///
    /// let skipped = |files, first: &[&str], why| {
    ///     Skipped { why, files, first: first.iter().map(|path| path.to_string()).collect() }
    /// };
    /// let skipped = [
    ///     skipped(1, &["旧.txt"], SkipReason::NoUtf8),
    ///     skipped(9, &["1.png", "2.png", "3.png", "4.png"], SkipReason::Ending),
    /// ];
    /// assert_eq!(
    ///     Indexed { skipped: skipped.into(), ..Indexed::default() }.passed_over().as_deref(),
    ///     Some("旧.txt (no UTF-8); 1.png, 2.png, 3.png and 6 more (not the ending of a text)"),
    /// );
    /// ```
    #[must_use]
    pub fn passed_over(&self) -> Option<String> {
        let mut told: Vec<String> = self.skipped.iter().take(REASONS).map(told).collect();
        let others: usize = self.skipped.iter().skip(REASONS).map(|skipped| skipped.files).sum();
        if others > 0 {
            told.push(format!("and {others} more for other reasons"));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}

fn told(skipped: &Skipped) -> String {
    let names: Vec<String> =
        skipped.first.iter().take(NAMES).map(|path| one_line(path, WORDS)).collect();
    let more = match skipped.files.saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more} ({})", names.join(", "), skipped.why)
}
