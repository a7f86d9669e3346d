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
    /// An exchange could not be replayed.
    #[error(transparent)]
    Gateway(#[from] foldback_gateway::GatewayError),
    /// A table could not be written as CSV.
    #[error("the table could not be written as CSV: {0}")]
    Csv(#[from] csv::Error),
    /// A picture could not be drawn.
    #[error("a picture could not be drawn: {0}")]
    Picture(String),
    /// The input contains nothing that can be measured.
    #[error("{0}")]
    Input(String),
    /// A file or folder could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, with which file.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}
