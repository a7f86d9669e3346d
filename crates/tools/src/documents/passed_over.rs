//! What is told of the files of a folder that are no documents.

use super::{Indexed, Skipped};
use foldback::core::one_line;
use std::collections::BTreeMap;

/// Of files that were passed over for one reason, so many are named.
const NAMES: usize = 3;

/// So many reasons are told.
const REASONS: usize = 4;

/// How much is told of a name or a reason, in characters.
const WORDS: usize = 80;

impl Indexed {
    /// The files that were passed over, on one line: names by the reason, the rarest reason first; `None`
    /// where there are none.
    ///
    /// ```
    /// use foldback_tools::{Indexed, Skipped};
    ///
    /// let skipped = |path: &str, why: &str| Skipped { path: path.into(), why: why.into() };
    /// let pictures = (1..=9).map(|n| skipped(&format!("{n}.png"), "not the ending of a text"));
    /// let skipped = pictures.chain([skipped("旧.txt", "no UTF-8 from byte 0 on")]).collect();
    /// assert_eq!(
    ///     Indexed { skipped, ..Indexed::default() }.passed_over().as_deref(),
    ///     Some("旧.txt (no UTF-8 from byte 0 on); 1.png, 2.png, 3.png and 6 more (not the ending of a text)"),
    /// );
    /// ```
    #[must_use]
    pub fn passed_over(&self) -> Option<String> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for Skipped { path, why } in &self.skipped {
            reasons.entry(why).or_default().push(path);
        }
        let mut reasons: Vec<(&str, Vec<&str>)> = reasons.into_iter().collect();
        // The paths stand in their order, and so do reasons of as many files.
        reasons.sort_by_key(|(_, paths)| (paths.len(), paths.first().copied()));
        let mut told: Vec<String> =
            reasons.iter().take(REASONS).map(|(why, paths)| reason(why, paths)).collect();
        let others: usize = reasons.iter().skip(REASONS).map(|(_, paths)| paths.len()).sum();
        if others > 0 {
            told.push(format!("and {others} more for other reasons"));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}

fn reason(why: &str, paths: &[&str]) -> String {
    let names: Vec<String> = paths.iter().take(NAMES).map(|path| one_line(path, WORDS)).collect();
    let more = match paths.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more} ({})", names.join(", "), one_line(why, WORDS))
}
