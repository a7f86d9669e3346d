//! The cipher that seals and opens bytes.

use crate::Error;
use chacha20::{R20, hchacha};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use std::fmt;

/// The length of the nonce with which sealed bytes begin.
pub const NONCE_BYTES: usize = 24;

/// The length of the tag with which sealed bytes end.
const TAG_BYTES: usize = 16;

/// How many bytes sealing adds.
pub const OVERHEAD_BYTES: usize = NONCE_BYTES + TAG_BYTES;

/// The context that binds the derivation of keys to this program.
const CONTEXT: &str = "foldback 2026-11-26 encryption at rest";

/// A key in use, for one purpose.
#[derive(Clone, PartialEq, Eq)]
pub struct Cipher([u8; 32]);

impl Cipher {
    /// Creates a cipher from this key.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Creates a cipher with a new random key.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn random() -> Result<Self, Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(Error::Random)?;
        Ok(Self(key))
    }

    /// Returns the key, to be sealed with another one.
    #[must_use]
    pub fn key(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives the cipher of this key for one purpose.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.0).update(purpose.as_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// Returns a keyed digest (BLAKE3): without the key, nobody can compute it, or tell which bytes it belongs to.
    #[must_use]
    pub fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.derive("digests").0, bytes).as_bytes()
    }

    /// Seals bytes for a place: a nonce, the sealed bytes, and their tag.
    ///
    /// # Errors
    /// [`Error::Random`] and [`Error::TooLong`].
    pub fn seal(&self, place: &[u8], bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(Error::Random)?;
        self.seal_with(nonce, place, bytes)
    }

    fn seal_with(
        &self,
        nonce: [u8; NONCE_BYTES],
        place: &[u8],
        bytes: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let too_long = || Error::TooLong { bytes: bytes.len() };
        let mut sealed = Vec::with_capacity(OVERHEAD_BYTES + bytes.len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(bytes);
        let (key, rest) = self.of_nonce(&nonce).ok_or_else(too_long)?;
        let body = sealed.get_mut(NONCE_BYTES..).ok_or_else(too_long)?;
        let tag = key.seal_in_place_separate_tag(rest, Aad::from(place), body);
        sealed.extend_from_slice(tag.map_err(|_| too_long())?.as_ref());
        Ok(sealed)
    }

    /// Opens bytes that were sealed for this place; `None` for anything else.
    #[must_use]
    pub fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let (key, rest) = self.of_nonce(nonce)?;
        let mut bytes = sealed.to_vec();
        let len = key.open_in_place(rest, Aad::from(place), &mut bytes).ok()?.len();
        bytes.truncate(len);
        Some(bytes)
    }

    /// Returns the key that belongs to a nonce, and the rest of the nonce to use with it.
    fn of_nonce(&self, nonce: &[u8; NONCE_BYTES]) -> Option<(LessSafeKey, Nonce)> {
        let (first, last) = nonce.split_first_chunk::<16>()?;
        let key = hchacha::<R20>(&self.0.into(), &(*first).into());
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).ok()?;
        let mut rest = [0; 12];
        rest.iter_mut().skip(4).zip(last).for_each(|(to, from)| *to = *from);
        Some((LessSafeKey::new(key), Nonce::assume_unique_for_key(rest)))
    }
}

/// Never prints the key itself.
impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;
    use std::collections::HashSet;

    /// The vector of draft-irtf-cfrg-xchacha-03, appendix A.3.1.
    #[test]
    fn s14_it_is_xchacha20_poly1305() {
        let key: Vec<u8> = (0x80..0xa0).collect();
        let nonce: Vec<u8> = (0x40..0x58).collect();
        let place = HEXLOWER.decode(b"50515253c0c1c2c3c4c5c6c7").unwrap();
        let text =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
            future, sunscreen would be it.";
        let cipher = Cipher::new(key.try_into().unwrap());
        let sealed = cipher.seal_with(nonce.try_into().unwrap(), &place, text).unwrap();
        let (_, body) = sealed.split_at(NONCE_BYTES);
        assert!(
            HEXLOWER
                .encode(body)
                .starts_with("bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb")
        );
        assert!(HEXLOWER.encode(body).ends_with("c0875924c1c7987947deafd8780acf49"));
        assert_eq!(cipher.open(&place, &sealed).unwrap(), text);
    }

    #[test]
    fn s14_changed_bytes_open_nowhere() {
        let cipher = Cipher::random().unwrap();
        for bytes in [b"".as_slice(), "一二三, fold".as_bytes()] {
            let sealed = cipher.seal(b"7", bytes).unwrap();
            assert_eq!(sealed.len(), bytes.len() + OVERHEAD_BYTES);
            assert_eq!(cipher.open(b"7", &sealed).as_deref(), Some(bytes));
            for at in 0..sealed.len() {
                let mut flipped = sealed.clone();
                flipped[at] ^= 0x10;
                assert_eq!(cipher.open(b"7", &flipped), None, "byte {at}");
                assert_eq!(cipher.open(b"7", &sealed[..at]), None, "cut at {at}");
            }
            assert_eq!(cipher.open(b"8", &sealed), None);
            assert_eq!(cipher.derive("other").open(b"7", &sealed), None);
            assert_eq!(Cipher::random().unwrap().open(b"7", &sealed), None);
        }
    }

    #[test]
    fn s14_no_two_sealings_share_a_nonce() {
        let cipher = Cipher::random().unwrap();
        let nonces: HashSet<Vec<u8>> = (0..20_000)
            .map(|_| cipher.seal(b"", b"same").unwrap()[..NONCE_BYTES].to_vec())
            .collect();
        assert_eq!(nonces.len(), 20_000);
    }
}
