//! Integration tests.

mod cancellation;
mod canonical;
mod data;
