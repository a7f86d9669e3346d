//! Tests of the public face.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod file_edit;
mod file_grep;
mod file_list;
mod file_read;
mod file_write;
mod handed;
mod hostile_paths;
mod in_a_context;
mod permissions;
mod shell;
mod tools;
mod web;
