//! The errors of the inspector.

use std::io;
use std::net::SocketAddr;

/// Why the inspector cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectorError {
    /// Other machines could reach the address.
    #[error(
        "the inspector shows everything in the store, so it listens on this machine only: expected an address such as \
         127.0.0.1:8378 or [::1]:8378, got {0}"
    )]
    NotLoopback(SocketAddr),
    /// Another program listens there.
    #[error(
        "another program already listens on {0}, perhaps another inspector; choose another port, or 0 for any free one: \
         --listen 127.0.0.1:0"
    )]
    Taken(SocketAddr),
    /// The address cannot be listened on.
    #[error("could not listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system gave no random bytes for a token.
    #[error("no random bytes for a token: {0}")]
    Random(String),
    /// No more connections can be accepted.
    #[error("the inspector ended")]
    Ended(#[source] io::Error),
}
