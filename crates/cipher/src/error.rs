//! What can go wrong.

/// The error of every function in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is no key.
    #[error(
        "an encryption key has 32 bytes, as 64 hexadecimal digits or in base64 (`openssl rand -hex 32` makes one)"
    )]
    NoKey,
    /// The system gave no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// More is to be sealed at once than the cipher takes, 256 GiB.
    #[error("{bytes} bytes are more than can be sealed at once")]
    TooLong {
        /// How many there are.
        bytes: usize,
    },
}
