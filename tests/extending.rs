//! The examples of `docs/extending.md`, compiled and run as the documentation of this crate.
#![doc = include_str!("../docs/extending.md")]
