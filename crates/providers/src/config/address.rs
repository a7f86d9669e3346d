//! Addresses, as they are displayed and compared.

/// Removes from an address what may be secret: user and password, query and fragment.
#[must_use]
pub fn public_url(url: &str) -> String {
    let (front, rest) = match url.rsplit_once('@') {
        Some((before, rest)) => {
            let scheme = before.split_once("://").map(|(scheme, _)| format!("{scheme}://"));
            (format!("{}[...]@", scheme.unwrap_or_default()), rest)
        }
        None => (String::new(), url),
    };
    match rest.find(['?', '#']) {
        Some(end) => format!("{front}{}[...]", &rest[..=end]),
        None => format!("{front}{rest}"),
    }
}

/// Returns whether two addresses lead to the same server: scheme, host and port.
#[must_use]
pub fn is_same_server(one: &str, other: &str) -> bool {
    matches!((host(one), host(other)), (Some(one), Some(other)) if one == other)
}

/// Returns the scheme, host and port of an address, for comparison.
pub(super) fn host(url: &str) -> Option<(String, Option<String>, Option<u16>)> {
    let url = reqwest::Url::parse(url).ok()?;
    Some((url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port()))
}
