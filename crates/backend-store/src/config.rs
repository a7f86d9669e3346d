//! How payloads are kept.

use crate::Error;

/// How a [`BackendStore`](crate::BackendStore) keeps payloads. Checked when the store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendConfig {
    /// Payloads of at most this many bytes live in the store's records, larger ones in files of
    /// their own: 64 KiB, up to which a record was measured to be cheaper than a file. At most
    /// [`BackendConfig::INLINE_LIMIT`].
    pub inline_max: usize,
    /// The greatest size of one payload in bytes: 16 GiB.
    pub max_bytes: u64,
    /// zstd's level, from 1 to 19: 3, which keeps up with a disk.
    pub level: i32,
}

impl BackendConfig {
    /// The greatest `inline_max`: 1 MiB. It bounds what reading a record can ever allocate.
    pub const INLINE_LIMIT: usize = 1 << 20;

    pub(crate) fn check(self) -> Result<Self, Error> {
        let wrong = |what: String| Err(Error::Config { what });
        if self.inline_max > Self::INLINE_LIMIT {
            return wrong(format!(
                "inline_max is {} bytes, and may be {} at most",
                self.inline_max,
                Self::INLINE_LIMIT
            ));
        }
        if self.max_bytes == 0 || self.max_bytes > 1 << 44 {
            return wrong(format!("max_bytes is {}, and may be 1 to 2^44", self.max_bytes));
        }
        if !(1..=19).contains(&self.level) {
            return wrong(format!("level is {}, and may be 1 to 19", self.level));
        }
        Ok(self)
    }

    /// The same, with payloads of at most this many bytes in the records.
    #[must_use]
    pub fn with_inline_max(self, inline_max: usize) -> Self {
        Self { inline_max, ..self }
    }

    /// The same, with payloads of at most this many bytes.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
    }

    /// The same, with this level of zstd.
    #[must_use]
    pub fn with_level(self, level: i32) -> Self {
        Self { level, ..self }
    }
}

impl Default for BackendConfig {
    fn default() -> Self {
        Self { inline_max: 64 << 10, max_bytes: 16 << 30, level: 3 }
    }
}
