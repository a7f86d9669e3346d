//! The public face of the chunker.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod cjk;
mod corpus;
mod laws;
mod restore;
mod transcripts;
