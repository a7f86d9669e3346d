//! Assigns each secret its number in its todo.

use super::RedactionKey;
use crate::Error;
use crate::error::Failure;
use crate::secret::Secret;
use foldback_core::TodoId;
use foldback_redaction::Finding;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The first bytes of a keyed digest: enough to tell the secrets of a todo apart.
type Digest = [u8; 16];

/// A secret shorter than this, or a password, could be guessed, and the guess checked against its digest.
const GUESSABLE: usize = 20;

/// The numbers of the secrets of one todo, from 1 on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Numbers {
    /// For each number, the digest of its secret; `None` if none is stored.
    digests: Vec<Option<Digest>>,
    /// The numbers that are known in this process.
    #[serde(skip)]
    known: HashMap<Digest, u32>,
    /// Whether their record is damaged, so that no new number can be assigned.
    #[serde(skip)]
    is_damaged: bool,
}

impl Numbers {
    /// A mark with a greater number is not taken for one of a damaged record: anyone can write
    /// `[redacted jwt 4000000000]`.
    pub(super) const MOST: u32 = 1 << 16;

    /// Reads the numbers in a record; `None` if it is not valid.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut numbers: Self = rmp_serde::from_slice(bytes).ok()?;
        let numbered = (1..).zip(&numbers.digests);
        numbers.known = numbered.filter_map(|(n, digest)| Some(((*digest)?, n))).collect();
        Some(numbers)
    }

    /// Returns the numbers of a damaged record.
    pub(super) fn damaged() -> Self {
        Self { is_damaged: true, ..Self::default() }
    }

    /// Marks numbers up to this one as taken, by secrets that are no longer known.
    pub(super) fn taken(highest: u32) -> Self {
        Self { digests: vec![None; highest.min(Self::MOST) as usize], ..Self::default() }
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        rmp_serde::to_vec(self)
            .map_err(|_| Failure::Internal("the numbers of secrets have no bytes").into())
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.digests.len()
    }

    /// Returns the number of a secret, assigning one to a new secret. Without an owner's key, the digest of a
    /// guessable secret is not stored: a reader of the store could check guesses against it. Such a secret keeps its
    /// number as long as the session lives.
    pub(super) fn of(&mut self, secret: &Finding, digester: &Digester) -> u32 {
        let digest = digester.digest(secret);
        if let Some(known) = self.known.get(&digest) {
            return *known;
        }
        let is_kept = digester.is_owners || !is_guessable(secret);
        self.digests.push(is_kept.then_some(digest));
        let n = u32::try_from(self.digests.len()).unwrap_or(u32::MAX);
        self.known.insert(digest, n);
        n
    }
}

fn is_guessable(secret: &Finding) -> bool {
    secret.secret.len() < GUESSABLE
        || secret.kind.contains("password")
        || secret.kind.contains("basic")
}

/// The key for the digests of a todo's secrets.
pub(super) struct Digester {
    key: [u8; 32],
    /// Whether it is derived from the owner's key, which is nowhere in the store.
    is_owners: bool,
}

impl Digester {
    pub(super) fn new(owners: Option<&RedactionKey>, store: &Secret, todo: &TodoId) -> Self {
        let secret = owners.map_or(store, RedactionKey::bytes);
        let mut hasher = blake3::Hasher::new_derive_key("foldback 2026-11-26 numbers of secrets");
        hasher.update(secret).update(todo.as_str().as_bytes());
        Self { key: *hasher.finalize().as_bytes(), is_owners: owners.is_some() }
    }

    fn digest(&self, secret: &Finding) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(secret.kind.as_bytes()).update(&[0]).update(secret.secret.as_bytes());
        let mut digest = Digest::default();
        hasher.finalize_xof().fill(&mut digest);
        digest
    }
}
