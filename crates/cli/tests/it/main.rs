//! The command as a user and a script meet it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may fail loudly"
)]

mod shell;

mod bad_input;
mod contract;
mod corpus;
mod durable;
mod face;
mod load;
mod record;
mod replay;
mod search;
mod upkeep;
