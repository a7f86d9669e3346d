//! The public face of the embedder, and its quality on recorded conversations.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calibration;
mod corpus;
mod embedding;
#[cfg(feature = "fastembed")]
mod model;
mod retrieval;
mod windows;
mod wordpiece;
