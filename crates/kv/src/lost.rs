//! The commits that a store has lost.

use std::fmt;

/// Commits that were acknowledged and that the store does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// The number of the last commit that was acknowledged.
    pub acknowledged: u64,
    /// The number of the last commit that the store holds. If it equals `acknowledged`, the store holds another commit
    /// under that number.
    pub held: u64,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, held } = self;
        match acknowledged.saturating_sub(*held) {
            0 => write!(f, "its last commit, number {held}, is not the one that was acknowledged"),
            1 => write!(f, "1 acknowledged commit is gone, number {acknowledged}"),
            gone => write!(f, "{gone} acknowledged commits are gone, up to number {acknowledged}"),
        }
    }
}
