//! The public face of the embedder, and what it is worth on recorded conversations.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod corpus;
mod embedding;
mod retrieval;
mod same_topic;
mod windows;
mod wordpiece;
