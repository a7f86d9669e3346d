//! The errors of this crate.

use foldback_core::Prices;

/// An error of this crate. A model's mistake is not an error: it is answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of range.
    #[error("{setting} is {found}, but it has to be {expected}")]
    Config {
        /// The setting.
        setting: &'static str,
        /// Its allowed values.
        expected: &'static str,
        /// Its actual value.
        found: usize,
    },
    /// The prices are not usable.
    #[error(
        "the prices are read {}, write {} and plain {}, but each has to be a number of 0 or more, \
         and plain more than 0",
        .0.read,
        .0.write,
        .0.plain
    )]
    Prices(Prices),
    /// Messages or blocks could not be read, or searched.
    #[error(transparent)]
    Blocks(#[from] foldback_blockstore::Error),
    /// A grant could not be looked up.
    #[error(transparent)]
    Grants(#[from] foldback_kv::Error),
    /// A payload could not be read.
    #[error(transparent)]
    Payloads(#[from] foldback_backend_store::Error),
}
