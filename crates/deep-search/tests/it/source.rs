//! A source that a search found.

use foldback_deep_search::Source;

/// A source at this URL, and by this short one.
pub(crate) fn source(short_url: &str, url: &str) -> Source {
    Source {
        label: "a".to_owned(),
        short_url: short_url.to_owned(),
        url: url.to_owned(),
        title: "A".to_owned(),
        bytes: None,
    }
}
