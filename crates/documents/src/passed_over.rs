//! The files of a folder that are not documents, and what is reported about them.

use crate::Indexed;
use foldback::core::one_line;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

/// Files of a folder that are not documents, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The reason.
    pub why: SkipReason,
    /// How many there are.
    pub files: usize,
    /// The first of them, up to 20, by their paths in the folder.
    pub first: Vec<String>,
}

/// The reason why a file is not a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// It is a link.
    Link,
    /// It is neither a regular file nor a folder.
    Special,
    /// Its name does not have the extension of a document.
    Ending,
    /// There are more documents than the limit.
    Behind {
        /// The limit.
        documents: usize,
    },
    /// Its name is not Unicode text.
    Name,
    /// It is larger than the limit for a document.
    Large {
        /// The limit in bytes.
        most: u64,
    },
    /// It contains bytes that no text has.
    Binary,
    /// It is not UTF-8.
    NoUtf8,
    /// It is a PDF or HTML that cannot be parsed.
    Damaged,
    /// It is a PDF that is locked by a password.
    Locked,
    /// It is a PDF or HTML without any text, such as a scan.
    NoText,
    /// It is a PDF that takes too long to parse.
    Slow,
    /// The system does not let it be read.
    Unreadable(ErrorKind),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("a link"),
            Self::Special => f.write_str("not a regular file"),
            Self::Ending => f.write_str("unsupported file extension"),
            Self::Behind { documents } => write!(f, "beyond the first {documents} documents"),
            Self::Name => f.write_str("a file name that is not Unicode"),
            Self::Large { most } => write!(f, "more than {most} bytes"),
            Self::Binary => f.write_str("binary content"),
            Self::NoUtf8 => f.write_str("not UTF-8"),
            Self::Damaged => f.write_str("cannot be parsed"),
            Self::Locked => f.write_str("locked by a password"),
            Self::NoText => f.write_str("no text, perhaps a scan"),
            Self::Slow => f.write_str("takes too long to parse"),
            Self::Unreadable(kind) => write!(f, "cannot be read: {kind}"),
        }
    }
}

/// How many paths are kept of the files that are skipped for one reason.
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

    /// Returns them in the order in which they are reported.
    pub(crate) fn rarest_first(skipped: BTreeMap<SkipReason, Self>) -> Arc<[Self]> {
        let mut skipped: Vec<Self> = skipped.into_values().collect();
        skipped.sort_by(|a, b| (a.files, &a.first).cmp(&(b.files, &b.first)));
        skipped.into()
    }
}

/// How many of the files that were passed over for one reason are named.
const NAMES: usize = 3;

/// How many reasons are reported.
const REASONS: usize = 4;

/// How much of a name is shown, in characters.
const WORDS: usize = 80;

impl Indexed {
    /// Returns the files that were passed over, on one line: names by reason, the rarest reason first;
    /// `None` if there are none.
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
    ///     Some("旧.txt (not UTF-8); 1.png, 2.png, 3.png and 6 more (unsupported file extension)"),
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
