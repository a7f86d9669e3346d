//! A provider's address.

use crate::GatewayError;
use reqwest::Url;
use std::net::IpAddr;

/// A provider's address, as clients are given it: with or without a trailing `/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    base: Url,
}

impl Upstream {
    /// Parses an address.
    ///
    /// # Errors
    /// When it is not an `http` or `https` address of a host, or contains more than the place: a key, a query.
    pub fn new(address: &str) -> Result<Self, GatewayError> {
        let wrong = |what: String| GatewayError::Upstream { address: address.to_owned(), what };
        let base = Url::parse(address).map_err(|error| wrong(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(wrong("it does not begin with http:// or https://".to_owned()));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(GatewayError::UpstreamKey);
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("it has a query or a fragment".to_owned()));
        }
        Ok(Self { base })
    }

    /// Returns where a request for this path and query goes. Addresses of Anthropic's API are given without a
    /// version, which is in the path; those of OpenAI's with one, whatever its name.
    ///
    /// # Errors
    /// When the path leads out of this address.
    pub(crate) fn url(&self, path: &str, is_anthropic: bool) -> Result<Url, GatewayError> {
        if leads_elsewhere(path) {
            return Err(GatewayError::Path);
        }
        let base = self.base.as_str().trim_end_matches('/');
        let bare = base.strip_suffix("/v1").unwrap_or(base);
        let versioned =
            path.strip_prefix("/v1").filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        let versioned = versioned.filter(|_| self.base.path() != "/");
        let url = match versioned {
            Some(rest) if !is_anthropic => format!("{base}{rest}"),
            _ => format!("{bare}{path}"),
        };
        let url = Url::parse(&url);
        url.map_err(|error| GatewayError::Upstream {
            address: self.base.to_string(),
            what: error.to_string(),
        })
    }

    /// Returns whether it is on this machine, so that no proxy is used.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

impl std::fmt::Display for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
    }
}

/// Returns whether a path, its query aside, has a segment of dots or a backslash, also a percent-encoded one.
fn leads_elsewhere(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default().to_ascii_lowercase();
    let path = path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    path.contains('\\') || path.split('/').any(|segment| matches!(segment, "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::Upstream;

    /// GW2: no path leads out of the provider's address, which may be a room of a shared server.
    #[test]
    fn gw2_a_path_stays_below_the_address() {
        let upstream = Upstream::new("https://h/team/港/v1").unwrap();
        for path in [
            "/v1/../admin",
            "/v1/%2e%2E/admin",
            "/v1/.%2e/admin",
            "/v1/..",
            "/v1/./models",
            "/..",
            "/v1/..%2fadmin",
            "/v1/a%5c..%5cadmin",
            "/v1/..\\admin",
            "/v1/%2e%2e?a",
        ] {
            for is_anthropic in [false, true] {
                assert!(upstream.url(path, is_anthropic).is_err(), "{path}");
            }
        }
        for path in ["/v1/files/..a.b", "/v1/models/a%2Fb.c", "/v1/models?q=/../%5c", "//v1/..."] {
            let url = upstream.url(path, true).unwrap();
            assert!(url.as_str().starts_with("https://h/team/"), "{url}");
        }
    }

    #[test]
    fn gw2_the_version_stands_once_in_an_address() {
        for (base, is_anthropic, path, expected) in [
            (
                "https://api.anthropic.com",
                true,
                "/v1/messages?a",
                "https://api.anthropic.com/v1/messages?a",
            ),
            ("https://h/anthropic", true, "/v1/messages", "https://h/anthropic/v1/messages"),
            ("https://h/v1", true, "/v1/messages", "https://h/v1/messages"),
            ("https://h/v1/", false, "/v1/responses", "https://h/v1/responses"),
            ("https://h", false, "/v1/responses", "https://h/v1/responses"),
            (
                "https://h/api/paas/v4",
                false,
                "/v1/chat/completions",
                "https://h/api/paas/v4/chat/completions",
            ),
            ("https://h/v1beta/openai", false, "/v1/models", "https://h/v1beta/openai/models"),
            ("https://h/v1", false, "/other", "https://h/other"),
            ("https://h/v4", false, "/v1beta/models", "https://h/v4/v1beta/models"),
        ] {
            let url = Upstream::new(base).unwrap().url(path, is_anthropic).unwrap();
            assert_eq!(url.as_str(), expected, "{base}");
        }
    }
}
