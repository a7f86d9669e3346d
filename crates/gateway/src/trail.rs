//! What precedes a message, as a number.

/// What precedes a message, as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trail(pub(crate) u64);

impl Trail {
    /// Returns what precedes the next one.
    #[must_use]
    pub(crate) fn then(self, what: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0.to_le_bytes()).update(what);
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        Self(u64::from_le_bytes(first))
    }
}
