//! A bound on the work that a hostile text causes.
//!
//! Each occurrence of a secret's beginning is read separately. In a text that is nothing but beginnings, each could
//! be read up to the end, and the work would grow with the square of the length. Therefore a kind of secret may read
//! only a few times as much as there is text. From then on its occurrences are read less and less far.

/// How much of a text was read for a kind of secret.
#[derive(Clone, Default)]
pub(crate) struct Patience {
    read: usize,
    found: usize,
}

/// How many bytes may be read for each byte of the text before an occurrence is read half as far.
const PATIENCE: usize = 8;

/// How far each occurrence may be read at least. Most secrets are shorter, and most that are longer go on with more of
/// the same.
const SHORTEST: usize = 256;

impl Patience {
    /// How many bytes may be read from an occurrence at this place, if its longest form has that many. `None` if the place
    /// is inside what was found.
    pub(crate) fn allows(&self, at: usize, longest: usize) -> Option<usize> {
        let halvings = (self.read / (PATIENCE * (at + longest))).min(16);
        (at >= self.found).then_some((longest >> halvings).max(SHORTEST))
    }

    /// Counts bytes that were read.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.read += bytes;
    }

    /// Notes the end of a finding.
    pub(crate) fn find_until(&mut self, end: usize) {
        self.found = self.found.max(end);
    }

    #[cfg(test)]
    pub(crate) fn spent(&self) -> usize {
        self.read
    }
}
