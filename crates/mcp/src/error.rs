//! Why a server cannot be used.

/// Why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The configuration is not as it was expected.
    #[error("{0}")]
    Config(String),
    /// It could not be started or reached, or did not speak as a server does.
    #[error("the MCP server {server:?} could not be started: {reason}")]
    Start {
        /// Its name.
        server: String,
        /// What happened, with the last that it wrote to its standard error.
        reason: String,
    },
    /// It ended while it was used.
    #[error("the MCP server {server:?} has ended{reason}")]
    Ended {
        /// Its name.
        server: String,
        /// How, with the last that it wrote to its standard error; begins with `:` or is empty.
        reason: String,
    },
    /// It did not answer.
    #[error("the MCP server {server:?} did not answer within {seconds} s")]
    Timeout {
        /// Its name.
        server: String,
        /// How long was waited.
        seconds: u64,
    },
    /// It answered that it cannot do what was asked, or with what is no answer.
    #[error("the MCP server {server:?} answered with an error: {message}")]
    Refused {
        /// Its name.
        server: String,
        /// In its own words.
        message: String,
    },
}
