//! The settings of the store.

use crate::Error;

/// How a [`BackendStore`](crate::BackendStore) keeps payloads. Checked when the store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendConfig {
    /// Payloads of at most this many bytes are kept in the store's records, larger ones in separate
    /// files. The default is 64 KiB, up to which a record was measured to be cheaper than a file.
    /// At most [`BackendConfig::INLINE_LIMIT`].
    pub inline_max: usize,
    /// The maximum size of one payload in bytes. The default is 16 GiB.
    pub max_bytes: u64,
    /// The zstd level, from 1 to 19. The default is 3, which keeps up with a disk.
    pub level: i32,
}

impl BackendConfig {
    /// The maximum of `inline_max`: 1 MiB. It limits how much reading a record can allocate.
    pub const INLINE_LIMIT: usize = 1 << 20;

    pub(crate) fn check(self) -> Result<Self, Error> {
        let wrong = |what: String| Err(Error::Config { what });
        if self.inline_max > Self::INLINE_LIMIT {
            return wrong(format!(
                "inline_max is {} bytes, but may be at most {}",
                self.inline_max,
                Self::INLINE_LIMIT
            ));
        }
        if self.max_bytes == 0 || self.max_bytes > 1 << 44 {
            return wrong(format!("max_bytes is {}, but must be from 1 to 2^44", self.max_bytes));
        }
        if !(1..=19).contains(&self.level) {
            return wrong(format!("level is {}, but must be from 1 to 19", self.level));
        }
        Ok(self)
    }

    /// Returns the same settings, with payloads of at most this many bytes in the records.
    #[must_use]
    pub fn with_inline_max(self, inline_max: usize) -> Self {
        Self { inline_max, ..self }
    }

    /// Returns the same settings, with payloads of at most this many bytes.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
    }

    /// Returns the same settings, with this zstd level.
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
