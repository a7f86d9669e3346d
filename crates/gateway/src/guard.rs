//! Access control.

use axum::http::{HeaderMap, Uri};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// The header that carries the token.
pub const TOKEN: &str = "x-foldback-token";

/// Decides which requests are allowed: those of programs on this machine, and of those that know the token. A page
/// in a browser can also reach this machine, under a name of its own; its requests show that in `Host` and `Origin`.
pub(crate) struct Guard {
    is_local: bool,
    token: Option<blake3::Hash>,
}

impl Guard {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Self {
        let token = token.map(|token| blake3::hash(token.as_bytes()));
        Self { is_local: address.ip().is_loopback(), token }
    }

    /// Returns whether a request has the token; `None` if it needs none.
    pub(crate) fn has_token(&self, headers: &HeaderMap) -> Option<bool> {
        let token = self.token.as_ref()?;
        let given = headers.get(TOKEN).map(|given| blake3::hash(given.as_bytes()));
        // Digests are compared in constant time.
        Some(given.as_ref() == Some(token))
    }

    /// Returns why a request is refused that has the token it needs; `None` if it is allowed.
    pub(crate) fn refuses(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        let host = uri.host().map(Cow::Borrowed).or_else(|| value(headers, "host"));
        let is_here = host.as_deref().is_some_and(|host| is_local_name(host_of(host)));
        if self.is_local && !is_here {
            return Some(format!("the host {:?} is not this machine", host.unwrap_or_default()));
        }
        let origin = value(headers, "origin")?;
        let host = origin.split_once("://").map(|(_, rest)| host_of(rest));
        match host.is_some_and(is_local_name) {
            true => None,
            false => Some(format!("a page from {origin:?} may not send requests")),
        }
    }
}

/// Returns the value of a header, whatever bytes it holds; `None` if it is missing.
fn value<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()))
}

/// Returns the host without its port.
fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => authority.split(':').next().unwrap_or(authority),
    }
}

/// Returns whether the host of an authority, such as `localhost:8377` or `[::1]:80`, is this machine itself.
#[must_use]
pub fn is_this_machine(authority: &str) -> bool {
    is_local_name(host_of(authority))
}

fn is_local_name(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
