//! The key to a provider.

use serde::{Deserialize, Serialize, Serializer};
use std::{fmt, sync::Arc};

/// The key to a provider. It is never shown: `Debug` and `Serialize` write a placeholder, and there is no `Display`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// The placeholder for a key.
    const REDACTED: &str = "[key]";

    /// The shortest beginning of a key that is redacted. A shorter one shows only whose key it is, as `sk-ant-` does.
    const SHORTEST_BEGINNING: usize = 8;

    /// Creates a key; white space around it (a line end from a file) is dropped.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(key.trim().into())
    }

    /// Returns the key itself, for the request that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether it can be sent in a header.
    pub(crate) fn is_usable(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// Removes the key from a text, and its beginning if the text broke off within it.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        if self.0.len() < Self::SHORTEST_BEGINNING {
            return self.redact_word(text);
        }
        let text = text.replace(&*self.0, Self::REDACTED);
        let beginnings =
            (Self::SHORTEST_BEGINNING..self.0.len()).filter_map(|end| self.0.get(..end));
        match beginnings.rev().find_map(|beginning| text.strip_suffix(beginning)) {
            Some(before) => format!("{before}{}", Self::REDACTED),
            None => text,
        }
    }

    /// Removes a short key, but not from the middle of a word: `x` says nothing about a key.
    fn redact_word(&self, text: &str) -> String {
        let is_within = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let mut redacted = String::new();
        let mut from = 0;
        for (at, key) in text.match_indices(&*self.0) {
            let (before, after) = (text.get(..at), text.get(at + key.len()..));
            let is_word = is_within(before.and_then(|text| text.chars().next_back()))
                || is_within(after.and_then(|text| text.chars().next()));
            redacted.push_str(text.get(from..at).unwrap_or_default());
            redacted.push_str(if is_word { key } else { Self::REDACTED });
            from = at + key.len();
        }
        redacted.push_str(text.get(from..).unwrap_or_default());
        redacted
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

impl Serialize for ApiKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_key_is_removed_only_where_it_stands_alone() {
        for (key, text, redacted) in [
            ("x", "the context is exceeded: x", "the context is exceeded: [key]"),
            ("x", "x, \"x\" 键 x。", "[key], \"[key]\" 键 [key]。"),
            ("x", "键x xx", "键x xx"),
            ("test", "latest test (test)", "latest [key] ([key])"),
            ("12345678", "no12345678no", "no[key]no"),
            ("", "any", "any"),
        ] {
            assert_eq!(ApiKey::new(key).redact(text), redacted, "{key}");
        }
    }
}
