//! A provider's address.

use crate::GatewayError;
use reqwest::Url;
use std::net::IpAddr;

/// A provider's address, as clients are given it: with `/v1` behind it or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    base: Url,
}

impl Upstream {
    /// Reads an address.
    ///
    /// # Errors
    /// When it is no `http` or `https` address of a host, or says more than where: a key, a query.
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

    /// Where a request goes that came for this path and query. The path says the version: `/v1` at the end of the
    /// address, which clients of OpenAI's are given, is not repeated.
    pub(crate) fn url(&self, path_and_query: &str) -> Result<Url, GatewayError> {
        let base = self.base.as_str().trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        let url = Url::parse(&format!("{base}{path_and_query}"));
        url.map_err(|error| GatewayError::Upstream {
            address: self.base.to_string(),
            what: error.to_string(),
        })
    }

    /// Whether it is on this machine, where no proxy stands between.
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
