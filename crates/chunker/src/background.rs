//! The weight of terms, measured on conversations at large.

use crate::terms::{Term, hash};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Returns how much `term` says about a topic: 0 for a term that occurs in every message, 1 for one
/// that was never seen. `B(t) = ln((N + 1) / (df + 1)) / ln(N + 1)` over N background messages.
pub(crate) fn background(term: Term) -> f32 {
    TABLE.get(&term).copied().unwrap_or(UNLISTED)
}

/// The weight of a term that is not among the 5,000 most frequent.
const UNLISTED: f32 = 0.9;

static TABLE: LazyLock<FxHashMap<Term, f32>> = LazyLock::new(|| {
    let mut table = FxHashMap::default();
    // Each line is a level in 255ths, followed by its stems. If two stems have the same hash, the
    // one listed first, which is the more frequent, counts.
    for line in include_str!("background.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let Some(level) = words.next().and_then(|level| level.parse::<u8>().ok()) else { continue };
        for stem in words {
            table.entry(hash(stem)).or_insert(f32::from(level) / 255.0);
        }
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_terms_tell_less() {
        assert!(TABLE.len() > 4_900, "{}", TABLE.len());
        assert!(background(hash("think")) < background(hash("hotel")));
        assert_eq!(background(hash("zyzzyva")), UNLISTED);
        assert!(TABLE.values().all(|b| (0.0..=1.0).contains(b)));
    }
}
