//! Why a server could not be started, or went on no longer.

use std::io;
use std::net::SocketAddr;

/// Why a server could not be started, or went on no longer.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can be reached from other machines.
    #[error(
        "{0} can be reached from other machines; an address of this machine alone was expected, such as \
         127.0.0.1:8765 or [::1]:8765"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be used.
    #[error("{address} cannot be listened on: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The client did not begin as the protocol asks.
    #[error("the client did not begin as the protocol asks: {0}")]
    Begin(String),
    /// The server ended by itself.
    #[error("the server has ended: {0}")]
    Ended(String),
}
