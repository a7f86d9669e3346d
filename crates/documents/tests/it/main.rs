//! Tests of the public face.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod bombs;
mod deep_search;
mod documents;
mod extracted;
mod read;
mod todo_search;
