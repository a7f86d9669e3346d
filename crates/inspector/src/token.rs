//! The token in the printed address, and the cookie that a browser gets for it.

use crate::InspectorError;
use data_encoding::HEXLOWER;

/// Random bytes of a secret.
const BYTES: usize = 32;

/// A secret of this process. It is compared in constant time.
pub(crate) struct Secret {
    text: String,
    hash: blake3::Hash,
}

impl Secret {
    /// Makes a secret from random bytes of the system.
    ///
    /// # Errors
    /// When the system gives none.
    pub(crate) fn random() -> Result<Self, InspectorError> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(|error| InspectorError::Random(error.to_string()))?;
        let text = HEXLOWER.encode(&bytes);
        Ok(Self { hash: blake3::hash(text.as_bytes()), text })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is the secret. Digests are compared in constant time.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        blake3::hash(given) == self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_differ() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_eq!(one.text().len(), 2 * BYTES);
        assert!(one.is(one.text().as_bytes()) && !one.is(other.text().as_bytes()));
        assert!(!one.is(b"") && !one.is(&one.text().as_bytes()[1..]));
    }
}
