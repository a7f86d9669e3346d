//! Why a server could not start or keep running.

use std::io;
use std::net::SocketAddr;

/// Why a server could not start or keep running.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can be reached from other machines.
    #[error(
        "{0} can be reached from other machines; an address of this machine alone was expected, such as \
         127.0.0.1:8765 or [::1]:8765"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The client did not start as the protocol requires.
    #[error("the client did not start as the protocol requires: {0}")]
    Begin(String),
    /// The server ended by itself.
    #[error("the server has ended: {0}")]
    Ended(#[source] io::Error),
}
