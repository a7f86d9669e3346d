//! Errors before clients are served, and in replays.

use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no gateway, or no replay.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// An invalid address of a provider.
    #[error(
        "{address:?} is not a provider's address: {what}; expected something like https://api.anthropic.com"
    )]
    Upstream {
        /// What was given.
        address: String,
        /// What is wrong with it.
        what: String,
    },
    /// An address that contains a user name or a password, which is not repeated.
    #[error(
        "a provider's address must not contain a user name or a password; the client sends its own key"
    )]
    UpstreamKey,
    /// A path of a request that leads out of the provider's address.
    #[error(
        "the path has a segment of dots or a backslash, which a provider's address must not have"
    )]
    Path,
    /// An address that other machines can reach, without a token.
    #[error(
        "{0} can be reached from other machines; an address of this machine (127.0.0.1) or a token was expected"
    )]
    Exposed(SocketAddr),
    /// The HTTP client could not be created.
    #[error("cannot create an HTTP client: {0}")]
    Client(String),
    /// The listener failed.
    #[error("the gateway cannot listen: {0}")]
    Listen(#[from] std::io::Error),
    /// A file of a recorded exchange that cannot be used.
    #[error("{} {what}", path.display())]
    Exchange {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A proxy that was tried, and failed.
    #[error("the proxy at {url} {what}")]
    Proxy {
        /// Its address.
        url: String,
        /// What it did.
        what: String,
    },
    /// An exchange that could not be replayed.
    #[error("an exchange could not be replayed: {0}")]
    Replay(String),
}
