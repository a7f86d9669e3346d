//! A key to a provider.

use serde::Deserialize;
use std::{fmt, sync::Arc};

/// A key to a provider. It never shows itself: `Debug` writes a placeholder, and there is no
/// `Display`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// What stands where a key would.
    const REDACTED: &str = "[key]";

    /// A key; white space around it (a line's end from a file) is dropped.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(key.trim().into())
    }

    /// The key itself, for the request that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Whether it can stand in a header.
    pub(crate) fn is_usable(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// The text without the key.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&*self.0, Self::REDACTED) }
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self::new(&key)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({})", Self::REDACTED)
    }
}
