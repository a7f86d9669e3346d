//! The sandbox, from outside.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod captured;
#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod escapes;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod scene;
