//! Seals removed text so that only its owner can read it.

use super::{bound_to, place_of};
use crate::Error;
use crate::error::Failure;
use foldback_cipher::read_key;
use foldback_core::TodoId;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The key with which removed secrets are sealed. It is stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct RedactionKey([u8; 32]);

impl RedactionKey {
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Never shows the key itself.
impl fmt::Debug for RedactionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedactionKey(..)")
    }
}

impl FromStr for RedactionKey {
    type Err = Error;

    /// Reads 32 bytes, as 64 hexadecimal digits or in base64.
    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(Self(read_key(text).ok_or(Failure::RedactionKey)?))
    }
}

/// A piece of a message that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Removed {
    /// Where its mark is in the message's JSON, in bytes, and how long the mark is.
    pub(super) at: u64,
    pub(super) mark: u64,
    /// The removed text, byte for byte.
    pub(super) text: String,
}

/// Seals what was removed from one record of a todo: `nonce || sealed`.
pub(super) fn seal(
    key: &RedactionKey,
    todo: &TodoId,
    n: u64,
    removed: &[Removed],
) -> Result<Vec<u8>, Error> {
    let mut bytes = rmp_serde::to_vec(removed)
        .map_err(|_| Failure::Internal("what was removed has no bytes"))?;
    // Each todo has a key of its own, so random nonces suffice.
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(Failure::Random)?;
    cipher(key, todo)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(bound_to(todo, n)),
            &mut bytes,
        )
        .map_err(|_| Failure::Internal("what was removed cannot be sealed"))?;
    Ok([&nonce[..], &bytes].concat())
}

/// Opens what [`seal`] made.
///
/// # Errors
/// When it was sealed with another key or for another record or todo, or was changed.
pub(super) fn open(
    key: &RedactionKey,
    todo: &TodoId,
    n: u64,
    sealed: &[u8],
) -> Result<Vec<Removed>, Error> {
    let wrong = || Error::from(Failure::Sealed { todo: todo.clone(), place: place_of(n) });
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(wrong)?;
    let mut bytes = sealed.to_vec();
    let (nonce, bound) = (Nonce::assume_unique_for_key(*nonce), Aad::from(bound_to(todo, n)));
    let opened = cipher(key, todo)?.open_in_place(nonce, bound, &mut bytes).map_err(|_| wrong())?;
    rmp_serde::from_slice(opened).map_err(|_| wrong())
}

fn cipher(key: &RedactionKey, todo: &TodoId) -> Result<LessSafeKey, Error> {
    let mut hasher = blake3::Hasher::new_derive_key("foldback 2026-11-26 removed secrets");
    hasher.update(&key.0).update(todo.as_str().as_bytes());
    let key = UnboundKey::new(&CHACHA20_POLY1305, hasher.finalize().as_bytes());
    Ok(LessSafeKey::new(key.map_err(|_| Failure::Internal("a key has another length"))?))
}
