//! Where the files of large payloads are kept.

use foldback::PayloadPlace;
use foldback_backend_store::Error;
use std::fmt;
use std::str::FromStr;

/// Where the files of large payloads are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payloads {
    /// In the store's folder.
    Store,
    /// At a place outside it.
    Elsewhere(PayloadPlace),
}

/// The word for the store's folder.
const STORE: &str = "store";

impl Payloads {
    /// The place outside the store's folder, if it is one.
    pub(crate) fn place(self) -> Option<PayloadPlace> {
        match self {
            Self::Store => None,
            Self::Elsewhere(place) => Some(place),
        }
    }
}

impl FromStr for Payloads {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.trim() {
            STORE => Ok(Self::Store),
            place => place.parse().map(Self::Elsewhere),
        }
    }
}

impl fmt::Display for Payloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store => f.write_str(STORE),
            Self::Elsewhere(place) => write!(f, "{place}"),
        }
    }
}
