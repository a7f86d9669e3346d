//! Tests of the public interface, by what is sent over the wire.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod hostile;
mod http;
mod lines;
mod resources;
mod todo;
mod tools;
mod wire;
