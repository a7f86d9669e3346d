//! How lines are written to the file: as they are, or sealed if the store is encrypted.

use crate::Error;
use crate::error::Failure;
use data_encoding::BASE64;
use foldback_kv::{Cipher, Kv};
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(super) struct Coding(Option<Cipher>);

/// What sealed lines are bound to. Their checks show that none was left out or moved.
const PLACE: &[u8] = b"audit log";

impl Coding {
    pub(super) fn of(kv: &dyn Kv) -> Result<Self, Error> {
        Ok(Self(kv.cipher(0)?))
    }

    /// Encodes a line with its line break, as it is written.
    pub(super) fn write(&self, line: String) -> Result<String, Error> {
        let Some(cipher) = &self.0 else { return Ok(line) };
        let sealed = cipher.seal(PLACE, line.trim_end().as_bytes());
        let sealed = sealed.map_err(foldback_kv::Error::from).map_err(Failure::Kv)?;
        Ok(BASE64.encode(&sealed) + "\n")
    }

    /// Decodes a line without its line break; `None` if it does not open.
    pub(super) fn read<'l>(&self, line: &'l [u8]) -> Option<Cow<'l, [u8]>> {
        let Some(cipher) = &self.0 else { return Some(Cow::Borrowed(line)) };
        cipher.open(PLACE, &BASE64.decode(line).ok()?).map(Cow::Owned)
    }
}
