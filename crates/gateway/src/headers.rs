//! Headers that are passed on.

use axum::http::header::{self, HeaderMap, HeaderName};

/// The prefix of the gateway's own headers, in requests and answers.
pub(crate) const OWN: &str = "x-foldback-";

/// Headers that belong to one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns all headers but those of one connection, those that `Connection` names, and the gateway's own. The
/// host is set for the other side.
pub(crate) fn passed(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let is_dropped = |name: &HeaderName| {
        let name = name.as_str();
        HOP_BY_HOP.contains(&name)
            || name == "host"
            || name.starts_with(OWN)
            || named.iter().any(|one| one == name)
    };
    let mut passed = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter(|(name, _)| !is_dropped(name)) {
        passed.append(name.clone(), value.clone());
    }
    passed
}

/// Returns the value of a header that is text.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers
        .get(name)
        .and_then(|value| str::from_utf8(value.as_bytes()).ok())
        .filter(|text| !text.is_empty())
}
