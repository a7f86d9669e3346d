//! Why a server cannot be used.

/// Why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The configuration does not have the expected form.
    #[error("{0}")]
    Config(String),
    /// It could not be started or reached, or did not speak the protocol.
    #[error("the MCP server {server:?} could not be started: {reason}")]
    Start {
        /// Its name.
        server: String,
        /// What happened, with the end of its standard error.
        reason: String,
    },
    /// It ended while it was in use.
    #[error("the MCP server {server:?} has ended{reason}")]
    Ended {
        /// Its name.
        server: String,
        /// How, with the end of its standard error; begins with `:` or is empty.
        reason: String,
    },
    /// It did not answer.
    #[error("the MCP server {server:?} did not answer within {seconds} s")]
    Timeout {
        /// Its name.
        server: String,
        /// How long the caller waited.
        seconds: u64,
    },
    /// It answered a call with something that cannot be read.
    #[error("the MCP server {server:?} answered, but its answer cannot be read: {reason}")]
    Unreadable {
        /// Its name.
        server: String,
        /// Why, as a clause.
        reason: String,
    },
    /// It answered that it cannot do what was asked, or sent an invalid list of tools.
    #[error("the MCP server {server:?} answered with an error: {message}")]
    Refused {
        /// Its name.
        server: String,
        /// In its own words.
        message: String,
    },
}
