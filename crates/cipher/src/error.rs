//! The crate's error.

/// The error that every function of this crate returns.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a key.
    #[error(
        "an encryption key has 32 bytes, as 64 hexadecimal digits or in base64 (`openssl rand -hex 32` makes one)"
    )]
    NoKey,
    /// The system returned no random bytes.
    #[error("the system returned no random bytes: {0}")]
    Random(getrandom::Error),
    /// The data is larger than the cipher can seal at once, 256 GiB.
    #[error("{bytes} bytes are more than can be sealed at once")]
    TooLong {
        /// The size of the data, in bytes.
        bytes: usize,
    },
}
