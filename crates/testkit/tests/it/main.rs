//! The kit is used by every crate's tests, so it is tested itself.

mod generate;
mod script;
