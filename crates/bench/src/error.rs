//! Why a measurement could not be made.

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The memory under measurement failed.
    #[error(transparent)]
    Memory(#[from] foldback::Error),
    /// A policy under measurement failed.
    #[error(transparent)]
    Context(#[from] foldback_core::ContextError),
    /// An exchange could not be played again.
    #[error(transparent)]
    Gateway(#[from] foldback_gateway::GatewayError),
    /// A table could not be written as CSV.
    #[error("the table could not be written as CSV: {0}")]
    Csv(#[from] csv::Error),
    /// A picture could not be drawn.
    #[error("a picture could not be drawn: {0}")]
    Picture(String),
    /// The input holds nothing that could be measured.
    #[error("{0}")]
    Input(String),
    /// A file or folder could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with which file.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
}
