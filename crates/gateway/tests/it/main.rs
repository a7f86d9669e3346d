//! The gateway between clients and a provider of a script.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod checkup;
mod classes;
mod folds;
mod guarding;
mod histories;
mod ledger;
mod passing;
mod recording;
mod traffic;
mod world;
