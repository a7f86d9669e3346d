//! The key that a person keeps.

use crate::{Cipher, Error};
use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use std::fmt;
use std::str::FromStr;

/// The key of an encrypted store: 32 bytes, which are stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey([u8; 32]);

impl EncryptionKey {
    /// Creates a key from these bytes, which must be unguessable.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the cipher for one purpose. Ciphers for other purposes cannot open what it seals.
    #[must_use]
    pub fn cipher(&self, purpose: &str) -> Cipher {
        Cipher::new(self.0).derive(purpose)
    }
}

/// Never prints the key itself.
impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(..)")
    }
}

impl FromStr for EncryptionKey {
    type Err = Error;

    /// Reads 32 bytes, as 64 hexadecimal digits or in base64.
    fn from_str(text: &str) -> Result<Self, Error> {
        read_key(text).map(Self).ok_or(Error::NoKey)
    }
}

/// Returns the 32 bytes of a key that is written as 64 hexadecimal digits or in base64; `None` for anything else.
#[must_use]
pub fn read_key(text: &str) -> Option<[u8; 32]> {
    let text = text.trim().as_bytes();
    let read = HEXLOWER_PERMISSIVE.decode(text).or_else(|_| BASE64.decode(text));
    let read = read.or_else(|_| BASE64_NOPAD.decode(text));
    read.ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_a_key_is_read_in_the_forms_that_tools_print() {
        let hex = "7f3c9a1e5b8d2046e1c7a9f05d3b6812907e4f2ac8d15b36e09f7a4c2d8b1e65";
        let key: EncryptionKey = hex.parse().unwrap();
        for same in [
            format!("{hex}\n"),
            hex.to_uppercase(),
            BASE64.encode(&key.0),
            BASE64_NOPAD.encode(&key.0),
        ] {
            assert_eq!(same.parse::<EncryptionKey>().unwrap(), key, "{same}");
        }
        for wrong in ["", "abc", &hex[..62], &format!("{hex}00")] {
            assert!(matches!(wrong.parse::<EncryptionKey>(), Err(Error::NoKey)), "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "EncryptionKey(..)");
    }
}
